// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// Answer is the result of a probe.
type Answer int

// The answers. Unknown is not an error: the storage has no file that would show it.
const (
	Unknown Answer = iota
	Yes
	No
)

const nobody = 65534 // user to whom a server maps root, exports(5)

// private are the files of a distribution that only root may open.
var private = []string{".", contract.RootLock, "root", "etc/shadow", "etc/gshadow", "lost+found", "etc/ssl/private",
	"var/lib/private", "var/cache/private"}

// SquashesRoot reports whether root of this node is another user on the storage. It opens files below root that belong
// to root and are closed to others. It reads no file and writes none.
func SquashesRoot(root int) Answer {
	for _, path := range private {
		fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
		if err != nil {
			continue
		}
		answer := isClosedToRoot(fd)
		unix.Close(fd)
		if answer != Unknown {
			return answer
		}
	}
	return Unknown
}

// isClosedToRoot reports whether a file that only root may open is closed to root.
func isClosedToRoot(fd int) Answer {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Uid != 0 || st.Gid == nobody || st.Mode&0o007 != 0 || st.Mode&0o400 == 0 {
		return Unknown
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return Unknown // opening a pipe or a device has effects
	}
	opened, err := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
	switch err {
	case nil:
	case unix.EACCES, unix.EPERM:
		return Yes
	default:
		return Unknown
	}
	defer opened.Close()
	// Some file systems ask their server only when a directory is read.
	if _, err := opened.Readdirnames(1); st.Mode&unix.S_IFMT == unix.S_IFDIR && os.IsPermission(err) {
		return Yes
	}
	return No
}

// reopen opens the file of a path descriptor.
func reopen(fd, flags int) (*os.File, error) {
	opened, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened), "storage"), nil
}

// HasXattrs reports whether the storage keeps extended attributes with a name such as user.x or
// security.capability (xattr(7)).
func HasXattrs(root int, name string) Answer {
	_, err := unix.Getxattr(fmt.Sprintf("/proc/self/fd/%d", root), name, nil)
	switch err {
	case nil, unix.ENODATA:
		return Yes
	case unix.EOPNOTSUPP:
		return No
	}
	return Unknown
}

// Latency is the time that the storage takes to return the attributes of a file.
type Latency struct {
	Count         int
	Median, Total time.Duration
	TellsTypes    Answer // whether directories tell the types of their files (d_type, readdir(3))
}

// directories are read for names to ask for, those of a distribution first.
var directories = []string{".", "usr/bin", "etc", "usr/lib", "bin", "lib", "usr/share", "home"}

// MeasureLatency asks the storage for the attributes of at most most files below root, one after the other and past the
// caches (statx(2), AT_STATX_FORCE_SYNC), for at most the given time.
func MeasureLatency(root, most int, patience time.Duration) (l Latency) {
	var each []time.Duration
	end := time.Now().Add(patience)
	for before := -1; len(each) < most && len(each) > before && time.Now().Before(end); {
		before = len(each)
		for _, path := range directories {
			dir, err := rootpath.OpenDirectory(root, path, rootpath.InRoot)
			if err != nil {
				continue
			}
			var names []string
			names, told := readNames(dir, most-len(each))
			if l.TellsTypes == Unknown {
				l.TellsTypes = told
			}
			for _, name := range names {
				if time.Now().After(end) {
					break
				}
				start := time.Now()
				var st unix.Statx_t
				if unix.Statx(int(dir.Fd()), name,
					unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS,
					&st) == nil {
					each = append(each, time.Since(start))
				}
			}
			dir.Close()
		}
	}
	if l.Count = len(each); l.Count == 0 {
		return l
	}
	for _, took := range each {
		l.Total += took
	}
	slices.Sort(each)
	l.Median = each[len(each)/2]
	return l
}

// readNames returns at most so many names of a directory, and whether its entries have types.
func readNames(dir *os.File, most int) (names []string, told Answer) {
	buffer := make([]byte, 32<<10)
	for len(names) < most {
		n, err := unix.Getdents(int(dir.Fd()), buffer)
		if err != nil || n <= 0 {
			break
		}
		for rest := buffer[:n]; len(rest) >= direntName; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size < direntName || size > len(rest) {
				return names, told
			}
			name, _, _ := strings.Cut(string(rest[direntName:size]), "\x00")
			if name != "." && name != ".." {
				if rest[18] == unix.DT_UNKNOWN {
					told = No
				} else if told == Unknown {
					told = Yes
				}
				names = append(names, name)
			}
			rest = rest[size:]
		}
	}
	return names[:min(len(names), most)], told
}

// direntName is the offset of the name in struct linux_dirent64 (getdents(2)): after inode and offset,
// length (16) and type (18).
const direntName = 19
