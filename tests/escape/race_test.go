// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// countRounds returns the number of launches for each race.
func countRounds(quick, all int) int {
	if whole {
		return all
	}
	return max(quick/int(harness.Slow), 5)
}

// swapUntilEnd exchanges two names, as alice on the node, as fast as possible until the test ends.
func (s *site) swapUntilEnd(t *testing.T, one, other string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{attackPath, "swap", one, other}})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		for _, p := range s.Find("attack swap " + one) {
			s.Root("kill", fmt.Sprint(p.Pid))
		}
		cmd.Wait()
		cancel()
		assert.Empty(t, stderr.String(), "the swapping ended early")
	})
}

// requireNodeUnchanged requires that the node has the same mounts, files and daemons after a race as before.
func (s *site) requireNodeUnchanged(t *testing.T) {
	t.Helper()
	look := func() string {
		mounts, err := os.ReadFile(s.Path("/proc/1/mountinfo"))
		require.NoError(t, err)
		files, err := exec.Command("find", s.Path("/etc"), s.Path(trap), "-newer", s.Path(outside), "-printf", "%p %y %u %m\n").CombinedOutput()
		require.NoError(t, err, string(files))
		return string(mounts) + string(files)
	}
	before := look()
	var daemons []harness.Process
	for _, name := range []string{"munged", "slurmctld", "slurmd"} {
		for _, p := range s.Find("/" + name) {
			if p.Status["PPid"] == "1" && strings.HasPrefix(p.Status["Name"], name) {
				daemons = append(daemons, p)
			}
		}
	}
	require.Len(t, daemons, 4, "munged, slurmctld, two slurmd")
	t.Cleanup(func() {
		assert.Equal(t, before, look(), "the node is changed")
		for _, daemon := range daemons {
			now, err := s.Process(daemon.Pid)
			assert.NoError(t, err, "a daemon of the node has ended: %s", daemon.Command)
			assert.Equal(t, daemon.Status["Name"], now.Status["Name"], daemon.Command)
		}
	})
}

// trap is a directory of the node with one file, "name".
const trap = "/srv/trap"

// makeTrap creates the trap on the node.
func (s *site) makeTrap() error {
	if err := os.Mkdir(s.Path(trap), 0o700); err != nil {
		return err
	}
	return os.WriteFile(s.Path(trap+"/name"), []byte("trap\n"), 0o644)
}

// outcomes counts launches by outcome: "ran", or the reason for which they failed.
type outcomes map[string]int

func (o outcomes) String() (text string) {
	for what, times := range o {
		text += fmt.Sprintf("\n%4d %s", times, what)
	}
	return text
}

// launchStep runs one step and counts its outcome. A step that fails must print one line of gojail's with the reason.
func (s *site) launchStep(t *testing.T, user string, seen outcomes, args ...string) harness.Result {
	t.Helper()
	r := s.Run(user, append([]string{"srun", "-Q", "-wn1", "--jail=owned"}, args...)...)
	assert.NotContains(t, r.Stdout, escaped, r)
	if r.Code == 0 {
		seen["ran"]++
		return r
	}
	seen[findGojailLine(r.Stderr)]++
	assert.Contains(t, r.Stderr, "gojail: ", r)
	return r
}

// findGojailLine returns the line of gojail among those of Slurm.
func findGojailLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if _, ours, found := strings.Cut(line, "gojail: "); found {
			return strings.TrimSpace(ours)
		}
	}
	return stderr
}

// TestRaceTemplate swaps a mount point of gojail's own with something else, again and again,
// while the template is made and while jobs start in it.
func TestRaceTemplate(t *testing.T) {
	s := sharedSite(t)
	ran := 0
	for _, race := range []struct {
		name string
		path string // in the jail
		make func(t *testing.T, other string)
	}{
		{"false proc", "/proc", func(t *testing.T, other string) {
			s.startVictim(t, "node", onNode)
			s.plantFalseProc(t, other, s.findVictim(t, "node"))
		}},
		{"empty proc", "/proc", s.directoryMaker("sys", "bus", "irq")},
		{"link for proc", "/proc", s.linkMaker("/etc")},
		{"link for tmp", "/tmp", s.linkMaker("../../../../../etc")},
		{"link for dev", "/dev", s.linkMaker("/usr")},
		{"empty sys", "/sys", s.directoryMaker("fs/cgroup", "firmware")},
		{"link for home", "/home", s.linkMaker("/etc")},
		{"link for a local directory", "/mnt", s.linkMaker("/etc")},
		{"link for spool", "/var/spool/slurmd", s.linkMaker("/etc")},
	} {
		t.Run(race.name, func(t *testing.T) {
			s.giveRootToAlice(t)
			parent := s.Path(owned + filepath.Dir(race.path))
			require.NoError(t, os.Chown(parent, 5001, 5001))
			t.Cleanup(func() { os.Chown(parent, 0, 0) })
			s.requireNodeUnchanged(t)
			other := race.path + "-other"
			race.make(t, other)
			s.restoreName(t, race.path, other)
			s.swapUntilEnd(t, owned+race.path, owned+other)
			seen := outcomes{}
			for i := range countRounds(6, 200) {
				if i%2 == 0 {
					s.Gojail("n1", "reload", "owned") // may fail, then the step does
				}
				user := harness.Alice
				if i%4 == 3 {
					user = "root" // who may write to everything that is not read-only
				}
				s.launchStep(t, user, seen, attackPath, "run", "view", "proc-root", "descriptors", "masked", "sysctl", "cgroup-write", "see")
				if t.Failed() {
					break
				}
			}
			t.Log(seen)
			ran += seen["ran"]
		})
	}
	assert.NotZero(t, ran, "every launch was refused")
}

// linkMaker returns a function that makes the other name a symbolic link to the target.
func (s *site) linkMaker(target string) func(t *testing.T, other string) {
	return func(t *testing.T, other string) {
		require.NoError(t, os.Symlink(target, s.Path(owned+other)))
	}
}

// directoryMaker returns a function that makes directories below the other name.
func (s *site) directoryMaker(inside ...string) func(t *testing.T, other string) {
	return func(t *testing.T, other string) {
		for _, dir := range inside {
			require.NoError(t, os.MkdirAll(s.Path(owned+other+"/"+dir), 0o755))
		}
	}
}

// restoreName gives the swapped content at path its own name again at the end, and removes the other.
func (s *site) restoreName(t *testing.T, path, other string) {
	t.Helper()
	number := func() uint64 {
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(s.Path(owned+path), &st))
		return st.Ino
	}
	before := number()
	t.Cleanup(func() {
		if number() != before {
			require.NoError(t, unix.Renameat2(unix.AT_FDCWD, s.Path(owned+path), unix.AT_FDCWD, s.Path(owned+other), unix.RENAME_EXCHANGE))
		}
		require.NoError(t, os.RemoveAll(s.Path(owned+other)))
	})
}
