// SPDX-License-Identifier: Apache-2.0

// Package systemd tests the units.
package systemd

import (
	"fmt"
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

// TestUnitsAreValid: systemd has nothing to say of the units, nor of Slurm's with the drop-ins, of this machine and of GOJAIL_RELEASE.
func TestUnitsAreValid(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze, of Debian's package systemd")
	}
	if _, err := os.Stat("../../build/sbin/gojail"); err != nil {
		t.Skip("needs what is built: run make first")
	}
	own, err := filepath.Glob("*.service")
	require.NoError(t, err)
	timers, err := filepath.Glob("*.timer")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(own)*len(timers), 6)
	own = append(own, timers...)
	roots := []string{"/"}
	if release := os.Getenv("GOJAIL_RELEASE"); release != "" {
		roots = append(roots, "../../build/cache/slurm-"+release)
	}
	for _, root := range roots {
		slurm := filepath.Join(root, "usr/lib/systemd/system")
		t.Run(filepath.Base(root), func(t *testing.T) {
			if _, err := os.Stat(slurm + "/slurmctld.service"); err != nil {
				t.Skip("needs slurmctld and slurmd: make deps")
			}
			units := copyUnits(t, slurm, own)
			out, err := verify(append(units, "--recursive-errors=no")...)
			assert.NoError(t, err)
			assert.Empty(t, out)
			testOrder(t, units)
		})
	}
}

// copyUnits copies gojail's units, and Slurm's with the drop-ins, to a directory, and returns their paths.
func copyUnits(t *testing.T, slurm string, own []string) []string {
	t.Helper()
	dir := t.TempDir()
	units := []string{dir + "/slurmd.service", dir + "/slurmctld.service"}
	for _, path := range own {
		units = append(units, filepath.Join(dir, path))
		copyUnit(t, path, units[len(units)-1])
	}
	for name, unit := range dropIns {
		copyUnit(t, filepath.Join(slurm, unit), filepath.Join(dir, unit))
		copyUnit(t, name, filepath.Join(dir, unit+".d", name))
	}
	return units
}

func verify(arguments ...string) (string, error) {
	out, err := exec.Command("systemd-analyze", append([]string{"verify", "--man=no"}, arguments...)...).CombinedOutput()
	return string(out), err
}

// testOrder has systemd find out what slurmd and slurmctld start after: what is made to start after them closes a cycle.
func testOrder(t *testing.T, units []string) {
	t.Helper()
	dir := filepath.Dir(units[0])
	const mount = "[Unit]\nDefaultDependencies=no\nAfter=%s\n[Mount]\nWhat=tmpfs\nType=tmpfs\nWhere=%s\n"
	for first, test := range map[string]struct{ after, text string }{
		"srv-jails.mount":               {"slurmd.service", fmt.Sprintf(mount, "slurmd.service", "/srv/jails")},
		"gojail-vf.service":             {"slurmd.service", ""},
		"var-lib-slurm-slurmctld.mount": {"slurmctld.service", fmt.Sprintf(mount, "slurmctld.service", "/var/lib/slurm/slurmctld")},
	} {
		file := filepath.Join(dir, first)
		if test.text == "" {
			file = filepath.Join(dir, first+".d/late.conf")
			test.text = "[Unit]\nAfter=" + test.after + "\n"
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		}
		require.NoError(t, os.WriteFile(file, []byte(test.text), 0o644))
		out, _ := verify(filepath.Join(dir, test.after), filepath.Join(dir, first))
		assert.Contains(t, out, "ordering cycle", "%s does not wait for %s", test.after, first)
		require.NoError(t, os.Remove(file))
	}
}

// TestMountThatWaits: what docs/operations.md says of NFS. systemd ends a mount that takes longer than 90 s, but not one
// with bg.
func TestMountThatWaits(t *testing.T) {
	const generator = "/usr/lib/systemd/system-generators/systemd-fstab-generator"
	if _, err := os.Stat(generator); err != nil {
		t.Skip("needs systemd-fstab-generator, of Debian's package systemd")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/fstab", []byte("server:/jails /srv/jails nfs4 bg 0 0\nserver:/x /srv/x nfs4 retry=100000 0 0\n"), 0o644))
	cmd := exec.Command(generator, dir, dir, dir)
	cmd.Env = append(os.Environ(), "SYSTEMD_FSTAB="+dir+"/fstab")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for unit, waits := range map[string]bool{"srv-jails.mount": true, "srv-x.mount": false} {
		text, err := os.ReadFile(filepath.Join(dir, unit))
		require.NoError(t, err)
		assert.Equal(t, waits, strings.Contains(string(text), "TimeoutSec=infinity\n"), "%s", text)
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

// TestUnitsNeedNoHome: systemd mounts no file system anew for a unit that may be of a server that is away: with ProtectHome=, a dead NFS
// server of /home keeps it from starting, and slurmd with it where that waits. The exporter cannot do without, as DynamicUser=
// implies it: nothing waits for that one.
func TestUnitsNeedNoHome(t *testing.T) {
	units, err := filepath.Glob("*.service")
	require.NoError(t, err)
	drop, err := filepath.Glob("*.conf")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(units)+len(drop), 7)
	mounts := []string{"ProtectHome", "ReadOnlyPaths", "ReadWritePaths", "InaccessiblePaths", "TemporaryFileSystem", "RootDirectory", "DynamicUser",
		"BindPaths", "BindReadOnlyPaths", "NoExecPaths", "ExecPaths", "MountImages", "RootImage"}
	for _, name := range append(units, drop...) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			key, _, _ := strings.Cut(line, "=")
			switch {
			case name == "gojail-exporter.service":
				assert.NotContains(t, []string{"Before", "RequiredBy", "Type", "TimeoutStartSec"}, key, "%s: something would wait for it", name)
			case line == "ReadWritePaths=-/etc/modprobe.d": // on the node's own disk
			default:
				assert.NotContains(t, mounts, key, name)
				assert.NotEqual(t, "ProtectSystem=strict", line, "%s: it mounts all of / anew", name)
			}
		}
	}
}

// TestPresetDisablesAll: at the first boot of an image systemd enables what no preset disables.
func TestPresetDisablesAll(t *testing.T) {
	text, err := os.ReadFile("50-gojail.preset")
	require.NoError(t, err)
	units, err := filepath.Glob("gojail-*.*")
	require.NoError(t, err)
	require.Len(t, units, 6)
	for _, unit := range units {
		assert.Contains(t, string(text), "disable "+unit+"\n")
	}
}
