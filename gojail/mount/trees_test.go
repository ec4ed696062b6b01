// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/mount/mounttest"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/refusal"
)

// someone is a user that exists nowhere.
var someone = Credentials{UID: 54321, GID: 54321, Groups: []uint32{54322}}

// newUserPlaces creates a directory with what a user may and may not mount.
func newUserPlaces(t *testing.T) string {
	t.Helper()
	nstest.NeedRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	for name, mode := range map[string]os.FileMode{
		"data": 0o755, "data/open": 0o755, "data/private": 0o700, "data/unreadable": 0o711, "data/group": 0o750,
		"data/private/inner": 0o755, "other": 0o755,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o755))
		require.NoError(t, os.Chmod(path, mode))
	}
	require.NoError(t, os.Chown(dir+"/data/group", 0, 54322))
	require.NoError(t, os.Chmod(dir+"/data/private", 0o700))
	nstest.WriteFile(t, dir+"/data/file", "")
	require.NoError(t, os.WriteFile(dir+"/data/secret", nil, 0o600))
	require.NoError(t, unix.Mkfifo(dir+"/data/fifo", 0o666))
	nstest.Symlink(t, dir+"/other", dir+"/data/escape")
	nstest.Symlink(t, "open", dir+"/data/link")
	nstest.Symlink(t, "/proc/self/root", dir+"/data/magic")
	return dir
}

func newUserJail(dir string, readonly bool) (*config.Config, *config.Jail) {
	j := &config.Jail{Name: "small", UserMounts: []config.UserRule{{Source: dir + "/data", Readonly: readonly}}}
	return &config.Config{
		Scratch: "/var/lib/gojail", Jails: map[string]*config.Jail{"small": j},
		Slurm: config.Slurm{Conf: "/etc/slurm", Spool: "/var/spool/slurmd", SpoolBase: "/var/spool/slurmd", Munge: "/run/munge/munge.socket.2"},
	}, j
}

func TestUserMounts(t *testing.T) {
	dir := newUserPlaces(t)
	root := mounttest.SmallTree(t)
	for _, name := range []string{"mnt/place", "home/closed"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	require.NoError(t, os.Chmod(root+"/home/closed", 0o700))
	require.NoError(t, os.Mkdir(root+"/home/closed/inner", 0o755))
	nstest.WriteFile(t, root+"/mnt/file", "")
	nstest.Symlink(t, "/mnt/place", root+"/data/link")
	nstest.Symlink(t, "/etc", root+"/data/trap")
	nstest.Symlink(t, "/proc/self/root/mnt", root+"/data/magic")
	zygote := fmt.Sprintf("/proc/%d/root", startZygote(t, root))
	nstest.NoLeaks(t)
	c, j := newUserJail(dir, false)
	data := dir + "/data"

	for _, w := range []struct{ source, destination, want string }{
		{data + "/open", "/mnt/place", "/mnt/place"},
		{data + "/link", "/mnt/place", "/mnt/place"},
		{data + "/group", "/mnt/place", "/mnt/place"},
		{data + "/file", "/mnt/file", "/mnt/file"},
		{data + "/open", "/data/link", "/mnt/place"},
	} {
		trees, err := OpenUserMounts(c, j, []config.UserMount{{Source: w.source, Destination: w.destination}}, someone, zygote, contract.DefaultState)
		if assert.NoError(t, err, w.source) {
			assert.Equal(t, w.want, trees[0].Destination)
			assert.NoError(t, unix.Close(trees[0].FD))
		}
	}
	for _, w := range []struct{ source, destination, want string }{
		{dir + "/other", "/mnt/place", dir + "/other may not be mounted in jail small; permitted: " + data},
		{data + "/escape", "/mnt/place", dir + "/other may not be mounted in jail small; permitted: " + data},
		{data + "/../other", "/mnt/place", dir + "/other may not be mounted in jail small; permitted: " + data},
		{data + "/absent", "/mnt/place", data + "/absent: no such directory or file on this node"},
		{data + "/private", "/mnt/place", data + "/private: permission denied for user 54321"},
		{data + "/private/inner", "/mnt/place", data + "/private/inner: permission denied for user 54321"},
		{data + "/unreadable", "/mnt/place", data + "/unreadable: permission denied for user 54321"},
		{data + "/secret", "/mnt/file", data + "/secret: permission denied for user 54321"},
		{data + "/magic" + data + "/open", "/mnt/place", data + "/magic" + data + "/open: leads through a symlink that must not be followed, such as one of /proc"},
		{data + "/fifo", "/mnt/file", data + "/fifo is neither a directory nor a regular file"},
		{data + "/open", "/mnt/file", data + "/open and /mnt/file must both be directories, or both be files"},
		{data + "/open", "/mnt/absent", "/mnt/absent does not exist in jail small; choose an existing directory"},
		{data + "/open", "/data/trap", "cannot mount on /etc: it would hide or change /etc of the jail"},
		{data + "/open", "/data/magic", "destination /data/magic: leads through a symlink that must not be followed, such as one of /proc"},
		{data + "/open", "/home/closed/inner", "destination /home/closed/inner: permission denied for user 54321"},
		{data + "/open", "/", `/ leads to a path that cannot be mounted: "/" is not allowed here`},
	} {
		first := config.UserMount{Source: data + "/open", Destination: "/mnt/place"}
		_, err := OpenUserMounts(c, j, []config.UserMount{first, {Source: w.source, Destination: w.destination}}, someone, zygote, contract.DefaultState)
		assert.EqualError(t, err, "--jail-mount="+w.source+":"+w.destination+": "+w.want)
	}

	c, j = newUserJail(dir, true)
	_, err := OpenUserMounts(c, j, []config.UserMount{{Source: data + "/open", Destination: "/mnt/place"}}, someone, zygote, contract.DefaultState)
	assert.ErrorContains(t, err, "only read-only")
	trees, err := OpenUserMounts(c, j, []config.UserMount{{Source: data + "/open", Destination: "/mnt/place", Readonly: true}}, someone, zygote, contract.DefaultState)
	require.NoError(t, err)
	unix.Close(trees[0].FD)
}

// No thread of the process keeps the user's rights, or loses root's.
func TestUserMountsLeaveRootAlone(t *testing.T) {
	nstest.NeedRoot(t)
	dir := newUserPlaces(t)
	for range 50 { // the main thread, which never ends, is offered now and then
		require.NoError(t, doAsUser(someone, "/", func(int) error { return nil }))
	}
	require.NoError(t, doAsUser(someone, "/", func(int) error {
		assert.Equal(t, []string{"54321", "54321", "54321", "54321"}, readStatusField(t, unix.Gettid(), "Uid"))
		assert.Equal(t, []string{"54321", "54321", "54321", "54321"}, readStatusField(t, unix.Gettid(), "Gid"))
		assert.Equal(t, []string{"54322"}, readStatusField(t, unix.Gettid(), "Groups"))
		assert.Equal(t, []string{"0000000000000000"}, readStatusField(t, unix.Gettid(), "CapEff"))
		_, err := os.ReadFile(dir + "/data/secret")
		assert.ErrorIs(t, err, os.ErrPermission)
		return nil
	}))
	require.Eventually(t, func() bool {
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			if uid := readStatusField(t, tid, "Uid"); uid != nil && uid[0] != "0" {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond)
	_, err := os.ReadFile(dir + "/data/secret")
	assert.NoError(t, err)
}

func readStatusField(t *testing.T, tid int, name string) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", tid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Fields(value)
		}
	}
	return nil
}

