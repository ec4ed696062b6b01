// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestPlantedSetuid has root in a jail leave a setuid program, with capabilities, wherever it can
// write. A user who then runs it on the node, or in another job, must not become root.
func TestPlantedSetuid(t *testing.T) {
	s := sharedSite(t)
	places := []struct{ inJail, onNode string }{
		{"/opt/evil", "/srv/jails/closed/opt/evil"},
		{"/home/alice/evil", "/srv/jails/closed/home/alice/evil"},
		{"/var/tmp/evil", "/srv/jails/closed/var/tmp/evil"},
		{"/data/evil", "/srv/jails/closed/data/evil"},
		{"/mnt/data/evil", "/var/lib/gojail/n1/local/closed/mnt/data/evil"},
		{"/mnt/evil", "/data/alice/evil"},
	}
	for _, p := range []place{rootOnNode, closedSelf, closedRange} {
		t.Run(p.name, func(t *testing.T) {
			control := p.name == rootOnNode.name
			if !control {
				s.closeJails(t)
			}
			planted, escapes := 0, 0
			for _, where := range places {
				path, command := where.inJail, slices.Clone(p.command)
				if path == "/mnt/evil" {
					command = append(command, "--jail-mount=/data/alice:/mnt")
				}
				if control {
					path, command = where.onNode, nil
				}
				t.Cleanup(func() { os.Remove(s.Path(where.onNode)) })
				r := s.Run(p.user, append(command, attackPath, "plant", path)...)
				info, err := os.Lstat(s.Path(where.onNode))
				if err != nil {
					assert.False(t, control, r)
					continue // it may not write there
				}
				planted++
				t.Logf("%s on the node: %s, uid %d", where.onNode, info.Mode(), info.Sys().(*syscall.Stat_t).Uid)
				for _, user := range []string{harness.Alice, harness.Bob} {
					if where.onNode == "/data/alice/evil" && user == harness.Bob {
						continue // the user cannot reach it
					}
					r := s.Run(user, "env", where.onNode, "root") // setpriv(1) itself goes where root may
					if strings.Contains(r.Stdout, "root "+escaped) {
						escapes++
						assert.True(t, control, "planted at %s, run on the node by %s: %s", where.inJail, user, r)
					}
				}
				if r := s.Run(harness.Bob, "srun", "-wn1", "--jail=closed", where.inJail, "root"); !control && where.inJail != "/mnt/evil" {
					assert.NotContains(t, r.Stdout, "root "+escaped, "planted at %s, run in another job: %s", where.inJail, r)
				}
			}
			assert.NotZero(t, planted, "it could write nowhere")
			if control {
				assert.NotZero(t, escapes, "control: a setuid program works on the node")
			}
		})
	}
}

// TestRangeWhereSetuidWorks requires that --jail-root=range is refused if a setuid program that root in
// the jail leaves could be run: on the node, or in a jail without nosuid.
func TestRangeWhereSetuidWorks(t *testing.T) {
	s := sharedSite(t)
	r := s.Run(harness.Alice, append(slices.Clone(closedRange.command), attackPath, "plant", "/opt/evil")...)
	t.Cleanup(func() { os.Remove(s.Path("/srv/jails/closed/opt/evil")) })
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "set-user-ID", r)
	s.closeJails(t)
	const root = `root = "/srv/jails/open"`
	s.configure(t, root, root+"\njail_root = [\"range\"]")
	r = s.Run(harness.Alice, "srun", "-wn1", "--jail=open", "--jail-root=range", attackPath, "plant", "/opt/evil")
	t.Cleanup(func() { os.Remove(s.Path("/srv/jails/open/opt/evil")) })
	r = s.Run(harness.Bob, "srun", "-wn1", "--jail=open", "/opt/evil", "root")
	assert.NotContains(t, r.Stdout, "root "+escaped, r)
}

// TestRangeAndLaterMounts requires that root in the jail cannot leave a setuid program in what is mounted on the node below the
// jail's root after its template was made, wherever it is mounted and whatever other options the job has.
func TestRangeAndLaterMounts(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	require.Zero(t, s.Run(harness.Alice, append(slices.Clone(closedRange.command), "true")...).Code, "the template is there")
	for _, where := range []string{"/opt", "/home", "/data", "/usr/lib"} {
		for name, more := range map[string][]string{"": nil, " with --jail-mount": {"--jail-mount=/data/alice:/mnt"}} {
			t.Run(where[1:]+name, func(t *testing.T) {
				late := where + "/late"
				s.mountLate(t, "/shared", "/srv/jails/closed"+late)
				command := append(slices.Clone(closedRange.command), more...)
				command = append(command, attackPath, "plant")
				r := s.Run(harness.Alice, append(slices.Clone(command), "/tmp/evil")...)
				require.Zero(t, r.Code, "control: it plants where it may: %s", r)
				r = s.Run(harness.Alice, append(command, late+"/evil")...)
				assert.NoFileExists(t, s.Path("/shared/evil"), r)
				r = s.Run(harness.Alice, "env", "/shared/evil", "root")
				assert.NotContains(t, r.Stdout, "root "+escaped, r)
			})
		}
	}
}

