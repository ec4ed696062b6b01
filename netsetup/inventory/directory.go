// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// directory is a directory of sysfs. Missing files read as empty: drivers differ, and a
// device may be removed at any time.
type directory struct {
	path     string
	problems *[]string
}

func (d directory) in(name string) directory {
	return directory{filepath.Join(d.path, name), d.problems}
}

func (d directory) has(name string) bool {
	_, err := os.Lstat(filepath.Join(d.path, name))
	return err == nil
}

// readText returns a file's content without surrounding space.
func (d directory) readText(name string) string {
	text, err := os.ReadFile(filepath.Join(d.path, name))
	// EINVAL and EOPNOTSUPP mean that the driver has no value; only a permission error is a problem.
	if errors.Is(err, fs.ErrPermission) {
		d.addProblem("%v", err)
	}
	return strings.TrimSpace(string(text))
}

// readNumber returns a file's content as a decimal or 0x number, or missing if there is no
// such file.
func (d directory) readNumber(name string, missing int) int {
	text := d.readText(name)
	if text == "" {
		return missing
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		d.addProblem("%s is %q, not a number", filepath.Join(d.path, name), text)
		return missing
	}
	return int(n)
}

// readLink returns the last part of a symbolic link's target, "" if there is no such link.
func (d directory) readLink(name string) string {
	target, err := os.Readlink(filepath.Join(d.path, name))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// listNames returns the entries of a directory in order, none if the directory is missing.
func (d directory) listNames(name string) []string {
	entries, _ := os.ReadDir(filepath.Join(d.path, name))
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// resolvePath returns the path of the directory below /sys/devices, "" if the device was
// removed.
func (d directory) resolvePath() string {
	path, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return ""
	}
	if i := strings.Index(path, "/pci"); i >= 0 {
		path = path[i+1:]
	}
	return path
}

func (d directory) addProblem(format string, args ...any) {
	*d.problems = append(*d.problems, fmt.Sprintf(format, args...))
}

// parseNumber converts a part of a name or a line; it returns -1 and adds a problem if the
// part is not a number.
func (d directory) parseNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		d.addProblem("%s: %q is not a number", d.path, text)
		return -1
	}
	return n
}
