// SPDX-License-Identifier: Apache-2.0

// Package systemd tests the units.
package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dropIns are the drop-ins, by name, and the units that each is for.
var dropIns = map[string]string{
	"slurmd.conf":         "slurmd.service",
	"slurmd-dynamic.conf": "slurmd.service",
	"slurmctld.conf":      "slurmctld.service",
}

// copyUnit copies a unit or a drop-in to a directory, with the paths of what make has built.
func copyUnit(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	build, err := filepath.Abs("../../build")
	require.NoError(t, err)
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	text = []byte(strings.NewReplacer("/usr/local/sbin", build+"/sbin", "/usr/local/lib/gojail", here).Replace(string(text)))
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, text, 0o644))
}

// TestUnitsAreValid: systemd has nothing to say of the units, nor of Slurm's with the drop-ins, of each release that is here.
func TestUnitsAreValid(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze, of Debian's package systemd")
	}
	if _, err := os.Stat("../../build/sbin/gojail"); err != nil {
		t.Skip("needs what is built: run make first")
	}
	roots, err := filepath.Glob("../../build/cache/slurm-[0-9][0-9].[0-9][0-9]")
	require.NoError(t, err)
	own, err := filepath.Glob("*.service")
	require.NoError(t, err)
	require.NotEmpty(t, own)
	for _, root := range append(roots, "/") {
		slurm := filepath.Join(root, "usr/lib/systemd/system")
		t.Run(filepath.Base(root), func(t *testing.T) {
			if _, err := os.Stat(slurm + "/slurmctld.service"); err != nil {
				t.Skip("needs slurmctld and slurmd: make deps")
			}
			dir := t.TempDir()
			units := []string{dir + "/slurmd.service", dir + "/slurmctld.service"}
			for _, path := range own {
				units = append(units, filepath.Join(dir, path))
				copyUnit(t, path, units[len(units)-1])
			}
			copyUnit(t, "gojail-nccl.timer", dir+"/gojail-nccl.timer")
			for name, unit := range dropIns {
				copyUnit(t, filepath.Join(slurm, unit), filepath.Join(dir, unit))
				copyUnit(t, name, filepath.Join(dir, unit+".d", name))
			}
			out, err := exec.Command("systemd-analyze", append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...).CombinedOutput()
			assert.NoError(t, err)
			assert.Empty(t, string(out))
		})
	}
}

// TestNoDropInEndsSteps: the only KillMode= of slurmd is the one that leaves steps and the holders of jails alone.
func TestNoDropInEndsSteps(t *testing.T) {
	for name, unit := range dropIns {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "KillMode=") {
				assert.Equal(t, "slurmd.service KillMode=process", unit+" "+strings.TrimSpace(line), name)
			}
		}
	}
}
