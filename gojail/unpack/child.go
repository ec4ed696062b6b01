// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
)

// request is the only argument of a child, as JSON.
type request struct {
	Action  string   `json:"action"`
	Target  string   `json:"target"`
	Policy  Policy   `json:"policy"`
	Limits  Limits   `json:"limits"`
	Before  Result   `json:"before"`
	Version string   `json:"version,omitempty"`
	Command []string `json:"command,omitempty"`
	Program string   `json:"program,omitempty"`
}

// Actions of a request.
const (
	actionLayer   = "layer"
	actionMark    = "mark"
	actionList    = "list"
	actionStrip   = "strip"
	actionConfine = "confine"
)

// answer is the last line that a child writes to its third descriptor.
type answer struct {
	Error  string `json:"error,omitempty"`
	Result Result `json:"result"`
}

// answerFD is the descriptor for the answer: the standard output is the list of a tree.
const answerFD = 3

// childAttributes returns the namespaces of a child. The kernel kills the child when its parent ends, and with process
// 1 of the PID namespace everything that the child started.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID,
		Pdeathsig:  unix.SIGKILL,
	}
}

// Child runs the request in text, writes the answer and exits: a child process does nothing else.
func Child(text string) {
	r, err := readRequest(text)
	if r.Action == actionConfine { // its output is that of a program, so there is no answer
		if err == nil {
			err = executeConfined(r.Program, r.Command)
		}
		fmt.Fprintln(os.Stderr, "gojail:", err)
		os.Exit(1)
	}
	var a answer
	if err == nil {
		err = runRequest(r, &a.Result)
	}
	if err != nil {
		a.Error = err.Error()
	}
	out := os.NewFile(answerFD, "answer")
	if encodeErr := json.NewEncoder(out).Encode(a); encodeErr != nil || err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// readRequest parses a request, and refuses to work outside the namespaces of a child.
func readRequest(text string) (r request, err error) {
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("invalid request: %w", err)
	}
	// In a child that runChild or Confine started, process 1 is this one. Anywhere else, enterTarget would change the
	// mounts of the node.
	if os.Getpid() != 1 {
		return r, errors.New("this command is gojail's own, and runs in namespaces that gojail makes")
	}
	return r, nil
}

// runRequest enters the target and executes the request there, where no path leads out of the target.
func runRequest(r request, result *Result) error {
	if err := enterTarget(r.Target); err != nil {
		return fmt.Errorf("cannot make %s the root of a process: %w", r.Target, err)
	}
	switch r.Action {
	case actionLayer:
		u := newUnpacker(r.Policy, r.Limits, r.Before)
		err := u.unpackStream(os.Stdin)
		*result = u.result
		return err
	case actionMark:
		return writeVersion(r.Version)
	case actionStrip:
		s := &stripper{policy: r.Policy, links: map[uint64]bool{}}
		err := s.stripPath("/")
		*result = s.result
		return err
	case actionList:
		return listTree(os.Stdout)
	}
	return fmt.Errorf("invalid request %q", r.Action)
}

// enterTarget makes a directory the root of this process, with nothing else below it. The mount namespace is this
// process's own, but its mounts are copies that share propagation with the node's: they are made private first.
func enterTarget(target string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	// pivot_root(2) requires that the new root be a mount point.
	if err := unix.Mount(target, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := pivotInto(target); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// pivotInto makes a mount the root of this process, and unmounts the previous root, so that no path leads out of the
// new one: chroot(2) would not prevent that for root.
func pivotInto(target string) error {
	if err := unix.Chdir(target); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// writeVersion writes the version file in place of anything that the archive had there, and writes the tree to the
// disk.
func writeVersion(version string) error {
	full := "/" + contract.VersionFile
	u := newUnpacker(Policy{}, Limits{}, Result{})
	// The times of the root belong to the image: a new file in it must not change them.
	if err := u.keepTimes("/"); err != nil {
		return err
	}
	if err := u.removeExisting(full); err != nil {
		return err
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot create %s: %w", full, errors.Unwrap(err))
	}
	defer f.Close()
	if _, err := io.WriteString(f, version+"\n"); err != nil {
		return fmt.Errorf("cannot write %s: %w", full, err)
	}
	if err := errors.Join(f.Chmod(0o644), f.Chown(0, 0)); err != nil {
		return fmt.Errorf("cannot change the mode of %s: %w", full, err)
	}
	if err := unix.Chmod("/", 0o755); err != nil {
		return fmt.Errorf("cannot change the mode of the root: %w", err)
	}
	if err := unix.Lchown("/", 0, 0); err != nil {
		return fmt.Errorf("cannot change the owner of the root: %w", err)
	}
	if err := u.restoreTimes("/"); err != nil {
		return err
	}
	return syncTree(f)
}

// syncTree writes the file system of a file to the disk.
func syncTree(f *os.File) error {
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("cannot write the tree to the disk: %w", err)
	}
	return nil
}
