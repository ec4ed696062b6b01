// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// cdiFile is of a driver as NVIDIA's tool describes its own: two GPUs, which are
// consoles, each with a node that comes along, and what is everybody's.
const cdiFile = `{"cdiVersion": "0.5.0", "kind": "example.com/gpu",
"devices": [
  {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/tty61"}, {"path": "/dev/cpu/0/cpuid"}]}},
  {"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/tty62"}, {"path": "/dev/cpu/1/cpuid"}]}},
  {"name": "all", "containerEdits": {"deviceNodes": [
    {"path": "/dev/tty61"}, {"path": "/dev/cpu/0/cpuid"}, {"path": "/dev/tty62"}, {"path": "/dev/cpu/1/cpuid"}]}}],
"containerEdits": {
  "env": ["DRIVER_DEVICES=void"],
  "deviceNodes": [{"path": "/dev/tty60"}, {"path": "/dev/net/tun"}],
  "mounts": [
    {"hostPath": "/opt/driver/libdriver.so.1.2", "containerPath": "/usr/lib/driver/libdriver.so.1.2", "options": ["ro", "nosuid", "nodev", "bind"]},
    {"hostPath": "/opt/driver/driver-smi", "containerPath": "/usr/bin/driver-smi", "options": ["ro", "nosuid", "nodev", "bind"]}],
  "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib/driver"]}]}}
`

