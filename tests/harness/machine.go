// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// keeperName is argv[0] of the keeper, which is this program started once more.
const keeperName = "gojail-machine"

// The keeper's inherited descriptors: where it reports, and a pipe that is
// closed when the process that started the cluster is gone.
const (
	keeperReport   = 3
	keeperLifeline = 4
)

func init() {
	switch {
	case len(os.Args) == 5 && os.Args[0] == keeperName:
		runKeeper(os.Args[1], os.Args[2], os.Args[3] == "bound", os.Args[4] == "own")
	case len(os.Args) == 2 && os.Args[0] == hangName:
		hang(os.Args[1])
	}
	// No program of a cluster gets a descriptor that the caller of go test left open: gojail-launcher, for one, replies on 3. The bound is
	// the kernel's own highest descriptor; Linux 5.11 and later (close_range(2)).
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		panic(fmt.Sprintf("close_range(2): %v", err))
	}
}

// runKeeper is the program of a cluster's pid 1: it assembles the machine, reports, and reaps.
func runKeeper(root, base string, bound, cgroups bool) {
	report := os.NewFile(keeperReport, "report")
	if err := assemble(root, base, cgroups); err != nil {
		fmt.Fprintln(report, err)
		os.Exit(1)
	}
	fmt.Fprintln(report, "ready")
	report.Close()
	if bound {
		go func() {
			os.NewFile(keeperLifeline, "lifeline").Read(make([]byte, 1))
			os.Exit(0)
		}()
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	for range children {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

type mountCall struct {
	source, target, fstype string
	flags                  uintptr
	data                   string
}

const (
	bind            = unix.MS_BIND
	remountReadOnly = unix.MS_REMOUNT | bind | unix.MS_RDONLY
)

// listMachineMounts returns the mounts of a machine in order, those that it shares with its host and its own.
// Targets are relative to the new root.
func listMachineMounts(root, base string, own bool) []mountCall {
	mounts := []mountCall{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{root, root, "", bind, ""},
		{filepath.Join(base, "usr"), "usr", "", bind | unix.MS_REC, ""},
		{"", "usr", "", remountReadOnly, ""},
		{"/dev", "dev", "", bind, ""},
		{"devpts", "dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,gid=5,mode=620,ptmxmode=666"},
		{"tmpfs", "dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"proc", "proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"sysfs", "sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"tmpfs", "run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	}
	return slices.Concat(mounts, listPrefixMounts(base), listCgroupMounts(nameOf(root), own))
}

// nameOf returns the name of the machine whose root file system is root.
func nameOf(root string) string { return filepath.Base(filepath.Dir(root)) }

// assemble turns the keeper's fresh namespaces into the machine below root, with base's /usr.
func assemble(root, base string, own bool) error {
	if err := enterownCgroups(nameOf(root), own); err != nil {
		return err
	}
	for _, m := range listMachineMounts(root, base, own) {
		target := m.target
		if !filepath.IsAbs(target) {
			target = filepath.Join(root, target)
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(m.source, target, m.fstype, m.flags, m.data); err != nil {
			return fmt.Errorf("cluster: mount %q on %s (type %q): %w", m.source, target, m.fstype, err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cluster: pivot_root to %s: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cluster: leave the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("head")); err != nil {
		return fmt.Errorf("cluster: set the host name: %w", err)
	}
	return setUpNetwork()
}

// Address of the machine and of both nodes (RFC 5737, documentation). glibc
// resolves nothing on a machine whose only address is 127.0.0.1 (AI_ADDRCONFIG).
const Address = "192.0.2.1"

// setUpNetwork sets lo up, which is down in a new network namespace, and adds Address to it (netdevice(7)).
func setUpNetwork() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cluster: socket: %w", err)
	}
	defer unix.Close(s)
	flags, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	flags.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, flags); err != nil {
		return fmt.Errorf("cluster: set lo up: %w", err)
	}
	address, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := address.SetInet4Addr(net.ParseIP(Address).To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, address); err != nil {
		return fmt.Errorf("cluster: give lo the address %s: %w", Address, err)
	}
	return nil
}
