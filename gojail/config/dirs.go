// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// directories are the top-level directories with a meaning of their own. stage: the stage shows the node's, for
// programs, libraries and configuration. system: it is never data of a jail. closed: users can mount nothing on it,
// below it or over it, because a program with more rights than its user could load or trust the files there.
var directories = []struct {
	name                  string
	stage, system, closed bool
}{
	{"bin", true, true, true},
	{"sbin", true, true, true},
	{"lib", true, true, true},
	{"lib32", true, true, true},
	{"lib64", true, true, true},
	{"libx32", true, true, true},
	{"usr", true, true, true},
	{"etc", true, true, true},
	{"dev", true, true, true},
	{"proc", true, true, true},
	{"sys", true, true, true},
	{"run", true, true, true},
	{"nix", true, true, true},
	{"var", true, true, false}, // users mount data on /var/lib/NAME and on /opt
	{"opt", true, true, false},
	{"boot", false, true, true},
	{"snap", false, true, false},
	{"lost+found", false, true, false},
	{"tmp", false, false, true}, // each job has its own
}

// HostDirs, SystemDirs and closedToUsers are the columns of the table; closedToUsers has paths. They have no capacity
// beyond their length, so that an append copies them: several goroutines read them.
var HostDirs, SystemDirs, closedToUsers = listDirectories()

func listDirectories() (host, system, closed []string) {
	for _, d := range directories {
		if d.stage {
			host = append(host, d.name)
		}
		if d.system {
			system = append(system, d.name)
		}
		if d.closed {
			closed = append(closed, "/"+d.name)
		}
	}
	return slices.Clip(host), slices.Clip(system), slices.Clip(closed)
}

// systemPaths are directories of /var that belong to programs of the system.
var systemPaths = []string{"/var/backups", "/var/cache", "/var/crash", "/var/db", "/var/lib", "/var/local", "/var/lock",
	"/var/log",
	"/var/mail", "/var/opt", "/var/run", "/var/spool"}

// IsDataPath reports whether a directory of a jail, to which a symlink in its / leads, may hold users' data. It may lie
// in /, as directories there may be data by default, or below /var, for example /var/home.
func IsDataPath(path string) bool {
	switch first := FirstName(path); {
	case first == "var":
		return path != "/var" && !slices.ContainsFunc(systemPaths, func(dir string) bool { return Under(path, dir) })
	case Under(path, "/usr/home"):
		return true
	default:
		return !slices.Contains(SystemDirs, first) && first != "tmp" && first != "root" &&
			!strings.HasPrefix(first, ".")
	}
}

// FirstName returns the top-level directory of an absolute path: "home" of /home/x.
func FirstName(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}

// parseWritable parses the keys writable and writable_size, after those they depend on.
func (s *source) parseWritable(j *Jail, f *fileJail) (err error) {
	key := func(last string) []string { return []string{"jail", j.Name, last} }
	if f.Writable != nil {
		j.Writable = *f.Writable
		switch {
		case j.Writable != WritableTmpfs && j.Writable != WritableDisk:
			return s.refuse(key("writable"), `%q: write "tmpfs" or "disk"`, j.Writable)
		case j.Readonly:
			return s.refuse(key("writable"), "contradicts readonly = true; remove one of them")
		case slices.Contains(j.Isolation.JailRoot, "range"):
			return s.refuse(key("writable"),
				`cannot be combined with "range" in jail_root: overlayfs does not map ids; remove one of them`)
		}
	}
	if f.WriteSize != nil && j.Writable != WritableTmpfs {
		return s.refuse(key("writable_size"),
			`requires writable = "tmpfs"; with "disk" tmp_size limits what a job writes to the root, too`)
	}
	j.WriteSize, err = s.parseSize(f.WriteSize, key("writable_size")...)
	return err
}
