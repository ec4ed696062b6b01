// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"os"

	"github.com/gojail/gojail/internal/statefile"
	"github.com/gojail/gojail/internal/wholefile"
)

// Publish adds a finished tree or image file to the versions of the jail. tree and list are paths in the work item, and
// are already on the disk. The version appears atomically, and is not the current one.
func (w *Work) Publish(ctx context.Context, tree, list string, r *Record) error {
	j := w.jail
	return j.withLock(ctx, func() error {
		if j.hasVersion(r.Version) {
			return fmt.Errorf("jail %s already has a version %s", j.Name, r.Version)
		}
		if err := os.Rename(list, j.ListPath(r.Version)); err != nil {
			return fmt.Errorf("cannot store the list of files: %w", err)
		}
		text, err := statefile.Encode(r)
		if err != nil {
			return err
		}
		if err := wholefile.Save(j.recordPath(r.Version), text, 0o644); err != nil {
			return fmt.Errorf("cannot write the record: %w", err)
		}
		// NFS does not support RENAME_NOREPLACE; the lock excludes other writers.
		if err := os.Rename(tree, j.path(versionsDir, fileName(r.Version, r.Format))); err != nil {
			return fmt.Errorf("cannot move the version to its place: %w", err)
		}
		return wholefile.Sync(j.path(versionsDir))
	})
}

// Remove removes a version. It fails if the version is the current one or is being copied. It calls check under the
// jail's lock; an error of check keeps the version.
func (j *Jail) Remove(ctx context.Context, id string, check func(*Version) error) error {
	var trash *Work
	err := j.withLock(ctx, func() (err error) {
		v, err := j.Version(id)
		if err != nil {
			return err
		}
		if v.Current {
			return fmt.Errorf("version %s is the current one of jail %s; switch to another one first", v.Version,
				j.Name)
		}
		if err := j.refuseCopied(v); err != nil {
			return err
		}
		if err := check(v); err != nil {
			return err
		}
		if trash, err = j.newWork(kindTrash); err != nil {
			return err
		}
		if err := os.Rename(j.Path(v), trash.Path(v.file)); err != nil {
			return fmt.Errorf("cannot move version %s away: %w", v.Version, err)
		}
		if err := wholefile.Sync(j.path(versionsDir)); err != nil {
			return fmt.Errorf("cannot write the removal of version %s to the disk: %w", v.Version, err)
		}
		return j.removeOrphanRecords()
	})
	if trash == nil {
		return err
	}
	if err != nil {
		trash.lock.Close() // an orphan, which the next change removes
		return err
	}
	return trash.Remove()
}
