// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/procfs"
)

// inJail starts a process with its own /run, after the commands have run there, as a jail's
// template has it. It writes the record that leads to that process.
func inJail(t *testing.T, state, jail, commands string) {
	cmd := exec.Command("unshare", "-m", "sh", "-ec", "mount -t tmpfs -o mode=755 tmpfs /run\nmkdir -p /run/gojail/cdi/lib\ncd /run/gojail/cdi/lib\n"+commands+"\necho ready\nread end")
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	ready, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", ready)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	require.NoError(t, err)
	p, ok := procfs.ParseStat(text)
	require.True(t, ok)
	put(t, state+"/jails/"+jail+"/zygote", fmt.Sprintf("%d %d %d %016x 0\n", contract.Version, cmd.Process.Pid, p.Start, 1))
	require.NoError(t, os.Chmod(state, 0o700))
}

func TestJailDriver(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: a mount namespace")
	}
	const library = "printf '\\177ELF...' >"
	for commands, want := range map[string]struct {
		verdict check.Verdict
		text    string
	}{
		library + "libcuda.so.1; ln -s libcuda.so.1 libcuda.so; ln -s nowhere libnvidia-ml.so": {check.OK, ""},
		": >libnvidia-ml.so.1; " + library + "libcuda.so.1":                                    {check.Fail, "jail gpu: libnvidia-ml.so.1 is empty"},
		"echo text >libcuda.so.1":                  {check.Fail, "jail gpu: libcuda.so.1 is not a library"},
		": >libcuda.so.1; chown 1000 libcuda.so.1": {check.Warn, "jail gpu: libcuda.so.1 is empty"},
		"mkfifo libcuda.so.1; ln -s /dev/zero libcuda.so; mkdir libnvidia-x.so; : >libother.so": {check.OK, ""},
		": >/run/empty; ln -s /run/empty libcuda.so":                                            {check.Fail, "jail gpu: libcuda.so is empty"}, // in the jail, not on the node
		": >/run/empty; chown 1000 .; ln -s /run/empty libcuda.so":                              {check.Warn, "jail gpu: libcuda.so is empty"}, // a user's link to a file of root
		": >libcuda.so.1; chmod 777 .":                                                          {check.Warn, "jail gpu: libcuda.so.1 is empty"},
	} {
		h, s := testHost(t), config.DefaultSettings()
		s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
		put(t, s.Jail.Config, "default = \"gpu\"\n[jail.gpu]\nroot = \"/srv\"\nhost = [\"/usr/lib/x86_64-linux-gnu/libcuda.so*\"]\n")
		f := once(h, jailDriver, s)
		expect(t, f, check.OK, "no jail has been assembled since the node booted")
		inJail(t, s.Jail.State, "gpu", commands)
		f = once(h, jailDriver, s)
		assert.Equal(t, want.verdict, f.Verdict, "%s: %s", commands, f.Text)
		if want.text != "" {
			assert.Equal(t, want.text, f.Text, commands)
		}
	}

	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	put(t, s.Jail.Config, "default = \"cpu\"\n[jail.cpu]\nroot = \"/srv\"\n")
	expect(t, once(h, jailDriver, s), check.NotApplicable, "no jail provides NVIDIA's driver")
}

// Templates that were in order are looked into again after ten minutes, new ones and those with a fault at once.
func TestJailDriverLooksIntoTemplatesWhenItMust(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: a mount namespace")
	}
	h, s := testHost(t), config.DefaultSettings()
	now := time.Unix(1e9, 0)
	h.Now = func() time.Time { return now }
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	put(t, s.Jail.Config, "default = \"gpu\"\n[jail.gpu]\nroot = \"/srv\"\nhost = [\"/usr/lib/x86_64-linux-gnu/libcuda.so*\"]\n")
	inJail(t, s.Jail.State, "gpu", "printf '\\177ELF...' >libcuda.so.1")
	f := once(h, jailDriver, s)
	expect(t, f, check.OK, "")
	opened, err := state.OpenState(s.Jail.State)
	require.NoError(t, err)
	path, err := opened.TemplateRoot("gpu")
	require.NoError(t, err)
	library := path + "/run/gojail/cdi/lib/libcuda.so.1"
	require.NoError(t, os.Truncate(library, 0))
	f = again(h, jailDriver, s, f)
	expect(t, f, check.OK, "")
	now = now.Add(driverInterval)
	f = again(h, jailDriver, s, f)
	expect(t, f, check.Fail, "jail gpu: libcuda.so.1 is empty")
	require.NoError(t, os.WriteFile(library, []byte("\177ELF..."), 0o644))
	f = again(h, jailDriver, s, f)
	expect(t, f, check.OK, "")
	inJail(t, s.Jail.State, "gpu", ": >libcuda.so.1")
	f = again(h, jailDriver, s, f)
	expect(t, f, check.Fail, "jail gpu: libcuda.so.1 is empty")
}

// TestDriverNamesAreBounded: the owner of a directory may fill it, even with names of the
// driver.
func TestDriverNamesAreBounded(t *testing.T) {
	dir := t.TempDir()
	names := func() []string {
		file, err := os.Open(dir)
		require.NoError(t, err)
		defer file.Close()
		return listDriverFiles(file)
	}
	for i := range 3000 {
		put(t, fmt.Sprintf("%s/other-%d.so", dir, i), "")
	}
	put(t, dir+"/libcuda.so.1", "")
	put(t, dir+"/libnvidia-ml.so.1", "")
	assert.Equal(t, []string{"libcuda.so.1", "libnvidia-ml.so.1"}, names())
	for i := range 3 * mostDriver {
		put(t, fmt.Sprintf("%s/libnvidia-%d.so", dir, i), "")
	}
	assert.LessOrEqual(t, len(names()), 2*mostDriver)
}
