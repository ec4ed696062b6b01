// SPDX-License-Identifier: Apache-2.0

// Package nstest runs parts of a test in their own mount namespace, and has helpers for such tests. A
// package that uses it has a test named TestChild that calls Child.
package nstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Variable names the action that a child runs: a test that mounts starts this test binary again in a
// mount namespace of its own, and the child prints its result.
const Variable = "GOJAIL_TEST_CHILD"

// Actions are the actions of a package's children by name.
var Actions = map[string]func(input string) (any, error){}

// Child runs a child's action and exits, if this process is a child. A test calls it, rather than TestMain: most tests
// of a package need no child.
func Child() {
	name := os.Getenv(Variable)
	if name == "" {
		return
	}
	result, err := Actions[name](os.Getenv("GOJAIL_TEST_INPUT"))
	reply := childReply{Result: result}
	if err != nil {
		reply.Error = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(reply)
	os.Exit(0)
}

// Command returns a command that runs this test binary again, as a child with an action.
func Command(action, input string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), Variable+"="+action, "GOJAIL_TEST_INPUT="+input)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return cmd
}

// MakePrivate keeps the mounts of a child away from the node.
func MakePrivate() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }

type childReply struct {
	Result any
	Error  string
}

// Run runs an action in a private mount namespace and decodes its result into result.
func Run(t *testing.T, action string, input, result any) error {
	t.Helper()
	text, err := json.Marshal(input)
	require.NoError(t, err)
	return RunText(t, action, string(text), result)
}

// RunText is Run with a text as input.
func RunText(t *testing.T, action, input string, result any) error {
	t.Helper()
	NeedRoot(t)
	cmd := Command(action, input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), stderr.String())
	reply := childReply{Result: result}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &reply), stdout.String()+stderr.String())
	if reply.Error != "" {
		return fmt.Errorf("%s", reply.Error)
	}
	return nil
}

// NeedRoot skips the test if the user is not root.
func NeedRoot(t *testing.T) {
	t.Helper()
	if !IsRoot() {
		t.Skip("needs root")
	}
}

// IsRoot reports whether a test may use root's rights: it runs as root, and not with -short, by which make unit asks
// for the tests that need no root.
func IsRoot() bool { return os.Geteuid() == 0 && !testing.Short() }

// NoLeaks fails the test if it leaves descriptors or mounts behind. A descriptor that was open before may be closed
// meanwhile: the garbage collector closes the pidfd of an os.Process that an earlier test did not wait for.
func NoLeaks(t *testing.T) {
	t.Helper()
	fds, mounts := OpenFiles(), ownMounts(t)
	t.Cleanup(func() {
		require.Subset(t, fds, OpenFiles(), "descriptors left open")
		require.Equal(t, mounts, ownMounts(t), "mounts left behind")
	})
}

// OpenFiles returns the open files of this process, without those of the Go runtime.
func OpenFiles() []string {
	entries, _ := os.ReadDir("/proc/self/fd")
	var out []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		// The runtime polls, and watches the cgroup's CPU limit, by any path that it has in this view.
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/proc/") ||
			strings.Contains(target, "/cpu.") {
			continue
		}
		out = append(out, e.Name()+" "+target)
	}
	return out
}

// ownMounts returns the mounts below the test's own directories.
func ownMounts(t *testing.T) []string {
	t.Helper()
	infos, err := mountinfo.GetMounts(nil)
	require.NoError(t, err)
	var out []string
	for _, i := range infos {
		if strings.Contains(i.Mountpoint, "/"+t.Name()) {
			out = append(out, i.Mountpoint)
		}
	}
	return out
}

// WriteFile writes a file.
func WriteFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// Symlink creates a symbolic link.
func Symlink(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path))
}

// MountOf returns the topmost mount at path.
func MountOf(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	var found *mountinfo.Info
	for _, m := range mounts {
		if m.Mountpoint == path {
			found = m
		}
	}
	return found
}

// WaitUntilClosed waits until no process has a file open whose path matches a pattern, and nobody has its flock(2)
// lock. A process that is killed while it starts a child leaves its locks to the child, until execve(2) closes the
// files: the next command would find them taken. The kernel removes a descriptor from /proc first and gives up the lock
// later, when the child returns to user space (fput).
func WaitUntilClosed(t *testing.T, pattern string) {
	t.Helper()
	require.Eventually(t, func() bool {
		links, err := filepath.Glob("/proc/[0-9]*/fd/*")
		require.NoError(t, err)
		return !slices.ContainsFunc(links, func(link string) bool {
			target, err := os.Readlink(link)
			open, _ := filepath.Match(pattern, target)
			return err == nil && open
		}) && !hasLockedFile(t, pattern)
	}, time.Minute, 10*time.Millisecond, "a process has %s open", pattern)
}

// hasLockedFile reports whether a file whose path matches the pattern is locked by flock(2).
func hasLockedFile(t *testing.T, pattern string) bool {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return slices.ContainsFunc(paths, func(path string) bool {
		file, err := os.Open(path)
		if err != nil {
			return false // it has been removed
		}
		defer file.Close()
		return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK
	})
}
