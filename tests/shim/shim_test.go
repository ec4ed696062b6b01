// SPDX-License-Identifier: Apache-2.0

// Package shim runs the SPANK shim under AddressSanitizer and
// UndefinedBehaviorSanitizer, in a small host program of its own.
package shim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

type host struct {
	program, plugin string
	dir             string
}

// buildHost returns the host, and the plugin in a directory of the test's own: it starts the launcher that lies beside it.
func buildHost(t *testing.T) host {
	t.Helper()
	h, err := compiled()
	require.NoError(t, err)
	dir, err := makeDir()
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	plugin := filepath.Join(dir, filepath.Base(h.plugin))
	require.NoError(t, os.Link(h.plugin, plugin))
	return host{program: h.program, plugin: plugin, dir: dir}
}

// makeDir makes a directory in which slurmd's files can be.
func makeDir() (string, error) {
	parent, err := filepath.Abs("../../build")
	if err != nil {
		return "", err
	}
	// Not below /tmp, where the clone may be: that is private to each job, and slurmd's files cannot be there.
	if parent, err = filepath.EvalSymlinks(parent); err != nil || strings.HasPrefix(parent, "/tmp/") {
		parent = "/var/lib"
	}
	return os.MkdirTemp(parent, "gojail-shim-")
}

// runCalls runs the calls in a mount namespace of its own and returns what was printed.
func (h host) runCalls(t *testing.T, calls string, env ...string) string {
	t.Helper()
	cmd := exec.Command(h.program, h.plugin, calls)
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"HOST_ARG1=state=" + h.dir + "/state", "HOST_ARG2=config=" + h.dir + "/gojail.toml"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "Sanitizer")
	return string(out)
}

func requireRoot(t *testing.T) {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: the shim changes namespaces")
	}
}

func TestOptions(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	long := "/" + strings.Repeat("x", 2000) + ":/mnt"
	inherited := "SLURM_SPANK__SLURM_SPANK_OPTION_gojail_jail"
	for _, row := range []struct {
		name string
		env  []string
		want []string
	}{
		{"a jail", []string{"HOST_JAIL=debian"}, []string{"jail 0", "init_post_opt 0", "SLURM_JAIL=debian ", "prolog SLURM_JAIL: debian\nprolog without SLURM_JAIL_MOUNT\n"}},
		{"none", []string{"HOST_JAIL=none"}, []string{"SLURM_JAIL=none "}},
		{"no name", []string{"HOST_JAIL="}, []string{"jail -1", "--jail= is not the name of a jail"}},
		{"a path", []string{"HOST_JAIL=../x"}, []string{"jail -1", "--jail=../x is not the name of a jail"}},
		{"too long", []string{"HOST_JAIL=" + strings.Repeat("a", 65)}, []string{"jail -1"}},
		{"longest", []string{"HOST_JAIL=" + strings.Repeat("a", 64)}, []string{"jail 0"}},
		{"environment", []string{"SLURM_JAIL=other"}, []string{"init_post_opt 0", "SLURM_JAIL=other "}},
		{"bad environment", []string{"SLURM_JAIL=a/b"}, []string{"init_post_opt -1"}},
		{"command line over environment", []string{"HOST_JAIL=a", "SLURM_JAIL=b"}, []string{"SLURM_JAIL=a "}},
		{"environment over what the job was submitted with", []string{"HOST_JAIL=a", inherited + "=a", "SLURM_JAIL=b"},
			[]string{"SLURM_JAIL=b "}},
		{"what the job was submitted with", []string{"HOST_JAIL=a", inherited + "=a"}, []string{"prolog SLURM_JAIL: a\n"}},
		{"a mount", []string{"HOST_MOUNT=/a:/b"}, []string{"jail-mount 0", "SLURM_JAIL_MOUNT=/a:/b\n", "prolog SLURM_JAIL: \nprolog SLURM_JAIL_MOUNT: /a:/b\n"}},
		{"mounts add up", []string{"HOST_MOUNT=/a:/b;/c:/d:ro"}, []string{"SLURM_JAIL_MOUNT=/a:/b,/c:/d:ro\n"}},
		{"inherited mounts are replaced", []string{"HOST_MOUNT=/a:/b;/c:/d",
			"SLURM_SPANK__SLURM_SPANK_OPTION_gojail_jail_mount=/a:/b"}, []string{"SLURM_JAIL_MOUNT=/c:/d\n"}},
		{"no destination", []string{"HOST_MOUNT=/a"}, []string{"jail-mount -1", "it is not SOURCE:DESTINATION"}},
		{"relative", []string{"HOST_MOUNT=a:/b"}, []string{"jail-mount -1", "both paths must start with /"}},
		{"mode", []string{"HOST_MOUNT=/a:/b:rx"}, []string{"jail-mount -1", "only :ro or :rw"}},
		{"long path", []string{"HOST_MOUNT=" + long}, []string{"jail-mount -1", "too long"}},
		{"root", []string{"HOST_ROOT=-"}, []string{"jail-root 0", "SLURM_JAIL_ROOT=any\n"}},
		{"root of an empty value", []string{"HOST_ROOT="}, []string{"jail-root -1", "error: gojail: --jail-root= is not a mode; write"}},
		{"root of an unknown value", []string{"HOST_ROOT=all"}, []string{"jail-root -1", "--jail-root=all is not a mode"}},
		{"inherited root without a value", []string{"HOST_ROOT=", inherited + "_root="}, []string{"jail-root 0", "init_post_opt 0"}},
		{"empty variables are none", []string{"SLURM_JAIL=", "SLURM_JAIL_MOUNT=", "SLURM_JAIL_NET=", "SLURM_JAIL_ROOT="},
			[]string{"init_post_opt 0", "SLURM_JAIL= SLURM_JAIL_MOUNT=\nSLURM_JAIL_ROOT=\n"}},
		{"long list", []string{"HOST_MOUNT=" + strings.Repeat("/a:/b;", 2000)}, []string{"the list is longer than"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := h.runCalls(t, "init,options,init_post_opt,environment", append(row.env, "HOST_CONTEXT=local")...)
			for _, want := range row.want {
				assert.Contains(t, out, want)
			}
		})
	}
}

