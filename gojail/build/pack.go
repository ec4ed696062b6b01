// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
)

// packers are the programs that create image files; TREE and FILE stand for the paths.
var packers = map[string]struct {
	args    []string
	install string
}{
	store.FormatSquashfs: {[]string{"mksquashfs", "TREE", "FILE", "-noappend", "-no-progress", "-quiet", "-no-recovery",
		"-exit-on-error", "-comp", "zstd", "-Xcompression-level", "3"}, "squashfs-tools"},
	store.FormatEROFS: {[]string{"mkfs.erofs", "--quiet", "-zlz4hc", "FILE", "TREE"}, "erofs-utils"},
}

// checkFormat fails if a version cannot be stored in a format on this machine.
func checkFormat(format string) error {
	if format == store.FormatDir {
		return nil
	}
	packer, known := packers[format]
	if !known {
		return fmt.Errorf("format %q: write %s, %s or %s", format, store.FormatDir, store.FormatSquashfs,
			store.FormatEROFS)
	}
	if _, err := exec.LookPath(packer.args[0]); err != nil {
		return fmt.Errorf("cannot make an image file: %w; install the package %s", err, packer.install)
	}
	return nil
}

// pack returns the path of the tree, or creates an image file of it and returns its path.
func (b *builder) pack(ctx context.Context) (string, error) {
	r := &b.record
	r.Stored = r.Bytes
	if r.Format == store.FormatDir {
		return b.tree.Dir, nil
	}
	b.report("packing " + r.Format)
	file := b.work.Path("image." + r.Format)
	if err := runPacker(ctx, packers[r.Format].args, b.tree.Dir, file); err != nil {
		return "", err
	}
	if err := syncFile(file); err != nil {
		return "", fmt.Errorf("cannot write the image file to the disk: %w", err)
	}
	var err error
	r.ImageSum, r.Stored, err = hashFile(file)
	return file, err
}

// runPacker runs a packer for a tree.
func runPacker(ctx context.Context, args []string, tree, file string) error {
	args = append([]string{}, args...)
	for i, arg := range args {
		switch arg {
		case "TREE":
			args[i] = tree
		case "FILE":
			args[i] = file
		}
	}
	return runTool(ctx, "make an image file", "", args...)
}

// syncFile sets mode 0644, and syncs a file to the disk.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return oneline.Cause(err)
	}
	defer file.Close()
	if err := file.Chmod(0o644); err != nil {
		return oneline.Cause(err)
	}
	return oneline.Cause(file.Sync())
}
