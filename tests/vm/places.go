// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// places are the files of this machine that a guest is made of.
type places struct {
	repository string
	processor  processor // of the guest
	build      string    // the directory of what is made for it
	fetched    string    // QEMU, by tests/vm/fetch
	kernel     string    // the directory of a kernel and its modules, by tests/vm/fetch
	image      string    // the file of the kernel in it
	root       string    // the guest's root
	disk       string    // the scratch disk, "" without a release
	storage    string    // the root of a file server, by tests/storage/fetch; "" without
}

// defaultKernel is the kernel of a guest that names none.
const defaultKernel = "6.12"

// findPlaces returns the paths of everything that a guest needs. Its error names the command that makes
// what is missing.
func findPlaces(ctx context.Context, arch, release, kernel string) (p places, err error) {
	if os.Geteuid() != 0 {
		return p, errors.New("vm: needs root: the root of a release has files that only root reads")
	}
	if p.repository, err = findRepository(); err != nil {
		return p, err
	}
	if p.processor, p.build, err = findProcessor(arch); err != nil {
		return p, err
	}
	p.build = filepath.Join(p.repository, p.build)
	cache := filepath.Join(p.build, "cache")
	if p.fetched, err = filepath.EvalSymlinks(filepath.Join(cache, "vm")); err != nil {
		return p, fmt.Errorf("vm: needs QEMU in %s/vm: run tests/vm/fetch", cache)
	}
	kernel = cmp.Or(kernel, defaultKernel)
	if p.kernel, err = filepath.EvalSymlinks(filepath.Join(cache, "kernel-"+kernel)); err != nil {
		return p, fmt.Errorf("vm: needs a kernel in %s/kernel-%s: run tests/vm/fetch %s", cache, kernel, kernel)
	}
	images, _ := filepath.Glob(filepath.Join(p.kernel, "usr/lib/modules/*/vmlinuz"))
	if len(images) != 1 {
		return p, fmt.Errorf("vm: %s has %d kernels: remove it and run tests/vm/fetch %s", p.kernel, len(images), kernel)
	}
	p.image, p.root = images[0], "/"
	if server, err := filepath.EvalSymlinks(filepath.Join(cache, "storage")); err == nil {
		p.storage = server
	}
	if release == "" {
		return p, nil
	}
	if p.root, err = filepath.EvalSymlinks(filepath.Join(cache, "slurm-"+release)); err != nil {
		return p, fmt.Errorf("vm: needs the root of Slurm %s in %s: run tests/releases/make %s", release, cache, release)
	}
	p.disk, err = makeScratchDisk(ctx, p, release)
	return p, err
}

// findRepository returns the root of the work tree: the directory of go.mod.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("vm: not inside the repository: no go.mod above the working directory"))
}

// runTool runs one of the fetched programs and returns what it prints.
func (p places) runTool(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.repository, "tests/vm/tool"), append([]string{p.fetched, program}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("vm: %s: %w", program, err)
	}
	return out, nil
}

// makeScratchDisk returns the image of a disk with the jail of the release, as
// build/ of the guest has it. It is made once; guests write to copies.
func makeScratchDisk(ctx context.Context, p places, release string) (string, error) {
	cache := filepath.Join(p.build, "cache")
	jail, err := os.Readlink(filepath.Join(cache, "jail-"+release))
	if err != nil {
		return "", fmt.Errorf("vm: needs the jail of Slurm %s in %s: run tests/releases/make %s", release, cache, release)
	}
	recipe := sha256.Sum256([]byte(jail + diskRecipe))
	disk := filepath.Join(cache, fmt.Sprintf("scratch-%s-%x.ext4", release, recipe[:8]))
	lock, err := os.OpenFile(filepath.Join(cache, "scratch.lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("vm: lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(disk); err == nil {
		return disk, nil
	}
	old, _ := filepath.Glob(filepath.Join(cache, "scratch-"+release+"-*"))
	for _, path := range old { // of older jails, or of a run that was killed
		os.RemoveAll(path)
	}
	return disk, makeDisk(ctx, p, jail, release, disk)
}

const (
	diskRecipe = "2" // another number makes every disk anew
	diskSize   = "8G"
)

func makeDisk(ctx context.Context, p places, jail, release, disk string) error {
	tree := disk + ".tree"
	defer os.RemoveAll(tree)
	for _, dir := range []string{"cache", "cluster", "releases/" + release} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			return err
		}
	}
	copied := exec.CommandContext(ctx, "cp", "-al", filepath.Join(p.build, "cache", jail), filepath.Join(tree, "cache", jail))
	if out, err := copied.CombinedOutput(); err != nil {
		return fmt.Errorf("vm: copy the jail: %w: %s", err, out)
	}
	if err := os.Symlink(jail, filepath.Join(tree, "cache/jail-"+release)); err != nil {
		return err
	}
	quota := []string{"-O", "quota,project", "-E", "quotatype=prjquota"} // for tmp_size
	if _, err := p.runTool(ctx, "usr/sbin/mke2fs", slices.Concat([]string{"-q", "-t", "ext4"}, quota, []string{"-d", tree, disk + ".new", diskSize})...); err != nil {
		return err
	}
	return os.Rename(disk+".new", disk)
}
