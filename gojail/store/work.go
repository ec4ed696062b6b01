// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/rmtree"
	"github.com/gojail/gojail/internal/wholefile"
)

// ownerFile is the lock of a work item.
const ownerFile = "owner.json"

// Kinds of work items, with which their names begin.
const (
	kindBuild = "build-"
	kindTrash = "trash-"
)

// Work is a work item: a directory of this process in the jail's work area, on the file system of the versions.
type Work struct {
	Dir  string
	jail *Jail
	lock *os.File
}

// busyError is the error for a jail of which another process builds a version.
type busyError struct {
	Jail   string
	Holder holder
}

func (e *busyError) Error() string {
	return fmt.Sprintf("jail %s is being built by %s; wait for it with --wait", e.Jail, e.Holder)
}

// StartBuild creates the work item of a build. If another build is running, it waits for the end of that, or returns a
// busyError.
func (j *Jail) StartBuild(ctx context.Context, wait bool) (work *Work, err error) {
	for {
		err = j.withLock(ctx, func() error {
			if busy := j.findBusy(kindBuild); busy != nil {
				return busy
			}
			work, err = j.newWork(kindBuild)
			return err
		})
		var busy *busyError
		if !errors.As(err, &busy) || !wait {
			return work, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// newWork creates a work item. The caller holds the jail's lock, so that nobody claims the item before it is locked.
func (j *Jail) newWork(kind string) (*Work, error) {
	dir, err := os.MkdirTemp(j.path(workDir), kind)
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a work directory: %w", err)
	}
	lock, err := filelock.Try(filepath.Join(dir, ownerFile))
	if err == nil {
		if err = writeHolder(lock); err != nil {
			lock.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the work directory %s: %w", dir, err)
	}
	return &Work{dir, j, lock}, nil
}

// findBusy returns a busyError with the holder if a process has a work item of a kind. The caller holds the jail's lock
// and has claimed the orphans, which then have the kind trash.
func (j *Jail) findBusy(kind string) error {
	items, err := j.workItems(kind)
	if err != nil {
		return err
	}
	if len(items) > 0 {
		return &busyError{j.Name, readHolder(filepath.Join(items[0], ownerFile))}
	}
	return nil
}

// workItems returns the paths of the work items of a kind.
func (j *Jail) workItems(kind string) (list []string, err error) {
	entries, err := os.ReadDir(j.path(workDir))
	if err != nil {
		return nil, fmt.Errorf("cannot read the work area of jail %s: %w", j.Name, err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), kind) {
			list = append(list, j.path(workDir, e.Name()))
		}
	}
	return list, nil
}

// claimOrphans locks the work items whose process has ended, and renames them to trash. It also removes records without
// a version. The caller holds the jail's lock.
func (j *Jail) claimOrphans() (orphans []*Work, err error) {
	items, err := j.workItems("")
	if err != nil {
		return nil, err
	}
	for _, dir := range items {
		lock, err := filelock.Try(filepath.Join(dir, ownerFile))
		switch {
		case errors.Is(err, filelock.ErrBusy), errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return orphans, fmt.Errorf("cannot lock the work directory %s: %w", dir, err)
		}
		orphan := &Work{dir, j, lock}
		if !strings.HasPrefix(filepath.Base(dir), kindTrash) {
			orphan.Dir = j.path(workDir, kindTrash+filepath.Base(dir))
			err = os.Rename(dir, orphan.Dir)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // its command has removed it since
			lock.Close()
			continue
		case err != nil:
			lock.Close()
			return orphans, fmt.Errorf("cannot move away what a killed command left: %w", err)
		}
		orphans = append(orphans, orphan)
	}
	for _, left := range []string{j.path(workDir, linkName), j.path(historyFile) + wholefile.Suffix} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return orphans, fmt.Errorf("cannot remove what a killed switch left: %w", err)
		}
	}
	return orphans, j.removeOrphanRecords()
}

func (j *Jail) removeOrphanRecords() error {
	entries, err := os.ReadDir(j.path(recordsDir))
	if err != nil {
		return fmt.Errorf("cannot read the records of jail %s: %w", j.Name, err)
	}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".json")
		id, _, _ = strings.Cut(id, ".mtree.gz")
		if j.hasVersion(id) && !strings.HasSuffix(e.Name(), ".new") {
			continue
		}
		if err := os.Remove(j.path(recordsDir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove a record without a version: %w", err)
		}
	}
	return nil
}

func (j *Jail) hasVersion(id string) bool {
	for _, format := range []string{FormatDir, FormatSquashfs, FormatEROFS} {
		if _, err := os.Lstat(j.path(versionsDir, fileName(id, format))); !errors.Is(err, fs.ErrNotExist) {
			return true // also if the storage returns another error
		}
	}
	return false
}

// Path returns a path in the work item.
func (w *Work) Path(name string) string { return filepath.Join(w.Dir, name) }

// Remove removes the work item and its contents. It removes the lock last, so that a killed removal is continued:
// between its last steps, another command may take the item for an orphan, and then removes it.
func (w *Work) Remove() error {
	defer w.lock.Close()
	entries, err := os.ReadDir(w.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the work directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == ownerFile {
			continue
		}
		if err := rmtree.Remove(w.Dir, e.Name(), time.Now().Add(24*time.Hour)); err != nil {
			return err
		}
	}
	// An open file that is removed over NFS leaves a .nfs file, and the directory would not be empty.
	w.lock.Close()
	if err := unix.Unlink(w.Path(ownerFile)); err != nil && err != unix.ENOENT {
		return fmt.Errorf("cannot remove %s: %w", w.Path(ownerFile), err)
	}
	if err := unix.Rmdir(w.Dir); err != nil && err != unix.ENOENT && err != unix.ENOTEMPTY {
		return fmt.Errorf("cannot remove the work directory %s: %w", w.Dir, err)
	}
	return nil
}
