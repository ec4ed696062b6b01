// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// runStep runs the program in one step of a job of alice's.
func (s *site) runStep(jail string, args ...string) harness.Result {
	p := jailPlace("", harness.Alice, jail)
	return s.Run(p.user, append(append(append([]string{}, p.command...), attackPath), args...)...)
}

// countLeft returns the number of processes that run the program with a verb.
func (s *site) countLeft(verb string) int {
	count := 0
	for _, p := range s.Find(attackPath + " " + verb) {
		if strings.HasPrefix(p.Command, attackPath) && !strings.HasPrefix(p.Status["State"], "Z") {
			count++
		}
	}
	return count
}

// endLeftovers kills the processes that an attack has left on the node, which ignore all other signals.
func (s *site) endLeftovers(t *testing.T, verb string) {
	for _, p := range s.Find(attackPath + " " + verb) {
		s.Root("kill", "-KILL", strconv.Itoa(p.Pid))
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.countLeft(verb) == 0 }))
}

// TestOutliveTheJob requires that a process ends with its job even if it leaves its parent and session and ignores signals.
func TestOutliveTheJob(t *testing.T) {
	s := sharedSite(t)
	for _, attack := range []struct {
		args []string
		many int
	}{
		{[]string{"daemon"}, 1},
		{[]string{"bomb", "400"}, 400},
	} {
		for _, jail := range []string{"open", "closed"} {
			t.Run(attack.args[0]+" in "+jail, func(t *testing.T) {
				t.Cleanup(func() { s.endLeftovers(t, attack.args[0]) })
				r := s.runStep(jail, attack.args...)
				require.Zero(t, r.Code, r)
				require.True(t, s.WaitIdle(), s.Drained())
				if jail == "open" {
					assert.Equal(t, attack.many, s.countLeft(attack.args[0]), "the control: they live on: %s", r)
					return
				}
				assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.countLeft(attack.args[0]) == 0 }),
					"%d of them live on: %s", s.countLeft(attack.args[0]), r)
			})
		}
	}
}

// TestEndOfTheJobIsTheEndOfItsSteps requires that a process that outlives its step ends with the job.
func TestEndOfTheJobIsTheEndOfItsSteps(t *testing.T) {
	s := sharedSite(t)
	t.Cleanup(func() { s.endLeftovers(t, "daemon") })
	job := s.Batch(harness.Alice, "srun "+attackPath+" daemon; "+attackPath+" daemon; srun --overlap "+attackPath+" daemon", "--jail=closed", "-wn1")
	require.Equal(t, "COMPLETED", job.State, job)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.countLeft("daemon") == 0 }), "%d daemons live on", s.countLeft("daemon"))
}

// TestFill requires that a job cannot exceed the limits of gojail.toml.
func TestFill(t *testing.T) {
	s := sharedSite(t)
	const limit, more = 8, 24 // MB
	fill := func(t *testing.T, jail, directory string) (int, harness.Result) {
		r := s.runStep(jail, "fill", directory, strconv.Itoa(more))
		var written int
		fmt.Sscanf(r.Stdout, directory+": %d MB", &written)
		return written, r
	}
	for _, where := range []struct{ name, directory, lines string }{
		{"dev shm", "/dev/shm", `shm_size = "8M"`},
		{"tmp in memory", "/tmp", "tmp = \"tmpfs\"\ntmp_size = \"8M\""},
		{"tmp on disk", "/tmp", `tmp_size = "8M"`},
	} {
		t.Run(where.name, func(t *testing.T) {
			written, r := fill(t, "open", where.directory)
			assert.Equal(t, more, written, "the control: %s", r)
			const root = `root = "/srv/jails/closed"`
			s.configure(t, root, root+"\n"+where.lines)
			written, r = fill(t, "closed", where.directory)
			if strings.Contains(r.Stderr, "does not limit directories") || strings.Contains(r.Stderr, "has no quotas of directories") {
				assert.Zero(t, written, "this file system or kernel has no project quotas, so nothing runs: %s", r)
				return
			}
			require.Zero(t, r.Code, r)
			assert.LessOrEqual(t, written, limit, r)
			assert.Regexp(t, "No space left|Disk quota exceeded", r.Stdout, r)
		})
	}
}

// plantSetuid copies the program to a path of the node, owned by root and setuid or with file capabilities.
func (s *site) plantSetuid(t *testing.T, path string, capabilities bool) {
	t.Helper()
	text, err := os.ReadFile(s.Path(attackPath))
	require.NoError(t, err)
	path = s.Path(path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, text, 0o755))
	t.Cleanup(func() { os.Remove(path) })
	if !capabilities {
		require.NoError(t, os.Chmod(path, 0o755|os.ModeSetuid))
		return
	}
	// struct vfs_cap_data, version 2, effective: CAP_SYS_ADMIN, 21 (include/uapi/linux/capability.h).
	data := []byte{1, 0, 0, 2, 0, 0, 1 << (21 - 16), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	require.NoError(t, unix.Setxattr(path, "security.capability", data, 0))
}

// TestSetuid requires that programs that make their user root on the node do not in a jail.
func TestSetuid(t *testing.T) {
	s := sharedSite(t)
	for _, kind := range []struct {
		name         string
		capabilities bool
	}{{"setuid", false}, {"capabilities", true}} {
		t.Run(kind.name, func(t *testing.T) {
			const program = "/opt/planted"
			for _, jail := range []string{"open", "closed"} {
				s.plantSetuid(t, "/srv/jails/"+jail+program, kind.capabilities)
			}
			s.plantSetuid(t, "/data/alice/planted", kind.capabilities)
			run := func(want, what string, args ...string) {
				t.Helper()
				r := s.Run(harness.Alice, append(args, "root")...)
				assert.Contains(t, r.Stdout, "root "+want, "%s: %s", what, r)
			}
			mounted := "--jail-mount=/data/alice:/mnt"
			run(escaped, "control: on the node", "env", "/data/alice/planted")
			run(escaped, "control: in open", "srun", "-wn1", "--jail=open", program)
			run(held, "the jail's own", "srun", "-wn1", "--jail=closed", program)
			run(held, "of the node's directory", "srun", "-wn1", "--jail=closed", mounted, "/mnt/planted")
			run(held, "of the node's directory, in open", "srun", "-wn1", "--jail=open", mounted, "/mnt/planted")
		})
	}
}
