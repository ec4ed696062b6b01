// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/internal/statefile"
)

// Formats of a version. The name of an image file ends with its format.
const (
	FormatDir      = "dir"
	FormatSquashfs = "squashfs"
	FormatEROFS    = "erofs"
)

// Current stands for the current version in place of a version's name.
const Current = currentLink

// Record describes how a version was built.
type Record struct {
	Version  string           `json:"version"`
	Format   string           `json:"format"`
	Source   string           `json:"source"`             // the argument of the build
	Digest   string           `json:"digest,omitempty"`   // digest of the image's manifest, or of the archive
	Platform string           `json:"platform,omitempty"` // platform of an image
	Base     string           `json:"base,omitempty"`     // the version of which it is an edited copy
	Built    time.Time        `json:"built"`
	By       string           `json:"by"`
	Gojail   string           `json:"gojail"` // version of gojail that built it
	Entries  int64            `json:"entries"`
	Bytes    int64            `json:"bytes"`            // size of all files
	Stored   int64            `json:"stored"`           // size of an image file, or Bytes
	ImageSum string           `json:"sha256,omitempty"` // digest of an image file
	LeftOut  map[string]int64 `json:"left_out,omitempty"`
	Targets  []string         `json:"mount_targets,omitempty"` // mount targets that the build created
}

// Version is a version of a jail.
type Version struct {
	Record
	Current bool
	Err     error // set if the record is missing or damaged; then only Version and Format are known
	file    string
}

// Versions returns the versions of the jail, the oldest first.
func (j *Jail) Versions() ([]*Version, error) {
	entries, err := os.ReadDir(j.path(versionsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the versions of jail %s: %w", j.Name, err)
	}
	current, err := j.CurrentFile()
	if err != nil {
		return nil, err
	}
	var list []*Version
	for _, e := range entries {
		v := &Version{file: e.Name(), Current: e.Name() == current}
		id, format := splitFile(e.Name(), e.IsDir())
		if checkName(id) != nil {
			continue
		}
		v.Err = statefile.Read(j.recordPath(id), &v.Record, func() error { return checkRecord(&v.Record, id, format) })
		if v.Err != nil {
			v.Record = Record{Version: id, Format: format}
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *Version) int { return strings.Compare(a.Version, b.Version) })
	return list, nil
}

// splitFile returns the version and the format of a name in versions/.
func splitFile(name string, isDir bool) (id, format string) {
	if isDir {
		return name, FormatDir
	}
	for _, format := range []string{FormatSquashfs, FormatEROFS} {
		if id, ok := strings.CutSuffix(name, "."+format); ok {
			return id, format
		}
	}
	return "", ""
}

// fileName is the reverse of splitFile.
func fileName(id, format string) string {
	if format == FormatDir {
		return id
	}
	return id + "." + format
}

// checkRecord fails if a record does not belong to a version.
func checkRecord(r *Record, id, format string) error {
	if r.Version != id || r.Format != format {
		return fmt.Errorf("it is of version %q as %q", r.Version, r.Format)
	}
	return nil
}

func (j *Jail) recordPath(id string) string { return j.path(recordsDir, id+".json") }

// ListPath returns the path of the list of a version's files, compressed by gzip.
func (j *Jail) ListPath(id string) string { return j.path(recordsDir, id+".mtree.gz") }

// Path returns the path of a version.
func (j *Jail) Path(v *Version) string { return j.path(versionsDir, v.file) }

// Version returns a version by its name, by a unique beginning of its name, or by Current.
func (j *Jail) Version(id string) (*Version, error) {
	all, err := j.Versions()
	if err != nil {
		return nil, err
	}
	var found []*Version
	var names []string
	for _, v := range all {
		if v.Version == id || id == currentLink && v.Current {
			return v, nil
		}
		if strings.HasPrefix(v.Version, id) && id != "" {
			found = append(found, v)
		}
		names = append(names, v.Version)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("jail %s has %d versions that begin with %q; write more of the name", j.Name, len(found),
			id)
	case id == currentLink:
		return nil, fmt.Errorf("jail %s has no current version; choose one with: gojail jail switch %s VERSION", j.Name,
			j.Name)
	case len(names) == 0:
		return nil, fmt.Errorf("jail %s has no version; build one with: gojail jail build %s --from SOURCE", j.Name,
			j.Name)
	}
	return nil, fmt.Errorf("jail %s has no version %q; it has: %s", j.Name, id, strings.Join(names, ", "))
}

// idTime is the layout of the time with which the name of a version begins, in UTC.
const idTime = "20060102-150405"

// NewID returns the name of a new version that is built from the source with a digest. Names sort in the order of the
// builds. If the time is not later than that of the newest version, because of a build in the same second or of a clock
// that is behind, NewID takes the next second. The caller has the work item of a build, so that nobody else publishes a
// version.
func (j *Jail) NewID(now time.Time, digest string) (string, error) {
	versions, err := j.Versions()
	if err != nil {
		return "", err
	}
	now = now.UTC().Truncate(time.Second)
	for _, v := range versions {
		built, err := time.Parse(idTime, v.Version[:min(len(idTime), len(v.Version))])
		if err == nil && !now.After(built) && built.Sub(now) <= clockMargin {
			now = built.Add(time.Second)
		}
	}
	_, hex, _ := strings.Cut(digest, ":")
	return now.Format(idTime) + "-" + hex[:min(8, len(hex))], nil
}

// ID returns the version's name for a name in versions/.
func ID(file string) string {
	if id, _ := splitFile(file, false); id != "" {
		return id
	}
	return file
}

// FileID is the device and the inode of a file.
type FileID struct{ Dev, Ino uint64 }

// Roots returns the names of all versions that are directories, by device and inode.
func (s *Store) Roots() (map[FileID]string, error) {
	jails, err := s.Jails()
	if err != nil {
		return nil, err
	}
	roots := map[FileID]string{}
	for _, j := range jails {
		entries, err := os.ReadDir(j.path(versionsDir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read the versions of jail %s: %w", j.Name, err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if st, ok := sysStat(info, err); ok && info.IsDir() {
				roots[FileID{st.Dev, st.Ino}] = e.Name()
			}
		}
	}
	return roots, nil
}

func sysStat(info fs.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil {
		return nil, false // removed meanwhile
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}
