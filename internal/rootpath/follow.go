// SPDX-License-Identifier: Apache-2.0

package rootpath

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// linksMax is the kernel's limit of symbolic links in a path, path_resolution(7).
const linksMax = 40

// Follow walks along a path as the kernel does. lookUp gets a directory, whose path has no symbolic links, and a name
// in it, and returns the target of the symbolic link there, or "". Its error ends the walk. Follow fails with
// unix.ELOOP if the path leads through too many links.
func Follow(path string, lookUp func(dir, name string) (target string, err error)) error {
	cur, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		target, err := lookUp(cur, name)
		if err != nil {
			return err
		}
		if target == "" {
			cur = filepath.Join(cur, name)
			continue
		}
		if links++; links > linksMax {
			return unix.ELOOP
		}
		if filepath.IsAbs(target) {
			cur = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return nil
}
