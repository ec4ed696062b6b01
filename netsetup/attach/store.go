// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/statefile"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/internal/wholefile"
)

// store is the state directory:
//
//	vf/0000:86:00.2.json   a VF that a job holds: its original state, and the last step that has begun
//	jobs/4711.json         a job: its control interface, and its network when complete
//	lock, jobs.lock        see lock.go
type store string

// prepare creates the missing parts of the directory, and rejects a directory to which others can write: journals
// decide which links root moves and which addresses it releases.
func (s store) prepare() error {
	if err := trusted.Parents(string(s)); err != nil {
		return err
	}
	for _, dir := range []string{"", "vf", "jobs"} {
		path := filepath.Join(string(s), dir)
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot create the directory %s: %w; create the directory above it", path, err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("cannot stat the directory %s: %w", path, err)
		}
		if err := trusted.Check(path, &st, unix.S_IFDIR); err != nil {
			return err
		}
		if st.Mode&0o777 != 0o700 {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s store) vfPath(pci string) string  { return filepath.Join(string(s), "vf", pci+".json") }
func (s store) jobPath(job string) string { return filepath.Join(string(s), "jobs", job+".json") }

// writeJournal replaces a journal as a whole, and returns when it is on disk, so that neither a kill nor a power cut
// leaves half a journal.
func writeJournal(path string, value any) error {
	if err := statefile.Write(path, value); err != nil {
		return fmt.Errorf("cannot write the journal %s: %w; free space in its file system", path, err)
	}
	return nil
}

// removeJournal removes a journal; that it is missing is no error.
func removeJournal(path string) error {
	// A process that is killed in writeJournal leaves the file with the suffix.
	for _, p := range []string{path + wholefile.Suffix, path} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the journal %s: %w", path, err)
		}
	}
	return wholefile.Sync(filepath.Dir(path))
}

// removeStrays removes temporary files of journals that were never written. The caller holds the node's lock, under
// which each journal is written for the first time: without it, such a file could be a journal that is being written.
func (s store) removeStrays() error {
	var errs []error
	for _, dir := range []string{"vf", "jobs"} {
		paths, err := filepath.Glob(filepath.Join(string(s), dir, "*.json.new"))
		errs = append(errs, err)
		for _, path := range paths {
			journal := strings.TrimSuffix(path, ".new")
			if _, err := os.Lstat(journal); errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, removeJournal(journal))
			}
		}
	}
	return errors.Join(errs...)
}

// readJournal reads a journal. Nothing removes a damaged journal by itself, because it is the only record of a VF that
// a job may have.
func readJournal(path string, into any, check func() error) error {
	err := statefile.ReadStrict(path, into, check)
	var damaged *statefile.DamagedError
	if errors.As(err, &damaged) {
		return fmt.Errorf("the journal %w; restore the VF or the job that it describes by hand, then remove the file",
			err)
	}
	return err
}

// StateDir returns the directory of this package's state below gojail's state directory. It
// does not create it.
func StateDir(state string) string { return filepath.Join(state, "net") }

// IsEmpty reports whether no job has a VF or a control interface on the node. state is
// Site.State.
func IsEmpty(state string) bool { return store(state).isEmpty() }
