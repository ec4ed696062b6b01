// SPDX-License-Identifier: Apache-2.0

package node

import (
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/rootpath"
)

// IdentityFile is a file by which programs identify the machine. All nodes share a jail's tree, so the jail's own file
// would be the same on all of them.
type IdentityFile struct {
	Path   string // in the jail
	Source string // of the node
}

// MachineID is the file that names a machine to D-Bus, which finds a user's session in the home directory by that name
// (machine-id(5)).
const MachineID = "/etc/machine-id"

var identityFiles = []IdentityFile{
	{MachineID, MachineID},
	{"/var/lib/dbus/machine-id", MachineID}, // D-Bus without systemd, dbus-uuidgen(1)
	{"/etc/hostid", "/etc/hostid"},          // gethostid(3)
	{"/etc/hostname", "/etc/hostname"},
}

// findIdentity returns the identity files for which the node has a source and the open root has the file itself. A
// symbolic link does not count, because it may lead to one of the others.
func findIdentity(root int) (files []IdentityFile) {
	for _, file := range identityFiles {
		if isPlainFile(unix.AT_FDCWD, file.Source, 0) && isPlainFile(root, file.Path,
			rootpath.InRoot|unix.RESOLVE_NO_SYMLINKS) {
			files = append(files, file)
		}
	}
	return files
}

func isPlainFile(dir int, path string, resolve uint64) bool {
	fd, err := rootpath.OpenBeneath(dir, path, resolve)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// LacksMachineID reports whether an open root has no machine ID and this process may create one there.
func LacksMachineID(root int) bool {
	if _, err := StatIn(root, MachineID); err != unix.ENOENT {
		return false
	}
	dir, err := rootpath.OpenBeneath(root, "/etc", rootpath.InRoot)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	return unix.Faccessat2(dir, "", unix.W_OK, unix.AT_EMPTY_PATH) == nil
}
