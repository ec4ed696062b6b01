// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/storage"
)

// probe asks the storage of a path: a look-up, and if it is the first probe of a mount a request past the caches.
type probe struct {
	path   string
	walk   *storage.Walk
	answer *deadline.Pending[error] // returns the probe's err when the storage has answered
	id     string                   // device and inode that the path leads to
	err    error
}

// startProbe starts a probe of a path on mount m, or on none (nil), in a goroutine of its own: a system call on silent
// storage never returns. leader is the probe that asks the server of m, or nil if this one does.
func startProbe(table storage.Table, path string, m *storage.Mount, leader *probe) *probe {
	p := &probe{path: path, walk: storage.NewWalk(table)}
	if m != nil {
		p.walk.MoveTo(m.Point)
	}
	p.answer = deadline.Start(func() error {
		if leader != nil {
			leader.wait() // so that this look-up has the attributes that the leader gets
			m = nil
		}
		if p.id, p.err = p.identify(m); p.err != nil {
			p.err = oneline.Errno(p.err)
		}
		return p.err
	})
	return p
}

// identify returns the device and inode that the path leads to. The server of m, if that is not nil, is asked past the
// caches.
//
// It is asked for the root directory of its mount. With NFS these fresh attributes also verify the names in that
// directory (nfs_lookup_revalidate in the kernel's fs/nfs/dir.c): the look-up of a jail's root that lies there makes no
// further request. Directories between the two are asked for when they have expired in the node's caches, as for any
// program.
func (p *probe) identify(m *storage.Mount) (string, error) {
	var mountDevice deviceNumber
	asked := false
	if m != nil {
		_, device, err := identifyAt(unix.AT_FDCWD, m.Point, unix.AT_NO_AUTOMOUNT|unix.AT_STATX_FORCE_SYNC)
		mountDevice, asked = device, err == nil
	}
	p.walk.Follow(p.path)
	id, device, err := identifyAt(unix.AT_FDCWD, p.path, unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC)
	if m == nil || err == nil && asked && device == mountDevice {
		return id, err
	}
	// The path leads to another file system by a link or an automounter, or there is an error that the server may take
	// back. A path, not a descriptor: after ESTALE the kernel looks it up again (retry_estale).
	id, _, err = identifyAt(unix.AT_FDCWD, p.path, unix.AT_NO_AUTOMOUNT|unix.AT_STATX_FORCE_SYNC)
	return id, err
}

// hasAnswered reports whether the storage answers by the given time.
func (p *probe) hasAnswered(until time.Time) bool {
	_, inTime := p.answer.AwaitFor(time.Until(until))
	return inTime
}

// wait waits until the storage answers.
func (p *probe) wait() { p.answer.Await(context.Background()) }

// storageName names the storage for messages, with a space after it, or returns "".
func (p *probe) storageName() string {
	if m := p.walk.Mount(); m != nil {
		return m.String() + " "
	}
	return ""
}

// identify returns the device and inode that a path leads to, as the node's caches have them if that is enough.
func identify(path string) (string, error) {
	id, _, err := identifyAt(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC)
	if err != nil {
		return "", oneline.Errno(err)
	}
	return id, nil
}

// identifyDescriptor returns the device and inode of an open directory, with force as the server has them now.
func identifyDescriptor(fd int, force bool) (string, error) {
	sync := unix.AT_STATX_DONT_SYNC
	if force {
		sync = unix.AT_STATX_FORCE_SYNC
	}
	id, _, err := identifyAt(fd, "", unix.AT_EMPTY_PATH|sync)
	return id, err
}

// deviceNumber is the number of a file system.
type deviceNumber struct{ major, minor uint32 }

func identifyAt(fd int, path string, flags int) (id string, device deviceNumber, err error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, path, flags, unix.STATX_BASIC_STATS, &st); err != nil {
		return "", device, err
	}
	return fmt.Sprintf("device %d:%d inode %d", st.Dev_major, st.Dev_minor, st.Ino),
		deviceNumber{st.Dev_major, st.Dev_minor}, nil
}
