// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/output"
)

// Edit copies the current version of a jail, calls change with the copy, publishes it as a new version, and returns its
// record. If change fails, the copy is removed. The format is that of the current version. Source is only recorded.
func Edit(ctx context.Context, jail *store.Jail, r Request, change func(ctx context.Context, root string) error) (*store.Record, error) {
	base, err := jail.Version(store.Current)
	if err != nil {
		return nil, err
	}
	r.Format = base.Format
	return withWork(ctx, jail, &r, func(ctx context.Context, b *builder) (*store.Record, error) {
		b.record.Base, b.record.Platform = base.Version, base.Platform
		b.report("copying version " + base.Version)
		base, end, err := jail.BeginCopy(ctx, base.Version)
		if err != nil {
			return nil, err
		}
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

// copyVersion copies or unpacks a version to a directory. If the file system supports reflinks, a copy shares its blocks;
// before Linux 5.18 it does not, because cp reads the version by a mount of its own.
func copyVersion(ctx context.Context, from, format, to string) error {
	args := map[string][]string{
		store.FormatDir:      {"cp", "--archive", "--reflink=auto", "--one-file-system", "--no-target-directory", ".", to},
		store.FormatSquashfs: {"unsquashfs", "-quiet", "-no-progress", "-dest", to, from},
		store.FormatEROFS:    {"fsck.erofs", "--extract=" + to, "--preserve", from},
	}[format]
	said := &output.Head{Most: 2 << 10}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if format == store.FormatDir {
		view, err := openView(from)
		if err != nil {
			return fmt.Errorf("cannot copy the version: %w", err)
		}
		defer view.Close()
		cmd.Dir = fmt.Sprintf("/proc/self/fd/%d", view.Fd())
	}
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("cannot copy the version: %w; install the package that has it", err)
	case err != nil:
		return fmt.Errorf("cannot copy the version: %s: %w: %s", args[0], err, oneline.Text(string(said.Bytes())))
	}
	return nil
}
