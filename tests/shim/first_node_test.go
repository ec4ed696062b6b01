// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFirstNode: one node of a job speaks for it, whatever form Slurm gives its list of nodes.
func TestFirstNode(t *testing.T) {
	program := filepath.Join(t.TempDir(), "first_node")
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-I../../spank", "-I../../include", "-o", program, "testdata/first_node.c", "../../spank/plugin/first_node.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for list, first := range map[string]string{
		"n1": "n1", "n1,n2": "n1", "n[1-4]": "n1", "n[08-11,3]": "n08", "n[2,4-7],a1": "n2", "gpu-a[3]": "gpu-a3",
		"r[1-2]n[03-10]": "r1n03", "r[5]-x,b": "r5-x",
	} {
		for _, node := range []string{"n1", "n08", "n2", "gpu-a3", "r1n03", "r5-x", "n", "n11", "n[1-4]", "", "b"} {
			cmd := exec.Command(program, list, node)
			err := cmd.Run()
			assert.Equal(t, node == first, err == nil, "%s %q: %v", list, node, err)
			assert.LessOrEqual(t, cmd.ProcessState.ExitCode(), 1, "%s %q", list, node)
		}
	}
	for _, list := range []string{"", "n[1", "n[", ","} {
		assert.Error(t, exec.Command(program, list, "n1").Run(), list)
	}
}