// mountLate mounts a new directory of the node on a path as well, for the rest of the test.
func (s *site) mountLate(t *testing.T, dir, path string) {
	t.Helper()
	for _, made := range []string{dir, path} {
		require.NoError(t, os.MkdirAll(s.Path(made), 0o755))
		t.Cleanup(func() { os.RemoveAll(s.Path(made)) })
	}
	r := s.Root("mount", "--bind", dir, path)
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { s.Root("umount", "-l", path) })
}

// TestRangeWhereUsersGetToTheRoot covers a jail's root that users of the node cannot reach by the path
// in gojail.toml, but by another one.
func TestRangeWhereUsersGetToTheRoot(t *testing.T) {
	s := sharedSite(t)
	const root, source = `root = "/srv/jails/closed"`, "/srv/jails/closed"
	link := func(t *testing.T) {
		require.NoError(t, os.Symlink("../srv/jails", s.Path("/closed/jails")))
		s.configure(t, root, `root = "/closed/jails/closed"`)
	}
	bind := func(closed, from, to string) func(t *testing.T) {
		return func(t *testing.T) {
			require.NoError(t, os.Chmod(s.Path(closed), 0o700))
			t.Cleanup(func() { os.Chmod(s.Path(closed), 0o755) })
			s.mountLate(t, "/elsewhere", "/elsewhere")
			require.NoError(t, os.MkdirAll(s.Path(to), 0o755))
			t.Cleanup(func() { s.Root("umount", "-l", to) })
			require.Zero(t, s.Root("mount", "--bind", from, to).Code)
		}
	}
	for _, way := range []struct {
		name  string
		open  func(t *testing.T)
		plant string // in the jail
		found string // on the node
	}{
		{"symbolic link above it", link, "/opt/evil", source + "/opt/evil"},
		{"bind mount of it", bind("/srv/jails", source, "/elsewhere/x"), "/opt/evil", "/elsewhere/x/opt/evil"},
		{"bind mount of what it has", bind("/srv/jails", source+"/opt", "/elsewhere/x"), "/opt/evil", "/elsewhere/x/evil"},
		{"bind mount of what has it", bind("/srv", "/srv/jails", "/elsewhere/x"), "/opt/evil", "/elsewhere/x/closed/opt/evil"},
	} {
		t.Run(way.name, func(t *testing.T) {
			require.NoError(t, os.MkdirAll(s.Path("/closed"), 0o700))
			t.Cleanup(func() { os.RemoveAll(s.Path("/closed")) })
			t.Cleanup(func() { os.Remove(s.Path(source + way.plant)) })
			way.open(t)
			r := s.Run(harness.Alice, append(slices.Clone(closedRange.command), attackPath, "plant", way.plant)...)
			assert.NotZero(t, r.Code, r)
			assert.Contains(t, r.Stderr, "set-user-ID", r)
			assert.NoFileExists(t, s.Path(source+way.plant))
			r = s.Run(harness.Alice, "env", way.found, "root")
			assert.NotContains(t, r.Stdout, "root "+escaped, r)
		})
	}
}

// TestJailRootIsNobodyOutside checks what root in a jail may do to files that the user does not own.
func TestJailRootIsNobodyOutside(t *testing.T) {
	s := sharedSite(t)
	for path, mode := range map[string]os.FileMode{"/data/shared/of-root": 0o600, "/data/shared/of-bob": 0o600} {
		require.NoError(t, os.WriteFile(s.Path(path), []byte("secret\n"), mode))
		t.Cleanup(func() { os.Remove(s.Path(path)) })
	}
	require.NoError(t, os.Chown(s.Path("/data/shared/of-bob"), 5002, 5002))
	for _, p := range []place{closedSelf, closedRange} {
		t.Run(p.name, func(t *testing.T) {
			s.closeJails(t)
			for _, file := range []string{"of-root", "of-bob"} {
				command := append(append([]string{}, p.command...), "--jail-mount=/data/shared:/mnt", "sh", "-c")
				r := s.Run(p.user, append(command, "id -u; cat /mnt/"+file+"; chown 0 /mnt/"+file+"; rm -f /mnt/"+file+"; touch /mnt/new; true")...)
				assert.Contains(t, r.Stdout, "0\n", r)
				assert.NotContains(t, r.Stdout, "secret", "%s: %s", file, r)
				assert.FileExists(t, s.Path("/data/shared/"+file), r)
				assert.NoFileExists(t, s.Path("/data/shared/new"), r)
			}
		})
	}
}
