// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// makeRunDirectory creates the directory of one run, locked until the run ends, and removes the
// directories of runs that were killed.
func makeRunDirectory(repository string) (dir string, release func(), err error) {
	all := filepath.Join(repository, "build/vm")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return "", nil, err
	}
	old, _ := filepath.Glob(filepath.Join(all, "run-*"))
	for _, dir := range old {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Hour {
			continue // perhaps not locked yet
		}
		if lock, err := lockDirectory(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
	if dir, err = os.MkdirTemp(all, "run-"); err != nil {
		return "", nil, err
	}
	held, err := lockDirectory(dir)
	if err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir); held.Close() }, nil
}

func lockDirectory(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("vm: lock %s: %w", dir, err)
	}
	return f, nil
}

// prepareRun writes the guest's order and the archive that it boots from.
func prepareRun(ctx context.Context, p places, dir string, o Options) error {
	shared := filepath.Join(dir, "share")
	if err := os.Mkdir(shared, 0o755); err != nil {
		return err
	}
	for name, path := range o.Files {
		if out, err := exec.CommandContext(ctx, "cp", path, filepath.Join(shared, name)).CombinedOutput(); err != nil {
			return fmt.Errorf("vm: copy %s for the guest: %w: %s", path, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(shared, OutputFile), nil, 0o644); err != nil {
		return err
	}
	order, err := json.Marshal(newOrder(p, o))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(shared, OrderFile), order, 0o644); err != nil {
		return err
	}
	return makeInitramfs(ctx, p, modules, filepath.Join(dir, "initramfs"))
}

func newOrder(p places, o Options) Order {
	order := Order{Command: o.Command, Dir: o.Dir, Repository: p.repository, Release: o.Release,
		Built: p.findBuilt(o.Release), Storage: p.storage != "", Terminal: o.Terminal}
	if order.Dir == "" {
		order.Dir = p.repository
	}
	guest := o.Release
	if guest == "" {
		guest = "host"
	}
	order.Env = append([]string{"PATH=" + Path, "HOME=/root", "USER=root", "LANG=C.UTF-8", "SHELL=/bin/bash",
		GuestVariable + "=" + guest, "GOJAIL_RELEASE=" + o.Release, "TERM=" + os.Getenv("TERM")}, o.Env...)
	if o.Terminal {
		if size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err == nil {
			order.Rows, order.Columns = size.Row, size.Col
		}
	}
	return order
}
