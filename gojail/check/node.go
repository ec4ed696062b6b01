// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// checkKernel reports whether the kernel has the system calls that gojail needs (Linux 5.12), by calling
// them. A tree that is never attached vanishes when its descriptor is closed.
func (c *checker) checkKernel() bool {
	var name unix.Utsname
	unix.Uname(&name)
	release := unix.ByteSliceToString(name.Release[:])
	remedy := "gojail requires Linux 5.12 or later and, in a container, CAP_SYS_ADMIN and a seccomp profile that " +
		"permits mount calls"
	lacks := func(call string, err error) bool {
		c.fail("kernel", remedy, "%s: %s: %v; no jail can be assembled, and none is checked", release, call,
			oneline.Errno(err))
		return false
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return lacks("open_tree", err)
	}
	defer unix.Close(fd)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return lacks("mount_setattr", err)
	}
	how, err := rootpath.OpenBeneath(unix.AT_FDCWD, "/", unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return lacks("openat2", err)
	}
	unix.Close(how)
	c.ok("kernel", "%s has open_tree, mount_setattr and openat2", release)
	return true
}

// checkParts checks the installed files in the library directory.
func (c *checker) checkParts() {
	found := map[string]bool{}
	for _, name := range []string{contract.Plugin, contract.Launcher, contract.Library} {
		err := checkPart(filepath.Join(c.node.LibDir, name))
		if err == nil || found[err.Error()] { // a fault of a directory is that of each file in it
			continue
		}
		found[err.Error()] = true
		remedy, fault := "", (*trusted.Fault)(nil)
		if !errors.As(err, &fault) || fault.Remedy == "" {
			remedy = c.describeInstallation()
		}
		c.fail("installation", remedy, "%v", err)
	}
	if len(found) == 0 {
		c.ok("installation", "%s holds the plugin, the launcher and the library", c.node.LibDir)
	}
}

// describeInstallation returns how to install gojail again in the way that this host was set up. Only packages have the
// file in /usr/share/gojail. The databases of dpkg and rpm are not read: their form is no interface.
func (c *checker) describeInstallation() string {
	prefix, isInstalled := strings.CutSuffix(c.node.LibDir, "/lib/gojail")
	isPackaged := prefix == "/usr" && rootpath.Exists(c.node.path("/usr/share/gojail/plugstack.conf"))
	switch {
	case isPackaged && rootpath.Exists(c.node.path("/etc/debian_version")):
		return "install the packages gojail and gojail-slurm again: dpkg -i gojail_*.deb gojail-slurm_*.deb"
	case isPackaged:
		return "install the packages gojail and gojail-slurm again: rpm -U --replacepkgs gojail-*.rpm"
	case isInstalled:
		return "run in gojail's sources: make install PREFIX=" + oneline.ShellWord(prefix)
	}
	return "install gojail again on this node (its package, or make install)"
}

// checkPart fails if others than root could replace a file, or if it is truncated.
func checkPart(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := trusted.Check(path, &st, unix.S_IFREG); err != nil {
		return err
	}
	if err := trusted.Parents(path); err != nil {
		return err
	}
	f, err := elf.Open(path) // reads the section table at the end of the file
	if err != nil {
		return fmt.Errorf("%s: is damaged or truncated: %v", path, err)
	}
	f.Close()
	if filepath.Ext(path) == "" && st.Mode&0o111 == 0 {
		return &trusted.Fault{Path: path, Found: "is not executable",
			Remedy: "run: chmod 755 " + oneline.ShellWord(path)}
	}
	return nil
}

// checkState checks the state directory. The first job creates a missing one.
func (c *checker) checkState() {
	dir := c.node.State
	if err := trusted.Parents(dir); err != nil {
		c.fail("state", "", "jobs' records lie there: %v", err)
		return
	}
	var st unix.Stat_t
	switch err := unix.Lstat(dir, &st); {
	case err == unix.ENOENT && rootpath.Exists(filepath.Dir(dir)):
		if err := checkWritable(filepath.Dir(dir)); err != nil && !isOutOfRoom(err) {
			c.fail("state", "mount it writable", "%s does not exist, and cannot be created: %v", dir, err)
			return
		}
		c.ok("state", "%s does not exist yet; the first job creates it", dir)
		return
	case err != nil:
		c.fail("state", "create its parent directory", "%s: %v", dir, err)
		return
	}
	if err := trusted.Check(dir, &st, unix.S_IFDIR); err != nil {
		c.fail("state", "", "jobs' records lie there: %v", err)
		return
	}
	full, free, err := findLack(dir, 4<<20, false)
	switch {
	case err != nil:
		c.fail("state", "mount it writable", "%v", err)
	case full != "":
		c.failIn(c.canJobsWriteTo(dir), "state", "free space there: steps fail without it", "%s is full (%s)", dir,
			full)
	default:
		c.ok("state", "%s belongs to root and is writable, %d MiB are free", dir, free>>20)
	}
}

// findNearest returns the first directory above path that exists.
func findNearest(path string) string {
	for path = filepath.Dir(path); !rootpath.Exists(path); path = filepath.Dir(path) {
	}
	return path
}

// checkWritable writes a file: mode bits do not show a full or read-only file system. The file has no
// name (open(2), O_TMPFILE) if the file system supports that.
func checkWritable(dir string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		if f, err = os.CreateTemp(dir, ".gojail-check-"); err == nil {
			defer os.Remove(f.Name())
		}
	}
	if err == nil {
		_, err = f.Write(make([]byte, 4096))
		f.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", dir, oneline.Cause(err))
	}
	return nil
}
