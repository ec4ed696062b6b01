// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/gres"
	"github.com/gojail/gojail/tests/harness"
)

// startSystemd starts a systemd with its udevd, as process 1 of a PID namespace, in a cgroup and a mount tree
// of its own. The returned function runs a command there.
func startSystemd(t *testing.T, cards []card) func(line string) (string, error) {
	t.Helper()
	const systemd = "/lib/systemd/systemd"
	if _, err := os.Stat(systemd); err != nil {
		t.Skip("this release's root has no systemd")
	}
	// Else it updates caches of a new system first: ldconfig alone can take a minute here.
	requireRun(t, "touch /etc/.updated /var/.updated")
	const group = "/sys/fs/cgroup/services"
	require.NoError(t, os.MkdirAll(group, 0o755))
	inside := "mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec env container=test " + systemd + " --system --unit=basic.target"
	cmd := exec.Command("sh", "-c", "echo $$ >"+group+"/cgroup.procs && exec unshare --pid --fork --kill-child --cgroup --mount --mount-proc sh -c '"+inside+"'")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() // and so all of the PID namespace
		cmd.Wait()
		for i, c := range cards { // udevd has renamed them
			names, err := os.ReadDir(c.device + "/net")
			require.NoError(t, err)
			if now := names[0].Name(); now != c.name {
				requireRun(t, fmt.Sprintf("ip link set %s down && ip link set %[1]s name %s", now, cards[i].name))
			}
		}
		waitFor(t, "the end of systemd", func() bool {
			_, err := tryRun("find " + group + " -depth -type d -exec rmdir {} +")
			return err == nil
		})
	})
	var one string
	waitFor(t, "systemd", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		one = strings.TrimSpace(string(children))
		_, err := strconv.Atoi(one)
		return err == nil
	})
	within := func(line string) (string, error) {
		return tryRun("nsenter --target=" + one + " --pid --mount --cgroup sh -c '" + line + "'")
	}
	waitFor(t, "systemd to be up", func() bool {
		state, _ := within("systemctl is-system-running --wait") // asked over and over it would be slower still
		return state == "running" || state == "degraded"
	})
	return within
}

// installFile copies a file to where `make install` puts it, until the end of the test.
func installFile(t *testing.T, from, to string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, from))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, []byte(change(string(text))), 0o755))
	t.Cleanup(func() { os.Remove(to) })
}

// TestVFService: the unit, with all that it denies itself, makes VFs, their files
// and the RDMA mode; udev has marked the VFs by then.
func TestVFService(t *testing.T) {
	all := findCards(t)
	as := func(text string) string { return text }
	installFile(t, filepath.Join("build/releases", harness.Release(), "sbin/gojail"), "/usr/local/sbin/gojail", as)
	installFile(t, "packaging/systemd/gojail-vf.service", "/etc/systemd/system/gojail-vf.service", as)
	installFile(t, "packaging/udev/80-gojail-vf.rules", "/etc/udev/rules.d/80-gojail-vf.rules", as)
	installFile(t, "network.toml.example", "/etc/gojail/network.toml", func(string) string {
		return fmt.Sprintf("[[policy]]\nname = \"all\"\nnic = { root = [%q] }\nvfs = 2\ntrust = true\nrdma = \"exclusive\"\n"+
			"[[pool]]\nname = \"rail0\"\nsubnet = \"10.0.0.0/24\"\nnodes = \"vm\"\nper_node = 2\n"+
			"[[rail]]\nname = \"rail0\"\npolicy = \"all\"\npools = [\"rail0\"]\ngres = \"nic:rail0\"\n", filepath.Base(all[0].device))
	})
	t.Cleanup(func() {
		os.RemoveAll("/dev/" + gres.Directory)
		os.RemoveAll("/run/gojail")
		os.Remove("/etc/modprobe.d/gojail-rdma.conf")
		requireWrite(t, all[0].device+"/sriov_numvfs", "0")
		waitFor(t, "the RDMA mode", func() bool { _, err := tryRun("rdma system set netns shared"); return err == nil })
	})
	within := startSystemd(t, all)
	out, err := within("systemctl start gojail-vf.service; systemctl --no-pager --full --lines=50 status gojail-vf.service")
	require.NoError(t, err, out)
	assert.Contains(t, out, "VFs: 0 -> 2")
	for i := range 2 {
		assert.FileExists(t, fmt.Sprintf("/dev/gojail/nic_%d", i))
		device := fmt.Sprintf("%s/virtfn%d", all[0].device, i)
		assert.Equal(t, "igbvf", requireRun(t, "basename $(readlink "+device+"/driver)"))
		waitFor(t, "udev's mark", func() bool {
			properties, _ := within("udevadm info --query=property " + device + "/net/*")
			return strings.Contains(properties, "NM_UNMANAGED=1") && strings.Contains(properties, "GOJAIL_VF=1")
		})
	}
	assert.Contains(t, requireRun(t, "rdma system"), "netns exclusive")
	assert.Contains(t, requireRun(t, "cat /etc/modprobe.d/gojail-rdma.conf"), "netns_mode=0")
	out, err = within("systemctl restart gojail-vf.service; systemctl --no-pager --lines=2 status gojail-vf.service")
	require.NoError(t, err, out)
	assert.Contains(t, out, "nothing to do")
}
