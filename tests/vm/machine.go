// SPDX-License-Identifier: Apache-2.0

// Package vm runs a command in a virtual machine that has what this machine may
// lack: two network cards with SR-IOV (QEMU's igb, each with up to seven VFs and
// a link of its own), soft RDMA, cgroup v2 and a kernel whose modules are known: that of
// Debian 12, 13 or testing, whatever release of Slurm runs on it.
//
// The guest has no disk image to maintain. Its root is a directory of this
// machine, that of a Slurm release (tests/releases/make) or this machine's own,
// shared read-only below a layer in memory that ends with the guest. The
// repository has the same path as here, read-only as well; its build/ is a file
// system on a scratch disk with the jail of the release, since private clusters
// (package cluster) live there. The kernel starts the program of
// tests/vm/guest as pid 1, from an initramfs made for each run.
//
// What tests/storage/fetch has fetched is there as well, the root of a file server.
//
// The guest has this machine's processor, or another one, emulated (GOJAIL_ARCH).
//
// QEMU, the kernel and the few tools needed are fetched by tests/vm/fetch and
// run in place: nothing is installed. Without usable KVM the guest is emulated,
// which takes about ten times as long; one or two tests of a package that fail are
// run once more in a fresh guest, and the summary names them.
//
// A guest ends with its command, with the context, after a time limit, or when
// its kernel panics; QEMU ends with the process that started it.
//
// Needs root (the root of a release has files that only root reads) and about
// 2 GiB of memory for each guest.
package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// DiskVariable is, on the kernel's command line of a Machine, the disk whose init its first process becomes.
const DiskVariable = "GOJAIL_DISK"

// Machines are a directory with what machines boot from that have disks of their own (tests/site), and end later
// than a command does.
type Machines struct {
	Dir     string // of this run; Close removes it
	places  places
	release func()
}

// Machine is one of them, with one processor.
type Machine struct {
	Name   string // host name
	Disk   string // path of the raw image with its root, which it writes to
	Memory int    // MiB
	Cards  int    // network cards with SR-IOV, at most 2
	Kernel string // further words of the kernel's command line
	// Further options of QEMU.
	Arguments []string
}

// machineModules are what a Machine needs before it has its root; udev loads the others from there.
var machineModules = []string{"virtio_blk", "crc32c_generic", "ext4", "virtio_rng", "9pnet_virtio", "9p", "virtio_net", "virtio_console"}

// NewMachines returns a new run, with what tests/vm/fetch has fetched.
func NewMachines(ctx context.Context) (*Machines, error) {
	p, err := findPlaces(ctx, "", "", "")
	if err != nil {
		return nil, err
	}
	dir, release, err := makeRunDirectory(p.repository)
	if err != nil {
		return nil, err
	}
	m := &Machines{Dir: dir, places: p, release: release}
	if err := makeInitramfs(ctx, p, machineModules, filepath.Join(dir, "initramfs")); err != nil {
		release()
		return nil, err
	}
	return m, nil
}

// Close removes the directory. Its machines have ended before.
func (m *Machines) Close() { m.release() }

// ShareDirectory returns QEMU's options for a directory of this machine that the other one mounts by its tag, to read.
func ShareDirectory(tag, path string) []string { return shareArguments(tag, path, ",readonly=on") }

// consolePath returns the file of what a machine's kernel and init print, those of earlier starts included.
func (m *Machines) consolePath(name string) string { return filepath.Join(m.Dir, name+".console") }

// Start starts a machine. The channel has the error of its QEMU at its end; cancelling ctx is a power cut.
func (m *Machines) Start(ctx context.Context, machine Machine) (<-chan error, error) {
	args := m.arguments(machine)
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel kills QEMU when the thread that started it ends (PR_SET_PDEATHSIG).
		runtime.LockOSThread()
		cmd := exec.CommandContext(ctx, filepath.Join(m.places.repository, "tests/vm/tool"),
			append([]string{m.places.fetched, m.places.processor.emulator}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Env = []string{"PATH=" + Path, "TMPDIR=" + m.Dir}
		var errs strings.Builder
		cmd.Stderr = &errs
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if err = cmd.Wait(); err != nil {
			err = fmt.Errorf("QEMU of %s: %w: %s", machine.Name, err, strings.TrimSpace(errs.String()))
		}
		ended <- err
		close(ended)
	}()
	return ended, <-started
}

func (m *Machines) arguments(machine Machine) []string {
	// A reboot is the machine's own; who waits for an agent sees one that nobody asked for. systemd's limits are for machines
	// that are not emulated.
	kernel := m.places.processor.formatCommandLine() +
		" mitigations=off systemd.default_timeout_start_sec=900 systemd.default_device_timeout_sec=900 systemd.service_watchdogs=0 systemd.hostname=" + machine.Name + " " + DiskVariable + "=/dev/vda " + machine.Kernel
	args := append(baseArguments(m.places, m.Dir), "-name", machine.Name, "-smp", "1", "-m", strconv.Itoa(machine.Memory), "-append", kernel,
		"-chardev", "file,id=console,append=on,path="+escapeCommas(m.consolePath(machine.Name)), "-serial", "chardev:console",
		// What QEMU has written outlives it: a power cut loses what the machine itself had in memory.
		"-drive", "if=virtio,format=raw,cache=unsafe,file="+escapeCommas(machine.Disk))
	for n := range machine.Cards {
		args = append(args, cardArguments(n)...)
	}
	return append(args, machine.Arguments...)
}

// LastConsoleLines returns the end of what a machine has printed.
func (m *Machines) LastConsoleLines(name string) string {
	text, _ := os.ReadFile(m.consolePath(name))
	return lastLines(strings.ReplaceAll(string(text), "\r", ""), 40)
}
