// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Extended attributes in a list: a word xattr.NAME=VALUE for each, in base64, as gomtree writes them. If the words have
// more than xattrWordsMax bytes, their SHA-256 is the only word, so that a line stays short.
const (
	xattrKey      = "xattr"
	xattrWordsMax = 4 << 10
)

// listsXattr reports whether an extended attribute is listed. Others, such as labels and the layout of a file on
// Lustre, belong to the storage: they differ without any change of the file.
func listsXattr(name string) bool {
	return strings.HasPrefix(name, "user.") || name == capabilityKey || strings.HasPrefix(name, "system.posix_acl_")
}

// describeXattrs returns the words for the extended attributes of a path, without following a symbolic link.
func describeXattrs(full string) ([]string, error) {
	names, err := readXattrNames(full)
	if err != nil {
		return nil, err
	}
	var words []string
	size := 0
	for _, name := range names {
		if !listsXattr(name) {
			continue
		}
		value := make([]byte, xattrMax)
		n, err := unix.Lgetxattr(full, name, value)
		if err != nil {
			return nil, fmt.Errorf("cannot read the extended attribute %s of %s: %w", quoteName(name), quoteName(full),
				err)
		}
		word := xattrKey + "." + escapeName(name) + "=" + base64.StdEncoding.EncodeToString(value[:n])
		words, size = append(words, word), size+len(word)
	}
	slices.Sort(words) // file systems list names in orders of their own
	if size > xattrWordsMax {
		sum := sha256.Sum256([]byte(strings.Join(words, " ")))
		words = []string{xattrKey + "=" + hex.EncodeToString(sum[:])}
	}
	return words, nil
}

// readXattrNames returns the names of the extended attributes of a path, without following a symbolic link.
func readXattrNames(full string) ([]string, error) {
	buffer := make([]byte, xattrMax)
	n, err := unix.Llistxattr(full, buffer)
	if err == unix.EOPNOTSUPP {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the extended attributes of %s: %w", quoteName(full), err)
	}
	return strings.FieldsFunc(string(buffer[:n]), func(r rune) bool { return r == 0 }), nil
}

// isXattr reports whether a key of a list is that of an extended attribute.
func isXattr(key string) bool { return key == xattrKey || strings.HasPrefix(key, xattrKey+".") }
