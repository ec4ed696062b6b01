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
//	vf/0000:86:00.2.json   a VF that a job holds: what it was before, and how far its steps are
//	jobs/4711.json         a job: its control interface, and its network once that is complete
//	lock, jobs.lock        see lock.go
type store string

// prepare makes what is missing of the directory, and refuses one that others can write.
func (s store) prepare() error {
	if err := trusted.Parents(string(s)); err != nil {
		return err
	}
	for _, dir := range []string{"", "vf", "jobs"} {
		path := filepath.Join(string(s), dir)
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot make the directory %s: %w; make the one above it", path, err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("cannot look at the directory %s: %w", path, err)
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

func (s store) vf(pci string) string  { return filepath.Join(string(s), "vf", pci+".json") }
func (s store) job(job string) string { return filepath.Join(string(s), "jobs", job+".json") }

// write replaces a journal as a whole, and returns when the disk has it.
func write(path string, value any) error {
	if err := statefile.Write(path, value); err != nil {
		return fmt.Errorf("cannot write the journal %s: %w; make room in its file system", path, err)
	}
	return nil
}

// erase removes a journal; one that is gone is no error.
func erase(path string) error {
	for _, p := range []string{path + wholefile.Suffix, path} { // the first is left by a process that was killed in write
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot erase the journal %s: %w", path, err)
		}
	}
	return wholefile.Sync(filepath.Dir(path))
}

// tidy removes what is left of journals that were never there. First versions are
// written with the node's lock, which the caller has.
func (s store) tidy() error {
	var errs []error
	for _, dir := range []string{"vf", "jobs"} {
		paths, err := filepath.Glob(filepath.Join(string(s), dir, "*.json.new"))
		errs = append(errs, err)
		for _, path := range paths {
			journal := strings.TrimSuffix(path, ".new")
			if _, err := os.Lstat(journal); errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, erase(journal))
			}
		}
	}
	return errors.Join(errs...)
}

// read reads a journal. A damaged one is never erased: it is all that is known about a VF
// that a job may have.
func read(path string, into any, check func() error) error {
	err := statefile.ReadStrict(path, into, check)
	var damaged *statefile.DamagedError
	if errors.As(err, &damaged) {
		return fmt.Errorf("the journal %w; look after what it is about by hand, then remove it", err)
	}
	return err
}
