// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkPlaces reports directories in which users' jobs start or write their output, and which mean another
// directory in the jail than in the view in which Slurm opens files, or none.
func (c *checker) checkPlaces(j *config.Jail, facts *node.HostFacts, isMounted func(path string) bool) {
	subject := "jail " + j.Name
	tops := map[string]node.Top{}
	for _, top := range facts.JailTop {
		tops[top.Name] = top
	}
	used := map[string]bool{}
	for _, home := range c.findUserHomes() {
		used[config.FirstName(home)] = true
	}
	for _, dir := range j.Data {
		if _, ok := tops[dir[1:]]; !ok {
			c.warn(subject, "create the directory, or remove it from data =",
				"data: %s has no effect: %s has no such directory", dir, j.Root)
		}
		used[dir[1:]] = true
	}
	for name, top := range tops {
		if used[name] && top.Link != "" && !plan.IsData(c.config, j, facts, "/"+name) {
			c.warn(subject,
				"put a directory in its place, or let the link lead to one below /var, or to another data directory",
				"/%s of the jail leads to %s, which is no data directory: steps with their working directory or "+
					"output there fail", name, oneline.Printable(describeLead(top)))
		}
	}
	c.checkPhysical(j, facts, tops, used, isMounted)
	if facts.VarTmp.IsLink {
		c.warn(subject, "put a directory in its place",
			"/var/tmp of this node leads to another directory than the jail's: steps with output there fail")
	}
	if top := tops["tmp"]; config.Under(top.Real, "/dev/shm") {
		c.warn(subject, "put a directory in its place",
			"/tmp of the jail leads to /dev/shm: it is in memory, and tmp_size has no effect")
	}
}

// describeLead returns where a symlink leads.
func describeLead(top node.Top) string {
	if top.Real != "" {
		return top.Real
	}
	return top.Link
}

// checkPhysical reports working directories that sbatch and srun pass on by a path that the jail lacks: where
// /home of the submit host is a link to /export/home, getcwd(3) returns /export/home/alice.
func (c *checker) checkPhysical(j *config.Jail, facts *node.HostFacts, tops map[string]node.Top, used map[string]bool,
	isMounted func(path string) bool) {
	for _, p := range facts.Physical {
		top, ok := tops[p.Name]
		if p.InJail != "" || isMounted(p.Path) || !used[p.Name] && (!ok || top.Link != "" && top.Real == "") {
			continue
		}
		link := filepath.Join(j.Root, p.Path)
		c.warn("jail "+j.Name,
			fmt.Sprintf(`make the link in the jail, too: mkdir -p %[1]s && ln -s /%[2]s %[3]s; or mount it: `+
				`[[jail.%[4]s.mounts]] destination = %[5]q, source = %[5]q, options = ["rbind", "nosuid", "nodev"]; `+
				`then: gojail init %[4]s`,
				filepath.Dir(link), p.Name, link, j.Name, p.Path),
			"%s has no %s, where /%s of this node leads: a job submitted from a directory there has that path as its "+
				"working directory, and fails or runs in /tmp", j.Root, p.Path, p.Name)
	}
}

// ownDirs are the directories of which each job has its own, over the jail's.
var ownDirs = []string{"/tmp", "/run", "/dev/shm"}

// FindHidden returns files of a tree that no job sees, because each has its own file system there: the first one
// of each directory.
func FindHidden(root int, dirs ...string) (files []string) {
	for _, dir := range append(slices.Clone(ownDirs), dirs...) {
		if file := findFile(root, dir, 3); file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// entriesMax is the limit of entries of a directory that are looked at: a user's may have any number.
const entriesMax = 256

// findFile returns a regular file with content in a directory, or in a directory there, so many levels deep; "" if
// there is none. Empty files and directories are mount targets as a rule.
func findFile(root int, dir string, depth int) string {
	fd, err := rootpath.Open(root, dir, unix.O_RDONLY|unix.O_DIRECTORY, rootpath.InRoot) // /tmp may be a link
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	entries, _ := f.ReadDir(entriesMax)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		var st unix.Stat_t
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && depth > 1:
			if file := findFile(root, path, depth-1); file != "" {
				return file
			}
		case e.Type().IsRegular() && unix.Fstatat(int(f.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
			st.Size > 0:
			return path
		}
	}
	return ""
}

// checkHidden reports files of a jail that no job sees.
func (c *checker) checkHidden(j *config.Jail, root int) {
	files := FindHidden(root, j.Local...)
	if len(files) == 0 {
		return
	}
	c.warn("jail "+j.Name, "move what programs need to another directory, and remove the rest",
		"no job sees %s of %s: each job, or node, has its own directory there",
		oneline.Printable(strings.Join(files, " ")), j.Root)
}
