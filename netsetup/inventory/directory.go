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

// directory is one directory of sysfs. What it does not have reads as nothing:
// drivers differ, and a device may go at any moment.
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

// text is a file's content without the space around it.
func (d directory) text(name string) string {
	text, err := os.ReadFile(filepath.Join(d.path, name))
	// A driver that has nothing to say answers with EINVAL or EOPNOTSUPP; only a refusal is worth a word.
	if errors.Is(err, fs.ErrPermission) {
		d.problem("%v", err)
	}
	return strings.TrimSpace(string(text))
}

// number is a file's content in decimal or 0x form; missing where there is none.
func (d directory) number(name string, missing int) int {
	text := d.text(name)
	if text == "" {
		return missing
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		d.problem("%s is %q, not a number", filepath.Join(d.path, name), text)
		return missing
	}
	return int(n)
}

// link is the last part of a symlink's target, "" without one.
func (d directory) link(name string) string {
	target, err := os.Readlink(filepath.Join(d.path, name))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// names are the entries of a directory in order, none where it is missing.
func (d directory) names(name string) []string {
	entries, _ := os.ReadDir(filepath.Join(d.path, name))
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// real is the directory's place below /sys/devices, "" if it has gone.
func (d directory) real() string {
	path, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return ""
	}
	if i := strings.Index(path, "/pci"); i >= 0 {
		path = path[i+1:]
	}
	return path
}

func (d directory) problem(format string, args ...any) {
	*d.problems = append(*d.problems, fmt.Sprintf(format, args...))
}

// numeric is a number in a name or a line; -1 and a problem where it is none.
func (d directory) numeric(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		d.problem("%s: %q is not a number", d.path, text)
		return -1
	}
	return n
}
