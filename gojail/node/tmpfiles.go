// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/rootpath"
)

// RunEntry is an entry below /run that a line of the jail's tmpfiles.d(5) creates when a machine boots.
type RunEntry struct {
	Path string
	Link string // target of a symbolic link; "": a directory to which all users may write
}

// Limits of these files: users may write a jail's tree, and each template reads them.
const (
	tmpfilesMax     = 512      // files in one directory
	tmpfilesSizeMax = 64 << 10 // bytes of a file
	runEntriesMax   = 64
	runPathMax      = 200 // bytes of a path or a target
)

// tmpfilesDirs are the directories of tmpfiles.d(5), in order of precedence.
var tmpfilesDirs = []string{"/etc/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"}

// readRunEntries returns the entries that the files of an open root create below /run for programs of users, sorted by
// path. Directories to which only their owner may write are left out: programs of users do not need them, and some
// programs take /run/systemd for a sign that systemd runs.
func readRunEntries(root int) (entries []RunEntry) {
	files := map[string]string{} // by name: a file hides those of the same name in later directories
	for _, dir := range tmpfilesDirs {
		for _, name := range listDirectoryIn(root, dir, tmpfilesMax) {
			if _, hidden := files[name]; !hidden && strings.HasSuffix(name, ".conf") {
				files[name] = filepath.Join(dir, name)
			}
		}
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for line := range strings.Lines(ReadTextIn(root, files[name], tmpfilesSizeMax)) {
			path, entry := parseTmpfile(line)
			if path == "" || seen[path] { // the first line for a path counts
				continue
			}
			seen[path] = true
			if entry != nil && len(entries) < runEntriesMax {
				entries = append(entries, *entry)
			}
		}
	}
	slices.SortFunc(entries, func(a, b RunEntry) int { return strings.Compare(a.Path, b.Path) })
	return entries
}

// parseTmpfile parses a line of tmpfiles.d. path is the path below /run at which the line creates a directory or a
// link, "" for other lines; entry is what to create there, nil for nothing. Lines with quotes, escapes or specifiers
// ("%m") count as other lines.
func parseTmpfile(line string) (path string, entry *RunEntry) {
	fields := strings.Fields(line)
	if len(fields) < 2 || strings.ContainsAny(line, "%\\\"'") || strings.ContainsFunc(strings.TrimSpace(line),
		isControl) {
		return "", nil
	}
	path = strings.TrimSuffix(fields[1], "/")
	if below, old := strings.CutPrefix(path, "/var/run/"); old {
		path = "/run/" + below
	}
	if !strings.HasPrefix(path, "/run/") || rootpath.CheckClean(path) != nil || len(path) > runPathMax {
		return "", nil
	}
	field := func(i int) string {
		if i < len(fields) && fields[i] != "-" {
			return fields[i]
		}
		return ""
	}
	switch strings.TrimRight(fields[0], "!+-=~^$?") {
	case "d", "D", "q", "Q", "v":
		mode, err := strconv.ParseUint(strings.TrimLeft(field(2), "~:"), 8, 32)
		if err == nil && mode&unix.S_IWOTH != 0 {
			entry = &RunEntry{Path: path}
		}
		return path, entry
	case "L":
		if to := field(6); to != "" && len(to) <= runPathMax {
			entry = &RunEntry{Path: path, Link: to}
		}
		return path, entry
	}
	return "", nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// listDirectoryIn returns the names in a directory of an open root, at most that many, sorted; none if it cannot be
// read.
func listDirectoryIn(root int, path string, most int) []string {
	dir, err := rootpath.OpenInRoot(root, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(dir), path)
	defer f.Close()
	names, _ := f.Readdirnames(most)
	slices.Sort(names)
	return names
}

// ReadTextIn returns the beginning of a regular file of an open root, or "" if it cannot be read. A link to /dev/null,
// by which an administrator hides a file, is not a regular file.
func ReadTextIn(root int, path string, most int64) string {
	f, err := rootpath.OpenFileInRoot(root, path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, most))
	return string(text)
}
