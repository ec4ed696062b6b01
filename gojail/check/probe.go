// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/storage"
)

// probe asks the storage of a path once: a look-up, and with force a request past the caches.
type probe struct {
	path string
	walk *storage.Walk
	done chan struct{} // closed when the storage has answered
	id   string        // device and inode that the path leads to
	err  error
}

// startProbe starts a probe in a goroutine of its own: a system call on silent storage never returns.
func startProbe(table storage.Table, path string, force bool) *probe {
	p := &probe{path: path, walk: storage.NewWalk(table), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.walk.Follow(path)
		p.id, p.err = identify(path, force)
	}()
	return p
}

// hasAnswered reports whether the storage answers by the given time.
func (p *probe) hasAnswered(until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	}
	select { // if both are ready, select chooses at random
	case <-p.done:
		return true
	default:
		return false
	}
}

// storageName names the storage for messages, with a space after it, or returns "".
func (p *probe) storageName() string {
	if m := p.walk.Mount(); m != nil {
		return m.String() + " "
	}
	return ""
}

// identify returns the device and inode that a path leads to, with force as the server has them now.
func identify(path string, force bool) (string, error) {
	// A path, not a descriptor: after ESTALE the kernel looks it up again (retry_estale).
	id, err := identifyAt(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT, force)
	if err != nil {
		return "", oneline.Errno(err)
	}
	return id, nil
}

func identifyDescriptor(fd int, force bool) (string, error) {
	return identifyAt(fd, "", unix.AT_EMPTY_PATH, force)
}

func identifyAt(fd int, path string, flags int, force bool) (string, error) {
	if force {
		flags |= unix.AT_STATX_FORCE_SYNC
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, path, flags, unix.STATX_BASIC_STATS, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("device %d:%d inode %d", st.Dev_major, st.Dev_minor, st.Ino), nil
}
