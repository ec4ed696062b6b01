// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prologCases are configurations of Slurm, by file, and what the Prolog prints; "" where jobs may start. LIB is its directory.
var prologCases = map[string]struct {
	files map[string]string
	want  string
}{
	"beside slurm.conf":   {files: map[string]string{"plugstack.conf": "\t required  LIB/spank_gojail.so config=/x # ours\n"}},
	"included":            {files: map[string]string{"plugstack.conf": "required /x.so\ninclude d/*.conf\n", "d/a.conf": "", "d/b.conf": "required LIB/spank_gojail.so"}},
	"named in slurm.conf": {files: map[string]string{"slurm.conf": "SlurmUser=x plugstackconfig = DIR/other.conf # x\n", "other.conf": "required LIB/spank_gojail.so\n"}},
	"named in an include": {files: map[string]string{"slurm.conf": "Include more.conf\n", "more.conf": "PlugStackConfig=\"DIR/other.conf\"\n",
		"other.conf": "required LIB/spank_gojail.so\n"}},
	"named in an include of the cluster": {files: map[string]string{"slurm.conf": "ClusterName=Tux Include=no\nInclude DIR/conf.%c\n", "conf.tux": "PlugStackConfig=DIR/other.conf\n",
		"other.conf": "required LIB/spank_gojail.so\n"}},
	"not this one": {files: map[string]string{"slurm.conf": "XPlugStackConfig=DIR/other.conf\n#PlugStackConfig=DIR/other.conf\n", "other.conf": "required LIB/spank_gojail.so\n"},
		want: "DIR/plugstack.conf does not name LIB/spank_gojail.so, nor does a file that it includes; add the line: required LIB/spank_gojail.so"},
	"slurm.conf missing": {want: "cannot read DIR/slurm.conf, or a file that it includes: No such file or directory"},
	"comment":            {files: map[string]string{"plugstack.conf": "#required LIB/spank_gojail.so\n"}, want: "DIR/plugstack.conf does not name"},
	"no path":            {files: map[string]string{"plugstack.conf": "required\nLIB/spank_gojail.so\n"}, want: "DIR/plugstack.conf does not name"},
	"letters":            {files: map[string]string{"plugstack.conf": "Required LIB/spank_gojail.so\n"}, want: "DIR/plugstack.conf does not name"},
	"circle":             {files: map[string]string{"plugstack.conf": "include plugstack.conf\n"}, want: "DIR/plugstack.conf: too many nested includes"},
	"circle of slurm.conf": {files: map[string]string{"slurm.conf": "include slurm.conf\n"},
		want: "cannot read DIR/slurm.conf, or a file that it includes: Too many levels of symbolic links"},
	"a directory": {files: map[string]string{"plugstack.conf/x": ""}, want: "DIR/plugstack.conf does not name"},
	"long lines": {files: map[string]string{"plugstack.conf": "required " + strings.Repeat("x", 9000) + "\ninclude " + strings.Repeat("y", 3000) + "\n",
		"slurm.conf": "NodeName=" + strings.Repeat("n", 9000) + "\n"}, want: "is too long"},
	"long include": {files: map[string]string{"slurm.conf": "Include " + strings.Repeat("y", 3000) + "\n"}, want: "or a file that it includes: File name too long"},
	"optional":     {files: map[string]string{"plugstack.conf": "optional LIB/spank_gojail.so\n"}, want: "LIB/spank_gojail.so is optional there"},
	"another one":  {files: map[string]string{"plugstack.conf": "required /elsewhere/spank_gojail.so\n"}, want: "names another plugin, /elsewhere/spank_gojail.so; it must have the line: required LIB/spank_gojail.so"},
	"both":         {files: map[string]string{"plugstack.conf": "optional /elsewhere/spank_gojail.so\nrequired LIB/../lib/spank_gojail.so\n"}},
}

