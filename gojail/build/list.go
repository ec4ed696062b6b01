// SPDX-License-Identifier: Apache-2.0

package build

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/gojail/unpack"
	"github.com/gojail/gojail/internal/oneline"
)

// writeList writes the list of a tree's files to a compressed file, and syncs it to the disk.
func writeList(ctx context.Context, tree unpack.Tree, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("cannot create the list of files: %w", oneline.Cause(err))
	}
	defer file.Close()
	compressed := gzip.NewWriter(file)
	if err := tree.List(ctx, compressed); err != nil {
		return fmt.Errorf("cannot list the files: %w", err)
	}
	err = compressed.Close()
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return fmt.Errorf("cannot write the list of files: %w", oneline.Cause(err))
	}
	return nil
}

// Verify calls report for each difference between a version and its list, which was written when it was built. An image
// file is compared as a whole.
func Verify(ctx context.Context, jail *store.Jail, v *store.Version, self []string,
	report func(unpack.Difference)) error {
	if v.Err != nil {
		return fmt.Errorf("version %s cannot be verified: %w", v.Version, v.Err)
	}
	path := jail.Path(v)
	if v.Format != store.FormatDir {
		digest, _, err := hashFile(path)
		if err == nil && digest != v.ImageSum {
			report(unpack.Difference{Path: path, What: unpack.DifferenceChanged, Keys: []string{"content"}})
		}
		return err
	}
	file, err := os.Open(jail.ListPath(v.Version))
	if err != nil {
		return fmt.Errorf("version %s cannot be verified: %w", v.Version, err)
	}
	defer file.Close()
	was, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("the stored list is damaged: %w", err)
	}
	reader, writer := io.Pipe()
	defer reader.Close()
	go func() { writer.CloseWithError(unpack.Tree{Dir: path, Self: self}.List(ctx, writer)) }()
	return unpack.Compare(was, reader, report)
}
