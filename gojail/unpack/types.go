// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"strings"
)

// Types of entries that POSIX leaves to each program, and their meanings.
const (
	typeACL        = 'A' // Solaris: the access list of the next file
	typeDumpDir    = 'D' // GNU tar, incremental: a directory, with the names in it as content
	typeAttribute  = 'E' // Solaris: the file to which the extended attribute in the next entry belongs
	typeInode      = 'I' // star, incremental: a file whose content did not change, only owner, mode and times
	typeContinued  = 'M' // GNU tar, several volumes: the rest of a file
	typeOldNames   = 'N' // GNU tar before 1.12: a list of names to be changed after all is unpacked
	typeVolume     = 'V' // GNU tar, star: the name of a volume
	paxVolumeFile  = "GNU.volume.filename"
	attributesName = "/dev/null/" // Solaris: the names of entries of attributes begin with it
)

// typeNames are types for people.
var typeNames = map[byte]string{
	tar.TypeReg: "file", tar.TypeLink: "hard link", tar.TypeSymlink: "symbolic link", tar.TypeChar: "character device",
	tar.TypeBlock: "block device", tar.TypeDir: "directory", tar.TypeFifo: "FIFO", tar.TypeCont: "contiguous file",
	tar.TypeXGlobalHeader: "global header", tar.TypeGNUSparse: "sparse file", typeACL: "access list",
	typeDumpDir:   "directory",
	typeAttribute: "extended attribute", typeVolume: "volume name",
}

// describeType returns the type of an entry for people.
func describeType(flag byte) string {
	if name := typeNames[flag]; name != "" {
		return name
	}
	return fmt.Sprintf("type %q", string(rune(flag)))
}

// refusedTypes are types of entries with a meaning that cannot be put into effect: without them the tree would be
// wrong.
var refusedTypes = map[byte]string{
	typeContinued: "is the rest of a file that begins in another volume; join the volumes: make the archive anew " +
		"without --multi-volume",
	typeInode: "has no content, because it did not change since an earlier dump of star; make the archive anew " +
		"from the whole tree",
	typeOldNames: "is a list of names to be changed, as GNU tar before 1.12 wrote it; make the archive anew",
}

// adaptEntry gives an entry the type of POSIX for which it stands. skip reports whether the entry is no file.
func (u *unpacker) adaptEntry(h *tar.Header) (skip bool, err error) {
	ofAttribute := u.attribute && strings.HasPrefix(h.Name, attributesName)
	u.attribute = false
	if why := refusedTypes[h.Typeflag]; why != "" {
		return false, errors.New(why)
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return true, u.readGlobal(h.PAXRecords)
	case typeVolume:
		return true, nil
	case typeACL, typeAttribute:
		u.attribute = h.Typeflag == typeAttribute
		u.result.leaveOut(leftAttributes, 1)
		return true, nil
	case typeDumpDir:
		h.Typeflag = tar.TypeDir
	case tar.TypeCont:
		h.Typeflag = tar.TypeReg
	case tar.TypeReg, tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo,
		tar.TypeGNUSparse:
	default:
		return false,
			errors.New("gojail does not know this type, which may have any meaning; make the archive anew with GNU tar")
	}
	if ofAttribute { // the entry that announced it was counted
		return true, nil
	}
	// Before POSIX.1-1988 there was no type for directories, but a slash at the end of the name.
	if h.Typeflag == tar.TypeReg && strings.HasSuffix(h.Name, "/") {
		h.Typeflag = tar.TypeDir
	}
	if err := checkSparse(h.PAXRecords); err != nil {
		return false, err
	}
	return false, u.applyGlobal(h)
}

// checkSparse fails for a sparse file in a format that archive/tar does not know: it would return the map of the file
// as its content.
func checkSparse(records map[string]string) error {
	major, minor := records["GNU.sparse.major"], records["GNU.sparse.minor"]
	switch version := major + "." + minor; {
	case records["SCHILY.realsize"] != "":
		return errors.New("is a sparse file in the format of star; make the archive anew with GNU tar")
	case version != "." && version != "0.0" && version != "0.1" && version != "1.0":
		return fmt.Errorf(
			"is a sparse file in the unknown format %s; make the archive anew with GNU tar --sparse-version=1.0",
			quoteName(version))
	}
	return nil
}
