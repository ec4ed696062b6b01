// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStepsWithAContainer: a step with --container is known by what Slurm has decided: in slurmstepd up to 26.05, in its plugin from
// 26.11 on. A bundle below the spool directory, or none there, says nothing beside that.
func TestStepsWithAContainer(t *testing.T) {
	for _, c := range []struct {
		name         string
		ofSlurmstepd string // slurmstepd's variable; "": it has none
		soname       string // of the runtime plugin; "": none is loaded
		ofRuntime    string // what the plugin has
		bundle       bool
		want         int // exit status; 0: with a container
	}{
		{"26.05, with a container elsewhere", "\"x\"", "", "", false, 0},
		{"26.05, without one", "NULL", "", "", true, 1},
		{"26.11, runtime/oci, with a container elsewhere", "", "runtime_oci.so", "const void *oci_conf = \"x\";", false, 0},
		{"26.11, runtime/oci, without one", "", "runtime_oci.so", "const void *oci_conf;", true, 1},
		{"26.11, runtime/none", "", "runtime_none.so", "int none;", true, 1},
		{"26.11, another runtime with such a variable", "", "runtime_other.so", "const void *oci_conf = \"x\";", false, 1},
		{"later, runtime/oci without the variable, with a bundle", "", "runtime_oci.so", "int other;", true, 0},
		{"later, runtime/oci without the variable or a bundle", "", "runtime_oci.so", "int other;", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			program, spool := filepath.Join(dir, "oci"), filepath.Join(dir, "spool")
			args := []string{"-o", program, "testdata/oci.c", "../../spank/plugin/oci.c", "-ldl", "-rdynamic"}
			if c.ofSlurmstepd != "" {
				args = append(args, "-DOF_SLURMSTEPD="+c.ofSlurmstepd)
			}
			require.NoError(t, compile(args...))
			run := []string{spool}
			if c.soname != "" {
				source, plugin := filepath.Join(dir, "runtime.c"), filepath.Join(dir, c.soname)
				require.NoError(t, os.WriteFile(source, []byte(c.ofRuntime), 0o644))
				require.NoError(t, compile("-shared", "-o", plugin, source, "-Wl,-soname,"+c.soname))
				run = append(run, plugin)
			}
			require.NoError(t, os.MkdirAll(spool, 0o755))
			if c.bundle {
				require.NoError(t, os.Mkdir(spool+"/oci-job7-0", 0o755))
			}
			cmd := exec.Command(program, run...)
			out, _ := cmd.CombinedOutput()
			assert.Equal(t, c.want, cmd.ProcessState.ExitCode(), "%s", out)
		})
	}
}
