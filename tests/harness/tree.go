// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Users of every cluster and of its jails; tests/rootfs/make makes the same in a jail.
const (
	Alice = "alice"
	Bob   = "bob"
)

var uids = map[string]int{"root": 0, Alice: 5001, Bob: 5002}

// Prefix is where the machine of a cluster has gojail installed.
const Prefix = "/opt/gojail"

// LibraryDir is where Debian has the libraries of this processor.
var LibraryDir = "/usr/lib/" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"

// makeRoot creates the machine's own files and directories.
func (c *Cluster) makeRoot() error {
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return err
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64", "lib32"} {
		target, err := os.Readlink(filepath.Join(c.base.root, link))
		if err != nil {
			continue
		}
		if err := os.Symlink(target, filepath.Join(c.root, link)); err != nil {
			return err
		}
	}
	for _, step := range []func() error{c.makeEtc, c.makeDirectories, c.installGojail, c.makeJails} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// makeEtc copies the base's /etc without its secrets and adds the users.
func (c *Cluster) makeEtc() error {
	etc := filepath.Join(c.root, "etc")
	if out, err := exec.Command("cp", "-a", filepath.Join(c.base.root, "etc"), etc).CombinedOutput(); err != nil {
		return fmt.Errorf("cluster: copy /etc: %s", out)
	}
	for _, secret := range []string{"ssh", "ssl/private", "shadow", "shadow-", "gshadow", "gshadow-", "slurm", "gojail", "munge", "resolv.conf", "hosts"} {
		if err := os.RemoveAll(filepath.Join(etc, secret)); err != nil {
			return err
		}
	}
	var passwd, group, shadow strings.Builder
	for _, name := range []string{Alice, Bob} {
		id := uids[name]
		fmt.Fprintf(&passwd, "%s:x:%d:%d::/home/%s:/bin/bash\n", name, id, id, name)
		fmt.Fprintf(&group, "%s:x:%d:\n", name, id)
		fmt.Fprintf(&shadow, "%s:*:19000:0:99999:7:::\n", name)
	}
	for file, text := range map[string]string{"passwd": passwd.String(), "group": group.String()} {
		old, err := os.ReadFile(filepath.Join(etc, file))
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(etc, file), string(old)+text, 0o644); err != nil {
			return err
		}
	}
	key := make([]byte, 1024)
	rand.Read(key)
	for file, text := range map[string]string{
		"shadow":          "root:*:19000:0:99999:7:::\n" + shadow.String(),
		"hosts":           "127.0.0.1 localhost\n" + Address + " head n1 n2\n",
		"resolv.conf":     "# resolv.conf of the private cluster " + c.Name + "\n",
		"munge/munge.key": string(key),
	} {
		if err := replaceFile(filepath.Join(etc, file), text, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(etc, "munge/munge.key"), 0o400); err != nil {
		return err
	}
	return c.writeSlurmConf()
}

// makeDirectories creates what packages and an administrator would have created.
func (c *Cluster) makeDirectories() error {
	for _, d := range []struct {
		path, owner string
		mode        os.FileMode
	}{
		{"tmp", "root", 0o1777 | os.ModeSticky},
		{"var/tmp", "root", 0o1777 | os.ModeSticky},
		{"root", "root", 0o700},
		{"srv/jails", "root", 0o755},
		{"etc/munge", "munge", 0o700},
		{"etc/munge/munge.key", "munge", 0o400},
		{"var/lib/munge", "munge", 0o700},
		{"var/log/munge", "munge", 0o700},
		{"var/lib/slurm", "slurm", 0o755},
		{"var/log/slurm", "slurm", 0o755},
		{"var/spool/slurmd", "root", 0o755},
		{"var/lib/gojail", "root", 0o755},
		{"home/alice", Alice, 0o755},
		{"home/bob", Bob, 0o755},
		{"data/shared", "root", 0o755},
		{"data/alice", Alice, 0o700},
	} {
		path := filepath.Join(c.root, d.path)
		if d.mode&0o111 != 0 {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
		}
		uid, gid, err := c.lookUpOwner(d.owner)
		if err != nil {
			return err
		}
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
		if err := os.Chmod(path, d.mode); err != nil {
			return err
		}
	}
	for path, text := range c.options.Files {
		if err := replaceFile(filepath.Join(c.root, path), text, 0o755); err != nil {
			return err
		}
	}
	return os.Symlink("../run", filepath.Join(c.root, "var/run"))
}

// installGojail copies the built files, so that a test may damage its own copy.
func (c *Cluster) installGojail() error {
	if !c.options.Plugin {
		return nil
	}
	for source, target := range map[string]string{"lib/gojail": "lib", "sbin": ""} {
		from, to := filepath.Join(c.base.build, source), filepath.Join(c.root, Prefix, target)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			return fmt.Errorf("cluster: install gojail: %s (run make all first)", strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// makeJails copies the cached root file system by hard links: fast, and each cluster adds and removes files
// of its own. Never write into an existing file of a jail in place; replaceFile makes a new one.
func (c *Cluster) makeJails() error {
	for _, jail := range c.options.Jails {
		root := filepath.Join(c.root, "srv/jails", jail)
		if out, err := exec.Command("cp", "-al", c.base.jail, root).CombinedOutput(); err != nil {
			return fmt.Errorf("cluster: copy the jail %s: %s", jail, out)
		}
		if err := replaceFile(filepath.Join(root, "etc/gojail-jail"), jail+"\n", 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a new file under the name, never into the old one.
func replaceFile(path, text string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
