// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is the user that root of another machine is on storage that squashes root.
const nobody = 65534

// NeedFUSE skips the test if FUSE file systems cannot be mounted.
func NeedFUSE(t *testing.T) {
	t.Helper()
	NeedRoot(t)
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs bindfs: make deps")
	}
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs FUSE in the kernel: ", err)
	}
	fuse.Close()
}

// MountSilent mounts a file system on dir that answers nothing, as a dead NFS server: its fake server is a
// FUSE connection that nobody reads. Stop wakes the processes that wait for it.
func MountSilent(dir string) (stop func(), err error) {
	fuse, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	if err := unix.Mount("silent", dir, "fuse.silent", unix.MS_NOSUID|unix.MS_NODEV,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse)); err != nil {
		unix.Close(fuse)
		return nil, fmt.Errorf("mount: %w", err)
	}
	return func() {
		unix.Close(fuse)
		unix.Unmount(dir, unix.MNT_DETACH)
	}, nil
}

// MountFUSE shows source on dir through bindfs(1).
func MountFUSE(source, dir string, options ...string) (stop func(), err error) {
	return startBindfs(exec.Command("bindfs", append(options, "-f", source, dir)...), dir)
}

// MountFUSELogged is MountFUSE, with a line for each request of the kernel in the file log.
func MountFUSELogged(source, dir, log string, options ...string) (stop func(), err error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.Command("bindfs", append(options, "-d", source, dir)...)
	cmd.Stdout, cmd.Stderr = file, file
	return startBindfs(cmd, dir)
}

// MountSquashed shows source on dir as storage that squashes root: its server, bindfs(1), runs as nobody.
// The caller has a mount namespace of its own, in which nobody may mount.
func MountSquashed(source, dir string) (stop func(), err error) {
	temporary, err := os.MkdirTemp("", "gojail-squash-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	conf, device := filepath.Join(temporary, "fuse.conf"), filepath.Join(temporary, "fuse")
	if err := os.WriteFile(conf, []byte("user_allow_other\n"), 0o644); err != nil {
		return nil, err
	}
	// Documentation/admin-guide/devices.txt
	if err := unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229))); err != nil {
		return nil, err
	}
	if err := os.Chmod(device, 0o666); err != nil {
		return nil, err
	}
	for from, to := range map[string]string{conf: "/etc/fuse.conf", device: "/dev/fuse"} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return nil, fmt.Errorf("mount on %s: %w", to, err)
		}
		defer unix.Unmount(to, unix.MNT_DETACH)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		return nil, err
	}
	// NFS, too, remembers attributes
	cmd := exec.Command("bindfs", "-f", "-o", "allow_other,attr_timeout=3600", source, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return startBindfs(cmd, dir)
}

// startBindfs starts a server and waits until its file system is mounted.
func startBindfs(cmd *exec.Cmd, dir string) (stop func(), err error) {
	var output strings.Builder
	if cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = &output, &output
	}
	var before, now unix.Stat_t
	if err := unix.Stat(dir, &before); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() {
		unix.Unmount(dir, unix.MNT_DETACH)
		cmd.Process.Kill()
		<-ended
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("bindfs ended: %w: %s", err, output.String())
		case <-time.After(10 * time.Millisecond): // between two looks
		}
		if unix.Stat(dir, &now) == nil && now.Dev != before.Dev {
			return stop, nil
		}
	}
	stop()
	return nil, fmt.Errorf("bindfs did not mount %s: %s", dir, output.String())
}
