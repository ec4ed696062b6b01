// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// checkTemplate reports a template whose root is not what the jail's path leads to: the storage was
// switched to another tree, replaced or remounted since it was assembled. Root probes that path.
func (c *checker) checkTemplate(j *config.Jail, root *probe) {
	if c.checkVersion(j) {
		return
	}
	if root.err != nil {
		return // without a root nothing can be compared
	}
	id, err := c.identifyTemplate(j, root.id)
	const remedy = "the next job gets a new template; to make it now: gojail reload "
	switch {
	case err != nil:
		c.report(Finding{Level: Warn, Subject: "jail " + j.Name, Alert: true, Remedy: remedy + j.Name,
			Found: "the root of its template on this node is gone from the storage: " + err.Error() + "; " + j.Root +
				" leads to " + root.id})
	case id != "" && id != root.id:
		c.report(Finding{Level: Warn, Subject: "jail " + j.Name, Alert: true, Remedy: remedy + j.Name,
			Found: "its template on this node has another root, " + id + ", than " + j.Root + ", which leads to " +
				root.id})
	}
}

// zygotePatience is the time that a zygote has to answer.
const zygotePatience = 2 * time.Second

// checkZygote reports a zygote that lives and does not answer. It is a warning: the next job replaces it, and on a
// node without free CPU time or memory, which users can cause, a slow answer looks the same.
func (c *checker) checkZygote(j *config.Jail) {
	if _, err := os.Lstat(c.node.State); err != nil {
		return // the first job creates it
	}
	s, err := state.OpenState(c.node.State)
	if err != nil {
		return // checkState reports it
	}
	template, err := s.Template(j.Name)
	if err != nil {
		return
	}
	err = s.ProbeZygote(j.Name, zygotePatience)
	again, ended := s.Template(j.Name)
	if errors.Is(err, state.ErrStuck) && ended == nil && again.PID == template.PID {
		c.report(Finding{Level: Warn, Subject: "jail " + j.Name, Alert: true,
			Remedy: "to replace it now: gojail reload " + j.Name,
			Found:  fmt.Sprintf("%v (process %d, %s)", err, template.PID, describeProcess(template.PID))})
	}
}

// describeProcess returns the state of a process as proc_pid_status(5) has it, such as "T (stopped)".
func describeProcess(pid int) string {
	status, err := procfs.ReadStatus("/proc", pid, "State")
	if err != nil {
		return "ended"
	}
	return "state " + status[0]
}

// identifyTemplate returns what a jail's template has as its root, or "" if it has no template, or one
// with an image file or an overlay as its root. It fails if the root is no longer on its storage, which is asked only
// where the kernel remembers another root than the expected one.
func (c *checker) identifyTemplate(j *config.Jail, expected string) (string, error) {
	if _, err := os.Lstat(c.node.State); err != nil {
		return "", nil // the first job creates it
	}
	if j.Writable != "" || !isDirectory(j.Root) {
		return "", nil
	}
	s, err := state.OpenState(c.node.State)
	if err != nil {
		return "", nil // checkState reports it
	}
	template, err := s.Template(j.Name)
	if err != nil {
		return "", nil
	}
	root, err := template.Root()
	if err == nil {
		defer root.Close()
		var id string
		if id, err = identifyDescriptor(int(root.Fd()), false); err == nil && id != expected {
			id, err = identifyDescriptor(int(root.Fd()), true)
		}
		if err == nil {
			return id, nil
		}
	}
	for _, gone := range []error{unix.ESTALE, unix.ENOTCONN, unix.EIO, unix.ENOENT} {
		if again, ended := s.Template(j.Name); errors.Is(err, gone) && ended == nil && again.PID == template.PID {
			return "", oneline.Errno(err)
		}
	}
	return "", nil
}

// isDirectory reports whether a path leads to a directory, without a request for its attributes.
func isDirectory(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// isTemplateRoot reports whether a jail's root is the directory that its template on this node has.
func (c *checker) isTemplateRoot(j *config.Jail) bool {
	own, err := identify(j.Root)
	if err != nil {
		return false
	}
	id, err := c.identifyTemplate(j, own)
	return err == nil && id == own
}
