// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// Records of extended attributes: of star and GNU tar, and of libarchive, which escapes names as URLs do and writes
// values in base64. bsdtar writes both.
const (
	paxXattr           = "SCHILY.xattr."
	paxLibarchiveXattr = "LIBARCHIVE.xattr."
)

// unescapeKey reverses the escapes of GNU tar for characters that the key of a record cannot have.
var unescapeKey = strings.NewReplacer("%3D", "=", "%25", "%")

// readXattrs returns the extended attributes of an entry by their names, and the number of access lists and labels:
// those have records of their own, and are always left out.
func readXattrs(h *tar.Header) (xattrs map[string]string, others int64, err error) {
	for key, value := range h.PAXRecords {
		if name, ok := strings.CutPrefix(key, paxXattr); ok {
			xattrs = addXattr(xattrs, unescapeKey.Replace(name), value)
		}
		if strings.HasPrefix(key, "SCHILY.acl.") || key == "RHT.security.selinux" {
			others++
		}
	}
	// A second pass, because the order of a map is random, and a record of star takes precedence.
	for key, text := range h.PAXRecords {
		escaped, ok := strings.CutPrefix(key, paxLibarchiveXattr)
		if !ok {
			continue
		}
		name, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, 0, fmt.Errorf("invalid name %s of an extended attribute", quoteName(escaped))
		}
		if _, ok := xattrs[name]; ok {
			continue
		}
		value, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		if err != nil {
			return nil, 0, fmt.Errorf("the extended attribute %s is not in base64", quoteName(name))
		}
		xattrs = addXattr(xattrs, name, string(value))
	}
	return xattrs, others, nil
}

// addXattr adds an extended attribute to a map, which it creates for the first one: most entries have none.
func addXattr(xattrs map[string]string, name, value string) map[string]string {
	if xattrs == nil {
		xattrs = map[string]string{}
	}
	xattrs[name] = value
	return xattrs
}
