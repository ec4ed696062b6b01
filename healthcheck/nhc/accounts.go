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

// account is the name of a uid: the node's own, else the directory service's, which
// can take its time. It is the number for one that nobody knows, as in ps and stat.
func (s *System) account(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if name := s.named("passwd", id); name != "" {
		return name
	}
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// group is the same for a gid.
func (s *System) group(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if name := s.named("group", id); name != "" {
		return name
	}
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

// named looks a number up in passwd(5) or group(5).
func (s *System) named(file, id string) string {
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

// accountNamed is the name that a match of owners is made with: a number stands for its name.
func (s *System) accountNamed(text string) string {
	if uid, err := strconv.ParseUint(text, 10, 32); err == nil {
		return s.account(uint32(uid))
	}
	return text
}

// refuse is for an argument that is not understood.
func refuse(text, want string) error { return fmt.Errorf("%.40q: write %s", text, want) }