// buildDriver compiles a library with the soname libdriver.so.1, and a program that needs it.
func buildDriver(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lib.c": "int driver(void) { return 42; }\n",
		"smi.c": "#include <stdio.h>\nint driver(void);\nint main(void) { return printf(\"driver %d\\n\", driver()) < 0; }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	files := map[string]string{"/etc/cdi/driver.json": cdiFile}
	for _, args := range [][]string{
		{"libdriver.so.1.2", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libdriver.so.1", "lib.c"},
		{"driver-smi", "smi.c", "-L.", "-l:libdriver.so.1.2"},
	} {
		cmd := exec.Command("gcc", append([]string{"-o"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("needs gcc: %s", out)
		}
		text, err := os.ReadFile(filepath.Join(dir, args[0]))
		require.NoError(t, err)
		files["/opt/driver/"+args[0]] = string(text)
	}
	return files
}

// TestCDI: a driver comes into a jail from the node alone, and of the GPUs only the
// job's. Nothing is written to the jail's storage.
func TestCDI(t *testing.T) {
	for _, path := range []string{"/dev/net/tun", "/dev/cpu/0/cpuid", "/dev/cpu/1/cpuid"} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("needs %s, a device below a directory of /dev", path)
		}
	}
	options := withGPUs("NodeName=n[1-2] Name=gpu File=/dev/tty62\nNodeName=n[1-2] Name=gpu File=/dev/tty61\n")
	options.Config = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\ncdi = [\"example.com/gpu=all\"]\n", 1)
	maps.Copy(options.Files, buildDriver(t))
	c := harness.Start(t, options)
	// Mount targets are of gojail init; from here on nothing is written.
	list := func() string {
		r := c.Root("find", "/srv/jails/debian", "-path", "*/home", "-prune", "-o", "-printf", "%p %s %T@ %i\\n")
		require.Zero(t, r.Code, r)
		return r.Stdout
	}
	before := list()
	assert.NotContains(t, before, "driver")
	in := func(script string, args ...string) harness.Result {
		return c.Run(harness.Alice, append(append([]string{"srun", "-Q", "-wn1", "--jail=debian"}, args...), "sh", "-c", script)...)
	}
	requireOutput(t, "driver 42", in("driver-smi"))
	requireOutput(t, "driver 42", enterSandbox(t, c))
	const nodes = "cd /dev; echo $(ls -d tty6* cpu/*/* net/tun 2>/dev/null)"
	requireOutput(t, "net/tun tty60", in(nodes))
	requireOutput(t, "cpu/1/cpuid net/tun tty60 tty62", in(nodes, "--gres=gpu:1"))
	requireOutput(t, "cpu/0/cpuid cpu/1/cpuid net/tun tty60 tty61 tty62", in(nodes, "--gres=gpu:2"))
	const mode = "stat -c '%n %t:%T %a %u %g' /dev/tty60 /dev/net/tun"
	assert.Equal(t, c.Root("sh", "-c", mode).Stdout, in(mode).Stdout)
	requireOutput(t, "/run/gojail/bin/gojail", in("ls /run/gojail/bin/*; /run/gojail/bin/gojail version >/dev/null"))
	requireOutput(t, "void /run/gojail/cdi/lib", in("echo $DRIVER_DEVICES $LD_LIBRARY_PATH"))

	// What the user has stays, and a step of a step adds nothing.
	job := c.Batch(harness.Alice, "#!/bin/sh\nexport LD_LIBRARY_PATH=/mine:$LD_LIBRARY_PATH\nsrun sh -c 'echo $LD_LIBRARY_PATH'\n"+
		"LD_LIBRARY_PATH=/mine srun sh -c 'echo $LD_LIBRARY_PATH; driver-smi'\ncase $PATH in /run/gojail/cdi/bin:*bin*) echo path; esac\n", "--jail=debian")
	assert.Equal(t, "COMPLETED /mine:/run/gojail/cdi/lib\n/run/gojail/cdi/lib:/mine\ndriver 42\npath\n", job.State+" "+job.Output, job)
	requireOutput(t, "/run/gojail/cdi/bin:/usr/local/bin:/usr/bin:/bin", in("echo $PATH", "--export=NONE"))
	requireOutput(t, "driver 42", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--export=NONE", "--jail=debian", "driver-smi"))
	requireOutput(t, "none", c.Run(harness.Alice, "srun", "-Q", "--jail=other", "sh", "-c", "echo ${LD_LIBRARY_PATH:-none}"))
	requireOutput(t, "driver 42", c.Gojail("n1", "run", "debian", "--", "driver-smi"))
	assert.True(t, before == list(), "a file of the jail has been made or changed") // the list is long
	// The driver's own file is out of reach.
	refusedWrite := in("echo x >/run/gojail/cdi/bin/driver-smi; echo x >/run/gojail/cdi/lib/new")
	assert.NotZero(t, refusedWrite.Code)

	checkLdCache(t, c, in)
	changeCDIFile(t, c, in)
	for _, node := range harness.Nodes {
		assert.Equal(t, "idle", waitForState(c, node), c.Drained())
	}
}

// enterSandbox runs the program in a job's sandbox, as root on the node does.
func enterSandbox(t *testing.T, c *harness.Cluster) harness.Result {
	t.Helper()
	step, id := allocate(t, c)
	requireOutput(t, "", step("true"))
	r := c.Gojail("n1", "enter", id, "--", "driver-smi")
	c.Run(harness.Alice, "scancel", id)
	return r
}

// checkLdCache runs the program in a jail whose ld.so.cache lists the directory: LD_LIBRARY_PATH is not
// needed.
func checkLdCache(t *testing.T, c *harness.Cluster, in func(string, ...string) harness.Result) {
	t.Helper()
	const without = "env -u LD_LIBRARY_PATH driver-smi"
	r := in(without)
	assert.Equal(t, 127, r.Code, r)
	conf := c.Path("/srv/jails/debian/etc/ld.so.conf.d/gojail.conf")
	require.NoError(t, os.WriteFile(conf, []byte("/run/gojail/cdi/lib\n"), 0o644))
	requireOutput(t, "", c.Run("root", "srun", "-Q", "-wn1", "--jail=debian", "/sbin/ldconfig"))
	requireOutput(t, "driver 42", in(without))
}

// changeCDIFile writes another CDI file: jobs get its devices after gojail reload. A file that names what is
// missing fails jobs with one line, and gojail check reports it.
func changeCDIFile(t *testing.T, c *harness.Cluster, in func(string, ...string) harness.Result) {
	t.Helper()
	path := c.Path("/etc/cdi/driver.json")
	gojail := func(args ...string) harness.Result { return c.Gojail("n1", args...) }
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(cdiFile, "void", "new", 1)), 0o644))
	requireOutput(t, "void", in("echo $DRIVER_DEVICES"))
	stale := withoutFlags(gojail("check").Stdout)
	assert.Contains(t, stale, "WARN  jail debian: devices, CDI files or Slurm's programs of this node have changed since the last job; to apply this to the next jobs: gojail reload debian\n", stale)
	require.Zero(t, gojail("reload", "debian").Code)
	requireOutput(t, "new", in("echo $DRIVER_DEVICES"))
	fine := gojail("check").Stdout
	assert.NotContains(t, fine, "have changed since")
	assert.Contains(t, fine, "OK    jail debian: CDI provides example.com/gpu=all: 6 device nodes, 2 files in /run/gojail/cdi\n", fine)

	require.NoError(t, os.Rename(c.Path("/opt/driver/libdriver.so.1.2"), c.Path("/opt/driver/libdriver.so.1.3")))
	require.Zero(t, gojail("reload", "debian").Code)
	const why = "CDI: example.com/gpu=all: /opt/driver/libdriver.so.1.2 does not exist; was the driver changed?; install the CDI file of the device's vendor"
	requireRefused(t, why, in("driver-smi"))
	assert.Contains(t, gojail("check").Stdout, "FAIL  jail debian: "+why)
	requireOutput(t, "fine", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=other", "echo", "fine"))
}