// buildProlog compiles the Prolog, with the sanitizers, into a directory of its own, and returns its path.
func buildProlog(t *testing.T) string {
	t.Helper()
	libDir := filepath.Join(t.TempDir(), "lib")
	require.NoError(t, os.Mkdir(libDir, 0o755))
	sources, err := filepath.Glob("../../spank/*/*.c")
	require.NoError(t, err)
	sources = slices.DeleteFunc(sources, func(path string) bool {
		return !strings.Contains(path, "/prolog/") && !strings.Contains(path, "/common/")
	})
	program := filepath.Join(libDir, "prolog-1")
	out, err := exec.Command("gcc", append([]string{"-std=gnu11", "-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`, "-I../../include", "-I../../spank", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-o", program}, sources...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// TestProlog runs the Prolog as slurmd does.
func TestProlog(t *testing.T) {
	program := buildProlog(t)
	libDir := filepath.Dir(program)
	run := func(conf string) (string, error) {
		cmd := exec.Command(program)
		cmd.Env = []string{"SLURM_CONF=" + conf}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	text, err := run("/etc/slurm/slurm.conf")
	assert.Error(t, err)
	assert.Contains(t, text, "spank_gojail.so: No such file or directory; install gojail's plugin for this release of Slurm")
	require.NoError(t, os.WriteFile(filepath.Join(libDir, "spank_gojail.so"), nil, 0o644))
	text, err = run("slurm.conf")
	assert.Error(t, err)
	assert.Contains(t, text, "SLURM_CONF is not an absolute path")
	for name, test := range prologCases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			place := strings.NewReplacer("LIB", libDir, "DIR", dir)
			if test.files != nil && test.files["slurm.conf"] == "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm.conf"), []byte("ClusterName=x\n"), 0o644))
			}
			for file, text := range test.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(place.Replace(text)), 0o644))
			}
			text, err := run(filepath.Join(dir, "slurm.conf"))
			assert.Equal(t, test.want != "", err != nil, text)
			assert.Contains(t, text, place.Replace(test.want))
			assert.LessOrEqual(t, strings.Count(text, "\n"), 1, text)
		})
	}
}

// TestPrologNotesWhatTheJobAskedFor requires the file that gojail-session reads, of the variables that slurmd sets; that a job starts where it
// cannot be written; and that the file of an earlier job of the same number, which may be another user's, is gone in any case.
func TestPrologNotesWhatTheJobAskedFor(t *testing.T) {
	p := newPrologNode(t)
	run := func(want, job string, env ...string) {
		t.Helper()
		p.leaveNote(t, job)
		assert.Equal(t, want, p.run(t, append([]string{"SLURM_JOB_ID=" + job, "SLURM_JOB_GID=6"}, env...)...), job)
	}
	const fails, jail = "gojail: what the job asks for cannot be noted; ssh into it works after its first step\n", "SPANK_SLURM_JAIL="
	run("", "7", "SLURM_JOB_UID=5", "SPANK_SLURM_JAIL=debian", "SPANK_SLURM_JAIL_MOUNT=/a\n:/b", "SLURM_JOB_GPUS=0,2-3", "SPANK_SLURM_JOB_GPUS=1", "SLURM_JAIL_NET=no")
	text, err := os.ReadFile(filepath.Join(p.state, "allocated/7"))
	require.NoError(t, err)
	assert.Equal(t, "uid=5\x00gid=6\x00jail=debian\x00net=\x00root=\x00mounts=/a\n:/b\x00gpus=0,2-3\x00", string(text))
	run(fails, "8", jail)
	run(fails, "9", jail, "SLURM_JOB_UID=5x")
	run(fails, "11", "SLURM_JOB_UID=5", jail+strings.Repeat("x", 65))
	run(fails, "12", jail, "SLURM_JOB_UID=5", "SPANK_SLURM_JAIL_MOUNT="+strings.Repeat("x", 8193))
	run("", "13", "SLURM_JOB_UID=5")                                             // from a host without the plugin
	require.NoError(t, os.Mkdir(filepath.Join(p.state, "allocated/.16"), 0o700)) // in the place of the temporary file: it cannot be written
	run(fails, "16", jail, "SLURM_JOB_UID=5")
	require.NoError(t, os.Remove(filepath.Join(p.state, "allocated/.16")))
	p.write(t, "slurm.conf", "PrologFlags=Contain,runinjob\n")
	run("", "15", jail, "SLURM_JOB_UID=5")
	p.write(t, "slurm.conf", "ClusterName=x\n")
	assert.Equal(t, []string{"7"}, p.listNotes(t))
	assert.Equal(t, fails, p.run(t, "SLURM_JOB_ID=x", "SLURM_JOB_UID=5", jail))
	assert.Equal(t, fails, p.run(t, "SLURM_JOB_ID=../10", "SLURM_JOB_UID=5", jail))
	require.NoError(t, os.Chmod(p.state, 0o777)) // others can write there
	assert.Equal(t, fails, p.run(t, "SLURM_JOB_ID=14", "SLURM_JOB_UID=5", jail))
	require.NoError(t, os.Chmod(p.state, 0o700))
	assert.Equal(t, []string{"7"}, p.listNotes(t))
	assert.NoFileExists(t, p.asked, "no launcher where no job of the number has left anything")
}

