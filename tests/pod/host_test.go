// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// host is where podman runs: namespaces of their own, whose process 1 is tests/pod/host.
type host struct {
	dir     string // on disk
	cgroup  string // of all of it, on this machine
	lock    *os.File
	process *exec.Cmd
	life    io.Closer // ends the host
}

// findUnified returns where this machine has cgroup v2.
func findUnified() (string, error) {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir, nil
		}
	}
	return "", errors.New("needs cgroup v2 below /sys/fs/cgroup")
}

// isHybrid reports whether this machine has cgroups of v1 as well.
func isHybrid() bool {
	text, err := os.ReadFile("/proc/self/cgroup")
	return err != nil || strings.Count(string(text), "\n") != 1
}

// startHost makes the host, after it has removed those of tests that were killed.
func startHost(repo string) (*host, error) {
	unified, err := findUnified()
	if err != nil {
		return nil, err
	}
	all := filepath.Join(repo, "build/pod")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return nil, err
	}
	if err := removeStale(all, unified); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(all, "host-")
	if err != nil {
		return nil, err
	}
	h := &host{dir: dir, cgroup: filepath.Join(unified, "gojail-pod-"+filepath.Base(dir))}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(h.cgroup, 0o755)); err != nil {
		return h, err
	}
	if h.lock, err = lockHost(dir); err != nil {
		return h, err
	}
	h.process = exec.Command("unshare", "--cgroup", "./host", dir)
	h.process.Stderr = os.Stderr
	h.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
	if h.life, err = h.process.StdinPipe(); err != nil {
		return h, err
	}
	out, err := h.process.StdoutPipe()
	if err == nil {
		err = startIn(h.cgroup, h.process)
	}
	if err != nil {
		return h, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return h, fmt.Errorf("the host of the containers did not start: %q, %w", line, err)
	}
	return h, nil
}

// startIn starts a process in a cgroup.
func startIn(cgroup string, cmd *exec.Cmd) error {
	dir, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// lockHost takes the lock that tells that the host's test runs, or fails if another process has it.
func lockHost(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeStale removes the hosts of tests that were killed; their processes have ended with them.
func removeStale(all, unified string) error {
	old, _ := filepath.Glob(filepath.Join(all, "host-*"))
	for _, dir := range old {
		lock, err := lockHost(dir)
		if err != nil {
			continue // its test runs
		}
		lock.Close()
		if err := removeTrees(filepath.Join(unified, "gojail-pod-"+filepath.Base(dir)), dir); err != nil {
			return err
		}
	}
	return nil
}

// removeTrees removes a tree of cgroups without processes, and a directory.
func removeTrees(cgroup, dir string) error {
	var dirs []string
	filepath.WalkDir(cgroup, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, path := range slices.Backward(dirs) {
		var err error
		if !harness.Poll(harness.Timeout, func() bool { err = unix.Rmdir(path); return err == nil || err == unix.ENOENT }) {
			return fmt.Errorf("remove the cgroup %s: %w", path, err)
		}
	}
	return os.RemoveAll(dir)
}

// stop ends every process of the host, and removes what it had.
func (h *host) stop() error {
	if h.process != nil && h.process.Process != nil {
		h.process.Process.Kill()
		h.life.Close()
		h.process.Wait()
	}
	err := removeTrees(h.cgroup, h.dir)
	if h.lock != nil {
		h.lock.Close()
	}
	return err
}

// run runs a command on the host, with a standard input.
func (h *host) run(stdin string, args ...string) harness.Result {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout*harness.Slow)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", fmt.Sprint(h.process.Process.Pid), "-m", "-n", "-p", "-C", "-i", "-u", "--"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(h.dir, "containers.conf"))
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	begin, code := time.Now(), -1
	err := startIn(filepath.Join(h.cgroup, "host"), cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	} else if err != nil {
		stderr.WriteString(err.Error())
	}
	return harness.Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: code, Duration: time.Since(begin)}
}

// must runs a command on the host that must succeed.
func (h *host) must(args ...string) error {
	if r := h.run("", args...); r.Code != 0 {
		return fmt.Errorf("%s: %s", strings.Join(args, " "), r)
	}
	return nil
}
