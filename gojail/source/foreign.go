// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"fmt"

	"github.com/gojail/gojail/internal/tarblock"
)

// foreignMax is the number of bytes of a stream by which its kind is determined.
const foreignMax = 4 << 10

// foreign are kinds of files that people take for archives, with advice.
var foreign = []struct{ magic, what, advice string }{
	{"\x04\x22\x4d\x18", "compressed with lz4", decompressFirst},
	{"LZIP", "compressed with lzip", decompressFirst},
	{"\x89LZO\x00", "compressed with lzop", decompressFirst},
	{"\x1f\x9d", "compressed with compress", decompressFirst},
	{"\x5d\x00\x00", "compressed with lzma", decompressFirst},
	{"PK\x03\x04", "a zip archive", makeTar},
	{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", makeTar},
	{"070701", "a cpio archive", makeTar},
	{"070702", "a cpio archive", makeTar},
	{"070707", "a cpio archive", makeTar},
	{"\xed\xab\xee\xdb", "an rpm package", makeTar},
	{"!<arch>\n", "a Debian package or a library of ar", makeTar},
	{"hsqs", "a squashfs image", mountIt},
	{"QFI\xfb", "a qcow2 image of a disk", makeTar},
	{"<!DOCTYPE", "a page of HTML", "the server did not send the file"},
	{"<html", "a page of HTML", "the server did not send the file"},
	{"{\"", "a document of JSON", "name the file of the layer, or the whole image"},
}

const (
	decompressFirst = "decompress it first"
	makeTar         = "unpack it, and name the directory as dir:DIR"
	mountIt         = "name it as root of the jail in gojail.toml, or unpack it and name the directory as dir:DIR"
)

// checkForeign fails if a stream is not an archive but a file of another kind. It leaves unknown kinds to the unpacker.
func checkForeign(head []byte) error {
	if tarblock.IsHeader(head) {
		return nil
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return fmt.Errorf("it is not a tar archive, but %s; %s", f.what, f.advice)
		}
	}
	switch { // magic numbers at other places
	case bytes.Contains(head[:min(len(head), 64)], []byte("SIF_MAGIC")):
		return fmt.Errorf("it is not a tar archive, but an image of Apptainer (SIF); run apptainer build --sandbox " +
			"DIR FILE, and name the directory as dir:DIR")
	case len(head) >= 1028 && string(head[1024:1028]) == "\xe2\xe1\xf5\xe0":
		return fmt.Errorf("it is not a tar archive, but an EROFS image; %s", mountIt)
	case len(head) >= 1082 && string(head[1080:1082]) == "\x53\xef":
		return fmt.Errorf("it is not a tar archive, but an ext4 file system; %s", makeTar)
	}
	return nil
}