// TestPrologEndsWhatAnEarlierJobLeft requires that the Prolog has the launcher end it, with the owner of the present job and its time; and that
// a job starts where that fails.
func TestPrologEndsWhatAnEarlierJobLeft(t *testing.T) {
	p := newPrologNode(t)
	for name, row := range map[string]struct {
		launcher string
		env      []string
		begun    string
		want     string
	}{
		"a job in a jail":     {env: []string{"SPANK_SLURM_JAIL=debian", "SLURM_JOB_START_TIME=1800000000"}, begun: "1800000000"},
		"a job without":       {env: []string{"SLURM_JOB_START_TIME=1800000000"}, begun: "1800000000"},
		"Slurm up to 22.05":   {begun: "[0-9]{10}"},
		"the user's variable": {env: []string{"SPANK_SLURM_JOB_START_TIME=1", "SLURM_JOB_START_TIME=0"}, begun: "[0-9]{10}"},
		"it cannot be ended": {launcher: "echo error it is busy >&3", begun: "[0-9]{10}",
			want: "gojail: what an earlier job 7 left on this node is not removed: it is busy\n"},
		"no launcher": {launcher: "-", want: "gojail: what an earlier job 7 left on this node is not removed: cannot start LIB/gojail-launcher: No such file or directory; " +
			"ask your administrator to install gojail again on this node\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(p.asked))
			p.leaveNote(t, "7")
			require.NoError(t, os.MkdirAll(filepath.Join(p.state, "jobs/7"), 0o700))
			p.setLauncher(t, row.launcher)
			want := strings.ReplaceAll(row.want, "LIB", p.lib)
			assert.Equal(t, want, p.run(t, append([]string{"SLURM_JOB_ID=7", "SLURM_JOB_UID=5", "SLURM_JOB_GID=6"}, row.env...)...))
			asked, _ := os.ReadFile(p.asked)
			if row.begun != "" {
				assert.Regexp(t, "(?m)^earlier state="+p.state+" config=/x node=n1 deadline=[0-9]+ job=7 uid=5 begun="+row.begun+"$", string(asked))
			}
			if row.env == nil {
				assert.Empty(t, p.listNotes(t))
			}
		})
	}
}

// prologNode is a node with the Prolog, as slurmd runs it, and a FAKE launcher that writes down what it is asked.
type prologNode struct {
	lib, conf, state, asked string
}

func newPrologNode(t *testing.T) *prologNode {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: the state directory is root's")
	}
	lib, dir := filepath.Dir(buildProlog(t)), t.TempDir()
	p := &prologNode{lib: lib, conf: dir, state: dir + "/n1", asked: dir + "/asked"}
	plugin := filepath.Join(lib, "spank_gojail.so")
	p.write(t, "slurm.conf", "ClusterName=x\n")
	p.write(t, "plugstack.conf", "optional "+plugin+"\nrequired "+plugin+" config=/x  state="+dir+"/%n # ours\nrequired "+plugin+" state=/y\n")
	require.NoError(t, os.WriteFile(plugin, nil, 0o644))
	p.setLauncher(t, "")
	return p
}

func (p *prologNode) write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(p.conf, file), []byte(text), 0o644))
}

// setLauncher replaces the launcher by one that runs a command, or "" to succeed; "-": there is none.
func (p *prologNode) setLauncher(t *testing.T, command string) {
	t.Helper()
	path := filepath.Join(p.lib, "gojail-launcher")
	require.NoError(t, os.RemoveAll(path))
	if command == "" {
		command = "echo ok >&3"
	}
	if command != "-" {
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho \"$*\" >>"+p.asked+"\n"+command+"\n"), 0o755))
	}
}

// leaveNote writes what the Prolog of an earlier job noted.
func (p *prologNode) leaveNote(t *testing.T, job string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(p.state, "allocated"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.state, "allocated", job), []byte("uid=4\x00gid=4\x00jail=debian\x00"), 0o600))
}

// run runs the Prolog, which must succeed, and returns what it prints.
func (p *prologNode) run(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(p.lib, "prolog-1"))
	cmd.Env = append([]string{"SLURM_CONF=" + p.conf + "/slurm.conf", "SLURMD_NODENAME=n1"}, env...)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
	return string(out)
}

func (p *prologNode) listNotes(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.state, "allocated"))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