const stepCalls = "init,options,init_post_opt,user_init,task,task_post_fork,task_exit,exit"

// Without a launcher beside the plugin nothing can be prepared: every fault must
// be latched, say why, and end in the task.
func TestFaultsAreLatched(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	config := filepath.Join(h.dir, "gojail.toml")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
	}
	site := "gojail-site 1\nconfig 0 0 0 0 0 0 0\nuntil 0\n"
	for _, row := range []struct {
		name    string
		prepare func()
		env     []string
		want    string
	}{
		{"no configuration", func() { os.Remove(config) }, nil, "cannot read the configuration"},
		{"no launcher", func() { write("gojail.toml", "") }, nil, "cannot start"},
		{"a site file of another configuration", func() { write("state/site", site) }, nil, "cannot start"},
		{"an empty site file", func() { write("state/site", "") }, nil, "cannot start"},
		{"a site file without line ends", func() { write("state/site", strings.Repeat("x", 70000)) }, nil, "cannot start"},
		{"a site file of others", func() { require.NoError(t, os.Chmod(filepath.Join(h.dir, "state/site"), 0o666)) }, nil,
			"not a file that only root can change"},
		{"a state directory of others", func() { require.NoError(t, os.Chmod(filepath.Join(h.dir, "state"), 0o777)) }, nil,
			"can be changed by others than root"},
		{"an unknown argument", nil, []string{"HOST_ARG1=speed=11"}, `unknown argument "speed=11"`},
		{"a relative path", nil, []string{"HOST_ARG1=state=run"}, "must be full paths"},
		{"an endless path", nil, []string{"HOST_ARG1=state=/" + strings.Repeat("%n", 2000), "SLURMD_NODENAME=n1"},
			"must be full paths"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.prepare != nil {
				row.prepare()
			}
			out := h.runCalls(t, stepCalls, append(row.env, "HOST_JAIL=debian")...)
			assert.Contains(t, out, row.want)
			assert.Contains(t, out, "init_post_opt 0")
			assert.Contains(t, out, "task_init_privileged -1")
			assert.Contains(t, out, "exit 0")
			assert.NotContains(t, out, "marker")
		})
	}
}

func TestExternStepAndEpilogDoNothing(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	out := h.runCalls(t, "init,init_post_opt,task_post_fork,exit", "HOST_STEP=4294967292")
	assert.NotContains(t, out, "error")
	out = h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
	assert.Equal(t, "init 0\njob_epilog 0\n", out)
}

