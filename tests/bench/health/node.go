// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
	"github.com/gojail/gojail/tests/harness"
)

const gpus = 8

// slowest is the time of the slow one of twenty checks.
const slowest = 300 * time.Millisecond

// node is this machine with GPUs and a scratch file system.
type node struct {
	dir     string
	repo    string
	library string // libnvidia-ml.so.1
	smi     string // nvidia-smi
	slowSMI string // one that takes the time slowest
	scratch string // a mount point
	mounts  []string
}

// makeNode makes the mounts in a namespace of this thread's own.
func makeNode(dir string) (*node, error) {
	repo, err := harness.Repository()
	if err != nil {
		return nil, err
	}
	n := &node{dir: dir, repo: repo, library: filepath.Join(dir, "libnvidia-ml.so.1"),
		smi: filepath.Join(dir, "nvidia-smi"), slowSMI: filepath.Join(dir, "nvidia-smi.slow"), scratch: filepath.Join(dir, "scratch")}
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("cannot make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("cannot keep mounts in their namespace: %w", err)
	}
	for _, path := range []string{n.scratch, n.runDirectory()} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{n.scratch, n.runDirectory(), "/sys/bus/pci", "/proc/driver"} {
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "mode=755"); err != nil {
			n.unmountAll()
			return nil, fmt.Errorf("cannot mount a tmpfs on %s: %w", path, err)
		}
		n.mounts = append(n.mounts, path)
	}
	if err := n.makeGPUs(); err != nil {
		n.unmountAll()
		return nil, err
	}
	return n, nil
}

// runDirectory returns the path of a tmpfs in the place of /run.
func (n *node) runDirectory() string { return filepath.Join(n.dir, "run") }

// unmountAll unmounts the file systems, so that their mount points can be removed.
func (n *node) unmountAll() {
	for _, path := range n.mounts {
		_ = unix.Unmount(path, unix.MNT_DETACH)
	}
}

// makeGPUs makes what the driver of eight GPUs shows, its library and nvidia-smi.
func (n *node) makeGPUs() error {
	files := map[string]string{
		"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan 22 00:00:00 UTC 2025\n",
		n.library + ".answers":        fakenvml.Healthy,
	}
	rows := ""
	for i := range gpus {
		device := fmt.Sprintf("/sys/bus/pci/devices/0000:%02x:00.0/", 0x10+i)
		files[device+"vendor"], files[device+"class"] = "0x10de\n", "0x030200\n"
		rows += fmt.Sprintf(`%d, 00000000:%02X:00.0\n`, i, 0x10+i)
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, pause := range map[string]time.Duration{n.smi: 0, n.slowSMI: slowest} {
		err := n.compileFile(path, "tests/bench/health/smi/nvidia-smi.c", "-static", "-nostartfiles",
			fmt.Sprintf(`-DROWS="%s"`, rows), fmt.Sprintf("-DPAUSE_NS=%d", pause))
		if err != nil {
			return err
		}
	}
	return n.compileFile(n.library, "healthcheck/nvml/fakenvml/c/fakenvml.c", "-shared", "-fPIC", "-fvisibility=hidden")
}

// compileFile compiles a file of this repository.
func (n *node) compileFile(path, source string, flags ...string) error {
	cmd := exec.Command("cc", append(flags, "-O1", "-o", path, filepath.Join(n.repo, source))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cc %s: %w: %s", source, err, out)
	}
	return nil
}

// buildCommand builds a command of this repository.
func (n *node) buildCommand(pkg string) (string, error) {
	path := filepath.Join(n.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, pkg)
	cmd.Dir = n.repo
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", pkg, err, out)
	}
	return path, nil
}
