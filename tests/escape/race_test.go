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

// rounds is how many launches each race gets.
func rounds(quick, all int) int {
	if whole {
		return all
	}
	return max(quick/int(harness.Slow), 5)
}

// swapping exchanges two names, as alice on the node, as fast as it can until the test ends.
func (s *site) swapping(t *testing.T, one, other string) {
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

// nodeUnchanged says what the node must have after a race as before it: its mounts, its files and its daemons.
func (s *site) nodeUnchanged(t *testing.T) {
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

// trap is a directory of the node's with one file, name.
const trap = "/srv/trap"

func (s *site) makeTrap() error {
	if err := os.Mkdir(s.Path(trap), 0o700); err != nil {
		return err
	}
	return os.WriteFile(s.Path(trap+"/name"), []byte("trap\n"), 0o644)
}

// outcomes of launches: "ran", or why not.
type outcomes map[string]int

func (o outcomes) String() (text string) {
	for what, times := range o {
		text += fmt.Sprintf("\n%4d %s", times, what)
	}
	return text
}

// launch runs one step and counts how it went. A step that fails says why in one line of gojail's.
func (s *site) launch(t *testing.T, user string, seen outcomes, args ...string) harness.Result {
	t.Helper()
	r := s.Run(user, append([]string{"srun", "-Q", "-wn1", "--jail=owned"}, args...)...)
	assert.NotContains(t, r.Stdout, escaped, r)
	if r.Code == 0 {
		seen["ran"]++
		return r
	}
	seen[oneLine(r.Stderr)]++
	assert.Contains(t, r.Stderr, "gojail: ", r)
	return r
}

// oneLine is what gojail wrote among the lines of Slurm.
func oneLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if _, ours, found := strings.Cut(line, "gojail: "); found {
			return strings.TrimSpace(ours)
		}
	}
	return stderr
}

// TestRaceTemplate: a place that gojail itself mounts on is, every other moment,
// something else, while the jail is assembled and while jobs start in it.
func TestRaceTemplate(t *testing.T) {
	s := shared(t)
	ran := 0
	for _, race := range []struct {
		name string
		path string // in the jail
		make func(t *testing.T, other string)
	}{
		{"false proc", "/proc", func(t *testing.T, other string) {
			s.victim(t, "node", onNode)
			s.falseProc(t, other, s.pidOf(t, "node"))
		}},
		{"empty proc", "/proc", s.directory("sys", "bus", "irq")},
		{"link for proc", "/proc", s.link("/etc")},
		{"link for tmp", "/tmp", s.link("../../../../../etc")},
		{"link for dev", "/dev", s.link("/usr")},
		{"empty sys", "/sys", s.directory("fs/cgroup", "firmware")},
		{"link for home", "/home", s.link("/etc")},
		{"link for a local directory", "/mnt", s.link("/etc")},
		{"link for spool", "/var/spool/slurmd", s.link("/etc")},
	} {
		t.Run(race.name, func(t *testing.T) {
			s.own(t)
			parent := s.Path(owned + filepath.Dir(race.path))
			require.NoError(t, os.Chown(parent, 5001, 5001))
			t.Cleanup(func() { os.Chown(parent, 0, 0) })
			s.nodeUnchanged(t)
			other := race.path + "-other"
			race.make(t, other)
			s.settle(t, race.path, other)
			s.swapping(t, owned+race.path, owned+other)
			seen := outcomes{}
			for i := range rounds(6, 200) {
				if i%2 == 0 {
					s.Gojail("n1", "reload", "owned") // may fail, then the step does
				}
				user := harness.Alice
				if i%4 == 3 {
					user = "root" // who may write to what is not read-only
				}
				s.launch(t, user, seen, attackPath, "run", "view", "proc-root", "descriptors", "masked", "sysctl", "cgroup-write", "see")
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

func (s *site) link(target string) func(t *testing.T, other string) {
	return func(t *testing.T, other string) {
		require.NoError(t, os.Symlink(target, s.Path(owned+other)))
	}
}

func (s *site) directory(inside ...string) func(t *testing.T, other string) {
	return func(t *testing.T, other string) {
		for _, dir := range inside {
			require.NoError(t, os.MkdirAll(s.Path(owned+other+"/"+dir), 0o755))
		}
	}
}

// settle gives what is at path, and was swapped, its own name again in the end, and removes the other.
func (s *site) settle(t *testing.T, path, other string) {
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