// TestRefusedFileIsToldOnce: the user is told once why a step is refused for a file, before srun has the step's result,
// and not in a hook in which Slurm can send no message.
func TestRefusedFileIsToldOnce(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	file := filepath.Join(h.dir, "of-the-node")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	require.NoError(t, os.Chmod(file, 0o666))
	for _, row := range []struct {
		name, calls, want string
		env               []string
	}{
		{"step", "as_user,task,task_post_fork,task_post_fork", "to job 7: gojail: --output or --error: ",
			[]string{"HOST_STEP=0"}},
		{"files that Slurm cannot open", "place", "to job 7: gojail: Slurm looked for --output", []string{"HOST_STEP=0"}},
		{"files of a batch step that Slurm cannot open", "place", "load job 7\n",
			[]string{"HOST_STEP=4294967291", "HOST_SCRIPT=" + h.dir + "/spool/job00007/slurm_script"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := h.runCalls(t, "open,init,options,init_post_opt,"+row.calls+",task_exit,exit", append(row.env, "HOST_OPEN="+file)...)
			assert.Equal(t, 1, strings.Count(out, row.want), out)
			assert.Regexp(t, `exit 0\n$`, out)
			if _, after, told := strings.Cut(out, row.want); row.name == "step" && assert.True(t, told, out) {
				assert.Equal(t, 2, strings.Count(after, "task_post_fork"), out)
			}
		})
	}
	out := h.runCalls(t, "open,init,options,init_post_opt,place,task_exit,exit", "HOST_STEP=4294967291", "HOST_SCRIPT="+h.dir+"/spool/job00007/slurm_script",
		"HOST_OPEN="+file, "HOST_JOB_SIZE=888")
	assert.NotContains(t, out, "load job", "nothing is written into a structure of another size, of a Slurm that somebody patched")
	assert.Contains(t, out, "gojail: Slurm looked for --output")
	h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
}

// endRecorded ends the process of a record, which is "version pid starttime key".
func endRecorded(t *testing.T, record string) {
	t.Helper()
	var version, pid int
	text, err := os.ReadFile(record)
	if err != nil {
		return
	}
	_, err = fmt.Sscanf(string(text), "%d %d", &version, &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, time.Minute, time.Millisecond)
}

// makeJail creates a jail, with the real launcher and library beside the plugin.
func (h host) makeJail(t *testing.T) {
	t.Helper()
	for _, part := range []string{"gojail-launcher", "libgojail.so"} {
		built, err := filepath.Abs("../../build/lib/gojail/" + part)
		require.NoError(t, err)
		require.FileExists(t, built, "run: make")
		require.NoError(t, os.Symlink(built, filepath.Join(h.dir, part)))
	}
	root := filepath.Join(h.dir, "root")
	for _, dir := range []string{"tmp", "proc", "sys", "dev", "run", "etc", "spool", "mnt"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, "spool/job00007"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "marker"), []byte("jail\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "gojail.toml"), []byte(`
default = "debian"
scratch = "`+h.dir+`/scratch"
[slurm]
spool = "`+h.dir+`/spool"
[jail.debian]
root = "`+root+`"
slurm = false
host = []
`), 0o600))
	t.Cleanup(func() { endRecorded(t, filepath.Join(h.dir, "state/jails/debian/zygote")) })
	// The spool's place in the jail.
	require.NoError(t, os.MkdirAll(filepath.Join(root, h.dir, "spool"), 0o755))
}

// addJail adds another jail of the same root to the configuration.
func (h host) addJail(t *testing.T, name string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(h.dir, "gojail.toml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(file, "[jail.%s]\nroot = %q\nslurm = false\nhost = []\n", name, filepath.Join(h.dir, "root"))
	require.NoError(t, errors.Join(err, file.Close()))
	t.Cleanup(func() { endRecorded(t, filepath.Join(h.dir, "state/jails", name, "zygote")) })
}

// The whole way of a step into a jail and back, with the real launcher and library.
func TestStepInJail(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	checkTemplateIsOfSlurmdsMounts(t, h)
	for _, step := range [][]string{
		{"HOST_STEP=4294967291", "HOST_SCRIPT=" + h.dir + "/spool/job00007/slurm_script"},
		{"HOST_STEP=0"},
	} {
		out := h.runCalls(t, stepCalls, step...)
		assert.Contains(t, out, "marker jail")
		assert.NotContains(t, out, "error")
	}
	// Devices are all of the job's or none: a list that cannot be read whole is a fault.
	out := h.runCalls(t, stepCalls, "HOST_STEP=0", "SLURM_STEP_GPUS="+strings.Repeat("0,", 3000)+"0")
	assert.Contains(t, out, "error: gojail: cannot read SLURM_STEP_GPUS of the step: it is too long")
	assert.NotContains(t, out, "marker")
	out = h.runCalls(t, stepCalls, "HOST_STEP=0", "SLURM_STEP_GPUS="+strings.Repeat("0,", 300)+"0")
	assert.Contains(t, out, "marker jail")
	out = h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
	assert.Equal(t, "init 0\njob_epilog 0\n", out)
	assert.NoDirExists(t, filepath.Join(h.dir, "state/jobs/7"))
	assert.NoDirExists(t, filepath.Join(h.dir, "scratch/jobs/7"))
}
