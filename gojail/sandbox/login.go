// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/procfs"
)

// EndLogin ends the sandbox of a user's sessions. If a session or another process is in it, EndLogin does nothing.
// Files of its /tmp are moved to the trash.
func EndLogin(s *state.State, scratch, job string, until time.Time) error {
	if !contract.IsLogin(job) {
		return fmt.Errorf("%q is not the name of a login sandbox", job)
	}
	_, err := endLogin(s, scratch, job, until)
	if inUse := new(inUseError); errors.As(err, &inUse) {
		return nil
	}
	return err
}

// endLogin is teardown for the sandbox of a user's sessions. It holds the lock of the sessions until the end, so that
// no session enters meanwhile, and returns inUseError if the sandbox is used.
func endLogin(s *state.State, scratch, job string, until time.Time) (parent string, err error) {
	var sessions *os.File
	defer func() { sessions.Close() }() // Close of a nil file returns an error, which is ignored
	return teardown(s, scratch, job, until, func() error {
		var err error
		sessions, err = filelock.Try(filepath.Join(s.JobDir(job), contract.SessionsLock))
		if errors.Is(err, filelock.ErrBusy) {
			return &inUseError{"a session uses it"}
		}
		if err == nil && hasInhabitedSandbox(s, scratch, job) {
			err = &inUseError{"processes are in it"}
		}
		return err
	})
}

// hasInhabitedSandbox reports whether processes are in a sandbox of the user's sessions. The lock of the sessions does
// not tell: another version of gojail may have built the sandbox, and its holder may have ended before other processes
// in it.
func hasInhabitedSandbox(s *state.State, scratch, job string) bool {
	records, err := s.Sandboxes(job)
	return err != nil || slices.ContainsFunc(records,
		func(r state.Record) bool { return r.Lives() && holderOrZygote{r, true}.isInhabited() }) ||
		isMountedByUser(filepath.Join(findScratch(s, scratch, job), job), strings.TrimPrefix(job, contract.LoginPrefix))
}

// isMountedByUser reports whether a process of the user has files below a directory mounted, in another mount namespace
// than this process's. If the sandbox has no PID namespace, its processes outlive their holder.
func isMountedByUser(dir, uid string) bool {
	// A mount's root is a path in its file system, which may be mounted at any directory above dir: only the last two
	// names are certain.
	below := "/" + filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir) + "/"
	own, _ := procfs.ReadNamespace(os.Getpid(), "mnt")
	pids, _ := procfs.ListNumbers("/proc")
	return slices.ContainsFunc(pids, func(pid int) bool {
		if !procfs.IsOf(pid, uid) || procfs.LivesIn(pid, own) {
			return false
		}
		mounts, _ := procfs.ReadMounts(fmt.Sprintf("/proc/%d", pid)) // none of a process that has ended
		return slices.ContainsFunc(mounts, func(m *mountinfo.Info) bool { return strings.Contains(m.Root+"/", below) })
	})
}

// findSession returns why the sandbox of a user's sessions must be left alone, or "". The launcher that watches it ends
// it in time (spank/launcher/login.c).
func findSession(s *state.State, scratch, job string) (string, error) {
	for _, lock := range []struct{ name, why string }{
		{contract.SessionsLock, "a session uses it"},
		{contract.WatcherLock, "it stays a while after the last session"},
	} {
		busy, err := isLocked(filepath.Join(s.JobDir(job), lock.name))
		if busy || err != nil {
			return lock.why, err
		}
	}
	if hasInhabitedSandbox(s, scratch, job) {
		return "processes are in it", nil
	}
	return "", nil
}

// isLocked reports whether a process holds the lock of a file, whose directory may be missing.
func isLocked(path string) (bool, error) {
	file, err := filelock.Try(path)
	switch {
	case errors.Is(err, filelock.ErrBusy):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return false, file.Close()
}
