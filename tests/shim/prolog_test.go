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

// TestPrologNotesWhatTheJobAskedFor requires the file that gojail-session reads, of the variables that slurmd sets; and that a job starts
// where it cannot be written.
func TestPrologNotesWhatTheJobAskedFor(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the state directory is root's")
	}
	program := buildProlog(t)
	dir, plugin := t.TempDir(), filepath.Join(filepath.Dir(program), "spank_gojail.so")
	for file, text := range map[string]string{plugin: "", filepath.Join(dir, "slurm.conf"): "ClusterName=x\n",
		filepath.Join(dir, "plugstack.conf"): "optional " + plugin + "\nrequired " + plugin + " config=/x  state=" + dir + "/%n # ours\nrequired " + plugin + " state=/y\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	run := func(want, job string, env ...string) {
		cmd := exec.Command(program)
		cmd.Env = append([]string{"SLURM_CONF=" + dir + "/slurm.conf", "SLURMD_NODENAME=n1", "SLURM_JOB_ID=" + job, "SLURM_JOB_GID=6"}, env...)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s: %s", job, out)
		assert.Equal(t, want, string(out), job)
	}
	const fails, jail = "gojail: what the job asks for cannot be noted; ssh into it works after its first step\n", "SPANK_SLURM_JAIL="
	run("", "7", "SLURM_JOB_UID=5", "SPANK_SLURM_JAIL=debian", "SPANK_SLURM_JAIL_MOUNT=/a\n:/b", "SLURM_JOB_GPUS=0,2-3", "SPANK_SLURM_JOB_GPUS=1", "SLURM_JAIL_NET=no")
	text, err := os.ReadFile(filepath.Join(dir, "n1/allocated/7"))
	require.NoError(t, err)
	assert.Equal(t, "uid=5\x00gid=6\x00jail=debian\x00net=\x00root=\x00mounts=/a\n:/b\x00gpus=0,2-3\x00", string(text))
	run(fails, "8", jail)
	run(fails, "9", jail, "SLURM_JOB_UID=5x")
	run(fails, "x", jail, "SLURM_JOB_UID=5")
	run(fails, "../10", jail, "SLURM_JOB_UID=5")
	run(fails, "11", "SLURM_JOB_UID=5", jail+strings.Repeat("x", 65))
	run(fails, "12", jail, "SLURM_JOB_UID=5", "SPANK_SLURM_JAIL_MOUNT="+strings.Repeat("x", 8193))
	run("", "13", "SLURM_JOB_UID=5") // from a host without the plugin
	entries, err := os.ReadDir(filepath.Join(dir, "n1/allocated"))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, os.Chmod(filepath.Join(dir, "n1"), 0o777)) // others can write there
	run(fails, "14", jail, "SLURM_JOB_UID=5")
	require.NoError(t, os.Chmod(filepath.Join(dir, "n1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm.conf"), []byte("PrologFlags=Contain,runinjob\n"), 0o644))
	run("", "15", jail, "SLURM_JOB_UID=5")
	entries, err = os.ReadDir(filepath.Join(dir, "n1/allocated"))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
