// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// releaseVariable names the release of Slurm that clusters run, "24.11" for
// instance, which tests/releases/make has prepared. Unset: this machine's own.
const releaseVariable = "GOJAIL_RELEASE"

// Release returns the value of releaseVariable, or "".
func Release() string { return os.Getenv(releaseVariable) }

// releaseText matches the release in what Slurm's programs print as their version.
var releaseText = regexp.MustCompile(`\b\d\d\.\d\d\b`)

// Version returns the release of Slurm that clusters run, such as "24.11", of this machine's own Slurm, too; "" where there is none.
var Version = sync.OnceValue(func() string {
	text := Release()
	if text == "" {
		out, _ := exec.Command("/usr/sbin/slurmctld", "-V").Output()
		text = string(out)
	}
	return releaseText.FindString(text)
})

// TaskPrologNeedsStepd reports whether versions of this release start a TaskProlog through slurmstepd, for which a jail must have a C
// library: 24.11.0 to 24.11.6, 25.05.0 and 25.05.1.
func TaskPrologNeedsStepd() bool { return Version() == "24.11" || Version() == "25.05" }

// base is where a cluster's programs come from.
type base struct {
	root  string // whose /usr and /etc the machine has
	build string // the directory of lib/ and sbin/ with gojail
	jail  string // the tree that jails are copied from
	slurm installation
}

// findBase returns the parts of the release, or of this machine.
func findBase(repo string) (base, error) {
	release := Release()
	if release == "" {
		jail, err := findJail(repo, "jail")
		if err != nil {
			return base{}, fmt.Errorf("cluster: no jail in build/cache: run make rootfs first")
		}
		return base{root: "/", build: filepath.Join(repo, "build"), jail: jail}, nil
	}
	b := base{build: filepath.Join(repo, "build/releases", release)}
	var err error
	if b.root, err = filepath.EvalSymlinks(filepath.Join(repo, "build/cache/slurm-"+release)); err == nil {
		b.jail, err = findJail(repo, "jail-"+release)
	}
	if err != nil {
		return base{}, fmt.Errorf("cluster: no root of Slurm %s in build/cache: run tests/releases/make %s first", release, release)
	}
	b.slurm = readInstallation(b.root)
	return b, nil
}

// findJail returns the tree that jails are linked to: of build/cluster, where that is a file system of its own (tests/disk), or else of
// build/cache.
func findJail(repo, name string) (string, error) {
	tree := filepath.Join(repo, "build/cluster", name)
	if _, err := os.Stat(tree); err == nil {
		return tree, nil
	}
	return filepath.EvalSymlinks(filepath.Join(repo, "build/cache", name))
}

// lookUpOwner returns the uid and the gid of a user of the machine.
func (c *Cluster) lookUpOwner(name string) (uid, gid int, err error) {
	if id, ours := uids[name]; ours {
		return id, id, nil
	}
	text, err := os.ReadFile(filepath.Join(c.base.root, "etc/passwd"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[0] == name {
			uid, _ = strconv.Atoi(f[2])
			gid, _ = strconv.Atoi(f[3])
			return uid, gid, nil
		}
	}
	return 0, 0, fmt.Errorf("cluster: %w; the packages of make deps create it", user.UnknownUserError(name))
}
