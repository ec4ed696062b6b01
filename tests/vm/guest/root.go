// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/vm"
)

const (
	newRoot = "/new"
	shared  = "trans=virtio,version=9p2000.L,msize=512000,"
	disk    = "/dev/vda"
)

type mountCall struct {
	source, target, fstype string
	flags                  uintptr
	data                   string
}

// mountAll creates the mount points and mounts, in order, below prefix.
func mountAll(prefix string, calls []mountCall) error {
	for _, m := range calls {
		target := filepath.Join(prefix, m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("make the mount point %s: %w", target, err)
		}
		if err := unix.Mount(m.source, target, m.fstype, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s (type %q, %s): %w", m.source, target, m.fstype, m.data, err)
		}
	}
	return nil
}

func mountEarly() error {
	return mountAll("/", []mountCall{
		{"proc", "proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"sysfs", "sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"devtmpfs", "dev", "devtmpfs", unix.MS_NOSUID, "mode=755"},
	})
}

// mountRoot mounts the guest's root: an overlay of the shared directory and a layer in memory.
func mountRoot() error {
	if err := mountAll("/", []mountCall{
		{vm.TagRoot, "/lower", "9p", unix.MS_RDONLY, shared + "cache=loose"},
		{"tmpfs", "/layer", "tmpfs", 0, "size=50%,mode=755"},
	}); err != nil {
		return err
	}
	for _, dir := range []string{"/layer/upper", "/layer/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return mountAll("/", []mountCall{{"overlay", newRoot, "overlay", 0, "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work"}})
}

// listSystemMounts returns the mounts of every Linux machine, and the share, which is never
// cached: the host sees each write at once.
func listSystemMounts() []mountCall {
	const safe = unix.MS_NOSUID | unix.MS_NODEV
	return []mountCall{
		{"/proc", "proc", "", unix.MS_MOVE, ""},
		{"/sys", "sys", "", unix.MS_MOVE, ""},
		{"/dev", "dev", "", unix.MS_MOVE, ""},
		{"devpts", "dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "gid=5,mode=620,ptmxmode=666"},
		{"tmpfs", "dev/shm", "tmpfs", safe, "mode=1777"},
		{"mqueue", "dev/mqueue", "mqueue", safe | unix.MS_NOEXEC, ""},
		{"tmpfs", "run", "tmpfs", safe, "mode=755"},
		{"tmpfs", "tmp", "tmpfs", safe, "mode=1777"},
		{"cgroup2", "sys/fs/cgroup", "cgroup2", safe | unix.MS_NOEXEC, "nsdelegate"}, // as systemd mounts it
		{"bpf", "sys/fs/bpf", "bpf", safe | unix.MS_NOEXEC, "mode=700"},
		{vm.TagShare, vm.Share, "9p", 0, shared + "cache=none"},
	}
}

// makeRoot assembles the root, enters it and reads the order.
func makeRoot() (vm.Order, error) {
	var order vm.Order
	if err := mountRoot(); err != nil {
		return order, err
	}
	if err := mountAll(newRoot, listSystemMounts()); err != nil {
		return order, err
	}
	if err := enterRoot(newRoot); err != nil {
		return order, err
	}
	order, err := vm.ReadOrder(filepath.Join(vm.Share, vm.OrderFile))
	if err != nil {
		return order, fmt.Errorf("read the order: %w", err)
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return order, err
	}
	release := unix.ByteSliceToString(kernel.Release[:])
	if err := os.WriteFile(filepath.Join(vm.Share, vm.StartedFile), []byte(release), 0o644); err != nil {
		return order, err
	}
	if err := mountRepository(order); err != nil {
		return order, err
	}
	return order, configure()
}

// enterRoot makes dir the root, as switch_root(8) does: pivot_root(2) fails on an initramfs.
func enterRoot(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the new root to /: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	return os.Chdir("/")
}

// mountRepository mounts the work tree and, for a release, the scratch disk as its
// build/, where package harness finds the release: its root is the guest's.
func mountRepository(order vm.Order) error {
	build := filepath.Join(order.Repository, "build")
	if err := mountAll("/", []mountCall{{vm.TagRepository, order.Repository, "9p", unix.MS_RDONLY, shared + "cache=loose"}}); err != nil {
		return err
	}
	if order.Storage {
		if err := mountAll("/", []mountCall{{vm.TagStorage, vm.Storage, "9p", unix.MS_RDONLY, shared + "cache=loose"}}); err != nil {
			return err
		}
	}
	if order.Release == "" {
		return nil
	}
	if err := waitForFile(10*time.Second, disk); err != nil {
		return fmt.Errorf("the scratch disk: %w", err)
	}
	release := filepath.Join(build, "releases", order.Release)
	const built = "/run/built" // outlives what the disk covers
	if err := mountAll("/", []mountCall{
		{order.Built, built, "", unix.MS_BIND, ""},
		{disk, build, "ext4", 0, "prjquota"},
		{built, release, "", unix.MS_BIND, ""},
	}); err != nil {
		return err
	}
	if err := unix.Unmount(built, 0); err != nil {
		return err
	}
	return os.Symlink("/", filepath.Join(build, "cache/slurm-"+order.Release))
}

// configure creates the files and settings that no package contains: links in /dev, host name, cgroup controllers.
func configure() error {
	for link, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(target, filepath.Join("/dev", link)); err != nil {
			return err
		}
	}
	if err := os.Chmod("/dev/fuse", 0o666); err != nil && !os.IsNotExist(err) { // as udev does
		return err
	}
	controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(controllers)) { // for cgroups below the root, as systemd does
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enable the cgroup controller %s: %w", controller, err)
		}
	}
	const name = "vm"
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	for file, text := range map[string]string{
		"/etc/hostname": name + "\n", "/etc/hosts": "127.0.0.1 localhost\n" + vm.Address + " " + name + "\n", "/etc/resolv.conf": "",
	} {
		os.Remove(file) // may be a symlink
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
