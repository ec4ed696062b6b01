// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFirstPID: namespaces of one zygote begin as far apart as spank/launcher/first_pid.c says, in the kernel's limits.
func TestFirstPID(t *testing.T) {
	program := filepath.Join(t.TempDir(), "first_pid")
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I../../spank", "-o", program,
		"testdata/first_pid.c", "../../spank/launcher/first_pid.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	choose := func(count, limit int) (pids []int) {
		out, err := exec.Command(program, fmt.Sprint(count), fmt.Sprint(limit)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, line := range strings.Fields(string(out)) {
			var pid int
			_, err := fmt.Sscan(line, &pid)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		require.Len(t, pids, count+2)
		return pids
	}
	for _, limit := range []int{301, 302, 32768, 131072, 4194304} { // the kernel's least and most
		for _, count := range []int{1, 2, 10, 100, 1000, 10000} {
			pids := choose(count, limit)
			assert.Equal(t, 300, pids[count], "the first of all")
			assert.Equal(t, limit-1, pids[count+1], "the last of all")
			pids = slices.Sorted(slices.Values(pids[:count]))
			assert.GreaterOrEqual(t, pids[0], 300)
			assert.Less(t, pids[count-1], limit)
			apart := int(float64(limit-300) / math.Sqrt(5) / float64(count))
			for i := range count - 1 {
				require.GreaterOrEqual(t, pids[i+1]-pids[i], apart, "%d of %d, %d", count, limit, i)
			}
		}
	}
	for _, limit := range []int{0, 1, 300} { // what was read is no limit
		assert.Equal(t, []int{0, 0, 0}, choose(1, limit), limit)
	}
}
