// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// findAccount returns the account name of a uid, from the node's passwd(5), otherwise from the
// directory service, which can take long. An unknown uid is returned as a number, as ps(1) and
// stat(1) show it.
func (s *System) findAccount(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if name := s.lookUpName("passwd", id); name != "" {
		return name
	}
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// findGroup returns the group name of a gid, as findAccount does for a uid.
func (s *System) findGroup(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if name := s.lookUpName("group", id); name != "" {
		return name
	}
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

// lookUpName looks up a number in passwd(5) or group(5).
func (s *System) lookUpName(file, id string) string {
	text, err := os.ReadFile(filepath.Join(s.Etc, file))
	if err != nil {
		return ""
	}
	for row := range strings.Lines(string(text)) {
		if f := strings.SplitN(row, ":", 4); len(f) == 4 && f[2] == id {
			return f[0]
		}
	}
	return ""
}

// resolveOwner returns the name to match owners with: a number is replaced by its name.
func (s *System) resolveOwner(text string) string {
	if uid, err := strconv.ParseUint(text, 10, 32); err == nil {
		return s.findAccount(uint32(uid))
	}
	return text
}

// newRefusal returns the error for an invalid argument.
func newRefusal(text, want string) error { return fmt.Errorf("%.40q: write %s", text, want) }
