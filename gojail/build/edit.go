// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"

	"github.com/gojail/gojail/gojail/store"
)

// Edit copies the current version of a jail, calls change with the copy, publishes it as a new version, and returns its
// record. If change fails, the copy is removed. The format is that of the current version. The record names r.Source,
// which is not opened.
func Edit(ctx context.Context, jail *store.Jail, r Request,
	change func(ctx context.Context, root string) error) (*store.Record, error) {
	base, err := jail.Version(store.Current)
	if err != nil {
		return nil, err
	}
	r.Format = base.Format
	return withWork(ctx, jail, &r, func(ctx context.Context, b *builder) (*store.Record, error) {
		// Again, under the lock: somebody may have switched during the wait, or on another node just before it.
		base, end, err := jail.BeginCopy(ctx, store.Current)
		if err != nil {
			return nil, err
		}
		b.record.Base, b.record.Platform, b.record.Format = base.Version, base.Platform, base.Format
		b.report("copying version " + base.Version)
		err = copyVersion(ctx, jail.Path(base), base.Format, b.tree.Dir)
		end()
		if err != nil {
			return nil, err
		}
		b.report("editing")
		if err := change(ctx, b.tree.Dir); err != nil {
			return nil, err
		}
		b.report("counting")
		result, err := b.tree.Strip(ctx, r.Policy)
		if err != nil {
			return nil, err
		}
		b.record.Entries, b.record.Bytes, b.record.LeftOut = result.Entries, result.Bytes, result.LeftOut
		return b.publishTree(ctx)
	})
}

// copyVersion copies or unpacks a version to a directory. If the file system supports reflinks, a copy shares its
// blocks with the version. Before Linux 5.18 it does not, because cp reads the version through a mount of its own.
func copyVersion(ctx context.Context, from, format, to string) error {
	args := map[string][]string{
		store.FormatDir: {"cp", "--archive", "--reflink=auto", "--one-file-system", "--no-target-directory", ".",
			to},
		store.FormatSquashfs: {"unsquashfs", "-quiet", "-no-progress", "-dest", to, from},
		store.FormatEROFS:    {"fsck.erofs", "--extract=" + to, "--preserve", from},
	}[format]
	const what = "copy the version"
	if format != store.FormatDir {
		return runTool(ctx, what, "", args...)
	}
	view, err := openView(from)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	defer view.Close()
	return runTool(ctx, what, fmt.Sprintf("/proc/self/fd/%d", view.Fd()), args...)
}
