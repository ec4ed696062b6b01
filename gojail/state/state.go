// SPDX-License-Identifier: Apache-2.0

// Package state reads and writes the state directory: records, holders, and the specs of running
// sandboxes.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/quota"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/wholefile"
)

// State is the state directory of a node, which docs/state.md describes.
type State struct{ path string }

// OpenState opens the state directory, and creates it (0700) if only the last component of its path is
// missing. It must belong to root and must not be writable by others.
func OpenState(path string) (*State, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot create the state directory %s: %w", path, oneline.Cause(err))
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state directory %s: %w", path, oneline.Cause(err))
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return nil, fmt.Errorf("the state directory %s is not a directory; remove it", path)
	case st.Uid != 0 || info.Mode().Perm()&0o022 != 0:
		return nil,
			fmt.Errorf(
				"the state directory %s can be written by others than root; run: chown root %[1]s; chmod 700 %[1]s",
				path)
	}
	return &State{path}, nil
}

// Path returns the path of the directory.
func (s *State) Path() string { return s.path }

// Job is a job with records in the state directory.
type Job struct {
	ID        string // Slurm's job id, run-PID, or login-UID: the sessions of a user on a login node
	Sandboxes []Record
}

// JobRule matches the name of a job. Files with other names are never removed.
var JobRule = regexp.MustCompile(`^((run|login)-)?[0-9]{1,20}$`)

// Jobs returns the jobs that have, or had, sandboxes on this node.
func (s *State) Jobs() ([]Job, error) {
	ids, err := Directories(filepath.Join(s.path, contract.JobsDir))
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, id := range ids {
		if !JobRule.MatchString(id) {
			continue
		}
		records, err := s.Sandboxes(id)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, Job{id, records})
	}
	return jobs, nil
}

// Sandboxes returns the records in jobs/ID, or none if the directory does not exist.
func (s *State) Sandboxes(id string) ([]Record, error) {
	entries, err := os.ReadDir(s.JobDir(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %s: %w", s.JobDir(id), oneline.Cause(err))
	}
	var records []Record
	for _, e := range entries {
		name := e.Name()
		if name[0] == '.' || contract.IsOtherFile(name) {
			continue
		}
		r := ReadRecord(filepath.Join(s.JobDir(id), name))
		if r.Damaged && !rootpath.Exists(filepath.Join(s.JobDir(id), name)) {
			continue // the job ended at this moment
		}
		records = append(records, r)
	}
	return records, nil
}

// Begun returns the time at which the job's first sandbox on this node was made, or the zero time.
func (s *State) Begun(id string) time.Time {
	info, err := os.Lstat(filepath.Join(s.JobDir(id), contract.OwnerFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Zygotes returns the records of the jails' zygotes, each with the jail's name.
func (s *State) Zygotes() ([]Record, error) {
	jails, err := Directories(filepath.Join(s.path, contract.JailsDir))
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, jail := range jails {
		path := s.ZygoteRecord(jail)
		if _, err := os.Lstat(path); err != nil {
			continue // being created
		}
		r := ReadRecord(path)
		r.Name = jail
		records = append(records, r)
	}
	return records, nil
}

// WriteSpec writes the config.json from which a jail's template is assembled.
func (s *State) WriteSpec(jail string, text []byte) error {
	if err := os.MkdirAll(s.JailDir(jail), 0o700); err != nil {
		return fmt.Errorf("cannot create %s: %w; is the state directory full or read-only?", s.JailDir(jail),
			oneline.Cause(err))
	}
	return ReplaceFile(filepath.Join(s.JailDir(jail), contract.TemplateSpec), string(text))
}

// Template returns the record of the process that holds a jail's template.
func (s *State) Template(jail string) (Record, error) {
	r := ReadRecord(s.ZygoteRecord(jail))
	if !r.Alive {
		return r, fmt.Errorf("jail %s has no template on this node at the moment; try again", jail)
	}
	return r, nil
}

// TemplateRoot returns a path of the root of a jail's template.
func (s *State) TemplateRoot(jail string) (string, error) {
	r, err := s.Template(jail)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/proc/%d/root", r.PID), nil
}

// JobDir returns the directory of a job's records.
func (s *State) JobDir(id string) string { return filepath.Join(s.path, contract.JobsDir, id) }

// JailDir returns the directory of a jail's template.
func (s *State) JailDir(name string) string { return filepath.Join(s.path, contract.JailsDir, name) }

// ZygoteRecord returns the path of the record of a jail's zygote.
func (s *State) ZygoteRecord(name string) string {
	return filepath.Join(s.JailDir(name), contract.ZygoteRecord)
}

// Directories returns the names of the directories in dir, or none if dir does not exist.
func Directories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, oneline.Cause(err))
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// ScratchUsage returns how much of the node's disk a job uses below the scratch directory, if project quotas count it.
// The path is root's: no user can enter the directory above those of the jobs.
func (s *State) ScratchUsage(job string) (u quota.Usage, known bool) {
	path, err := os.Readlink(filepath.Join(s.JobDir(job), contract.ScratchLink))
	if err != nil {
		return u, false // its /tmp is in memory, or the job has ended
	}
	dir, err := rootpath.OpenDirectory(unix.AT_FDCWD, filepath.Dir(path), 0)
	if err != nil {
		return u, false
	}
	defer dir.Close()
	return quota.ReadUsage(int(dir.Fd()), job)
}

// Cgroups returns the paths of a job's cgroups as its first step noted them: one with v2, one for each controller with
// v1, none if Slurm uses none.
func (s *State) Cgroups(job string) []string {
	text, err := os.ReadFile(filepath.Join(s.JobDir(job), contract.CgroupsFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// ReplaceFile atomically replaces the file at path, readable by root only. The caller holds a lock.
func ReplaceFile(path, text string) error {
	if err := wholefile.Write(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w; is the state directory full or read-only?", path, oneline.Cause(err))
	}
	return nil
}
