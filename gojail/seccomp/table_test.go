// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write syscalls.txt again")

// TestTable compares the table with golang.org/x/sys in the version of go.mod.
func TestTable(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	require.NoError(t, err)
	define := regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)$`)
	rows := map[string][]string{}
	architectures := []string{"amd64", "386", "arm64"}
	for i, arch := range architectures {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
		require.NoError(t, err)
		for _, m := range define.FindAllStringSubmatch(string(text), -1) {
			name := strings.ToLower(m[1])
			if rows[name] == nil {
				rows[name] = slices.Repeat([]string{"-"}, len(architectures))
			}
			rows[name][i] = m[2]
		}
	}
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&want, "%s %s\n", name, strings.Join(rows[name], " "))
	}
	if *update {
		require.NoError(t, os.WriteFile("syscalls.txt", []byte(want.String()), 0o644))
		return
	}
	assert.Equal(t, want.String(), table, "run: go test ./gojail/seccomp -run TestTable -update")
	assert.Greater(t, len(rows), 400)
}