func init() { nstest.Actions["attach"] = attachChild }

// attachChild attaches a user's tree, cloned from a shared mount, and returns what it became.
func attachChild(dir string) (any, error) {
	if err := nstest.MakePrivate(); err != nil {
		return nil, err
	}
	if err := errors.Join(
		unix.Mount("tmpfs", dir+"/data", "tmpfs", 0, ""),
		unix.Mount("", dir+"/data", "", unix.MS_SHARED, ""),
		os.Mkdir(dir+"/data/below", 0o755),
		unix.Mount("tmpfs", dir+"/data/below", "tmpfs", 0, ""),
	); err != nil {
		return nil, err
	}
	source, err := unix.Open(dir+"/data", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var seen []string
	for _, readonly := range []bool{false, true} {
		fd, err := cloneForUser(source, readonly)
		if err != nil {
			return nil, err
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, dir+"/other", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return nil, err
		}
		mounts, err := mountinfo.GetMounts(nil)
		if err != nil {
			return nil, err
		}
		for _, path := range []string{"/other", "/other/below"} {
			if m := nstest.MountOf(mounts, dir+path); m != nil {
				seen = append(seen, path+" "+strings.Replace(m.Options, ",relatime", "", 1)+" "+m.Optional)
			}
		}
	}
	return seen, nil
}

func TestUserMountsAreHarmless(t *testing.T) {
	nstest.NoLeaks(t)
	var seen []string
	require.NoError(t, nstest.RunText(t, "attach", newUserPlaces(t), &seen))
	assert.Equal(t, []string{
		"/other rw,nosuid,nodev ", "/other/below rw,nosuid,nodev ",
		"/other ro,nosuid,nodev ", "/other/below ro,nosuid,nodev ",
	}, seen, "private, with what is mounted below")
}

// TestUserErrorsAreRequestsOrFaults requires that a path that the user chose badly is a refused request, and storage or a node that fails is not.
func TestUserErrorsAreRequestsOrFaults(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENOTDIR, unix.ENAMETOOLONG, unix.EINVAL} {
		assert.True(t, refusal.Is(explainUserError("/data", someone, errno)), errno)
	}
	for _, errno := range []unix.Errno{unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.ETIMEDOUT, unix.EHOSTDOWN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENODEV} {
		assert.False(t, refusal.Is(explainUserError("/data", someone, errno)), errno)
	}
}
