// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// dataDir is a directory of the jail that the stage shows, by its path in the stage and in the jail. The two paths
// differ if one of them leads through a symlink: /home and /var/home.
type dataDir struct{ Stage, Jail string }

// DataDirs returns the directories of the jail that the stage shows, by their paths in the jail.
func DataDirs(c *config.Config, j *config.Jail, facts *node.HostFacts) ([]string, error) {
	list, err := listDataDirs(c, j, facts)
	var dirs []string
	for _, dir := range list {
		if !slices.Contains(dirs, dir.Jail) {
			dirs = append(dirs, dir.Jail)
		}
	}
	return dirs, err
}

// listDataDirs returns the directories of the jail that the stage shows, by both paths. A path in the stage means the
// file that it means in the jail, or leads nowhere.
func listDataDirs(c *config.Config, j *config.Jail, facts *node.HostFacts) ([]dataDir, error) {
	needed := findNeeded(c, facts)
	for _, dir := range j.Data {
		if paths := needed[config.FirstName(dir)]; paths != nil {
			return nil, config.JailErrorf(j.Name, "%s cannot be a data directory: slurmd needs the node's own %s", dir,
				paths[0])
		}
	}
	var dirs []dataDir
	mayShow := func(name string) bool { return OwnData(j, name) && (needed[name] == nil || j.Data != nil) }
	for _, top := range facts.JailTop {
		if top.Link == "" && mayShow(top.Name) {
			dirs = append(dirs, dataDir{"/" + top.Name, "/" + top.Name})
		}
	}
	if facts.VarTmp.IsDir && isFree("/var/tmp", needed) && mayHoldData(facts, facts.VarTmp.InJail) {
		dirs = append(dirs, dataDir{"/var/tmp", facts.VarTmp.InJail})
	}
	for _, top := range facts.JailTop {
		if mayShow(top.Name) && mayHoldData(facts, top.Real) && findInStage(dirs, top.Real) == "" {
			dirs = append(dirs, dataDir{"/" + top.Name, top.Real})
		}
	}
	for _, p := range facts.Physical {
		isData := config.IsDataPath(p.Path) && isFree(p.Path, needed)
		if p.IsDir && mayShow(p.Name) && isData && findInStage(dirs, p.InJail) != "" {
			dirs = append(dirs, dataDir{p.Path, p.InJail})
		}
	}
	return dirs, nil
}

// IsData reports whether the stage shows a directory of the jail.
func IsData(c *config.Config, j *config.Jail, facts *node.HostFacts, path string) bool {
	dirs, err := listDataDirs(c, j, facts)
	// An error is reported when the stage is planned.
	return err != nil || findInStage(dirs, resolveTop(facts, path)) != ""
}

// findNeeded returns the trusted paths that exist, by their top-level directory.
func findNeeded(c *config.Config, facts *node.HostFacts) map[string][]string {
	needed := map[string][]string{}
	for _, path := range listShownPaths(c, facts) {
		name := config.FirstName(path)
		needed[name] = append(needed[name], path)
	}
	return needed
}

// isFree reports whether a directory of the node contains no trusted path.
func isFree(dir string, needed map[string][]string) bool {
	return !slices.ContainsFunc(needed[config.FirstName(dir)],
		func(path string) bool { return config.Under(path, dir) })
}

// findInStage returns the path in the stage of a directory of the jail, or "" if no data directory contains it.
func findInStage(dirs []dataDir, path string) string {
	for _, dir := range dirs {
		if config.Under(path, dir.Jail) {
			return dir.Stage + strings.TrimPrefix(path, dir.Jail)
		}
	}
	return ""
}

// resolveTop returns a path of the jail with its first component resolved, if that is a symlink.
func resolveTop(facts *node.HostFacts, path string) string {
	for _, top := range facts.JailTop {
		if top.Real != "" && config.FirstName(path) == top.Name {
			return top.Real + strings.TrimPrefix(path, "/"+top.Name)
		}
	}
	return path
}

// isJobsPath reports whether a file system of each job, its /tmp or /dev/shm, hides a directory of the jail.
func isJobsPath(facts *node.HostFacts, path string) bool {
	return config.Under(path, resolveTop(facts, "/tmp")) || config.Under(path, "/dev/shm")
}

// mayHoldData reports whether a directory of the jail's root may be data: no file system of each job hides it.
func mayHoldData(facts *node.HostFacts, path string) bool {
	return path != "" && !isJobsPath(facts, path) && config.IsDataPath(path)
}

// planVarTmp plans what the stage shows at /var/tmp of the node if that of the jail belongs to each job: an empty
// mount, which is read-only until the job's stage has the job's directory on it (spank/launcher/job_stage.c). A
// directory cannot be mounted on a symlink: one of the node that leads elsewhere than the jail's is covered by a file,
// through which no path leads.
func planVarTmp(facts *node.HostFacts) []specs.Mount {
	switch {
	case facts.VarTmp.IsDir && facts.VarTmp.InJail != "" && isJobsPath(facts, facts.VarTmp.InJail):
		return []specs.Mount{mark("/var/tmp", contract.StageData)}
	case facts.VarTmp.IsLink:
		m := Bind("/var/tmp", "bind", "ro", "nosuid", "nodev", "noexec")
		m.Source = "/dev/null"
		return []specs.Mount{m}
	}
	return nil
}

// OtherMounts returns the destinations of bind mounts of the site that lie in none of the data directories.
func OtherMounts(c *config.Config, j *config.Jail, facts *node.HostFacts, dirs []string) []string {
	var others []string
	add := func(destination string) {
		real := resolveTop(facts, destination)
		if !slices.ContainsFunc(dirs, func(dir string) bool { return config.Under(real, dir) }) {
			others = append(others, destination)
		}
	}
	for _, m := range j.Mounts {
		if m.Type == "bind" {
			add(m.Destination)
		}
	}
	if j.Slurm {
		for _, path := range c.Slurm.Host {
			add(path)
		}
	}
	return others
}

// OwnData reports whether a top-level directory of the jail is data. By default, all directories are, except system
// directories, root's home and hidden ones: libraries that slurmstepd loads read ~/.NAME and /.NAME as root.
func OwnData(j *config.Jail, name string) bool {
	if j.Data != nil {
		return slices.Contains(j.Data, "/"+name)
	}
	return !slices.Contains(config.SystemDirs, name) && name != "tmp" && name != "root" && !strings.HasPrefix(name, ".")
}

// planDataMounts plans the mounts of the data directories of the jail's root, read-only if tasks have the root
// read-only, and of the jail's mounts below them, so that a path means the same file in both views. A tmpfs or a
// writable overlay cannot be mounted twice: only a task can write output there.
func planDataMounts(c *config.Config, j *config.Jail, facts *node.HostFacts, dirs []dataDir) []specs.Mount {
	var mounts []specs.Mount
	for _, dir := range dirs {
		m := Bind(dir.Stage, "rbind", "nosuid", "nodev")
		if j.Readonly {
			m.Options = slices.Insert(m.Options, 1, "ro")
		}
		m.Source = filepath.Join(j.Root, dir.Jail)
		mounts = append(mounts, m)
	}
	for _, m := range slices.Concat(planLocalMounts(c, j), ConfiguredMounts(j)) {
		if m.Type != "bind" && (m.Type != "overlay" || isWritableOverlay(m)) {
			continue
		}
		m.Options = append(slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool {
			return o == "nosuid" || o == "nodev"
		}), "nosuid", "nodev") // last, so that no other option undoes them
		real := resolveTop(facts, m.Destination)
		for _, dir := range dirs {
			if m.Destination = findInStage([]dataDir{dir}, real); m.Destination != "" {
				mounts = append(mounts, m)
			}
		}
	}
	return mounts
}

func isWritableOverlay(m specs.Mount) bool {
	return slices.ContainsFunc(m.Options, func(o string) bool { return strings.HasPrefix(o, "upperdir=") })
}

// markMax limits the links in one mark, because the source of a mount has at most 255 bytes (fsconfig(2)), and linksMax
// all of them (LINKS_MAX in spank/plugin/stdio.c).
const (
	markMax  = 240 - len(contract.StageData)
	linksMax = 7000
)

// planDataLinks returns the jail's symlinks, such as /home -> /data/home, that lead into a data directory or into a
// file system of the job. The node has other files at such a path, or none. Links that a mark cannot name are left out:
// Slurm then finds no file there.
func planDataLinks(c *config.Config, facts *node.HostFacts, dirs []dataDir) []Link {
	var links []Link
	room := linksMax
	add := func(path, to string) {
		if size := len(path) + len(to) + len(":="); size <= min(room, markMax) && !strings.ContainsAny(path+to,
			" \t\n\\#:=,") {
			links = append(links, Link{path, to})
			room -= size
		}
	}
	needed := findNeeded(c, facts)
	for _, top := range facts.JailTop {
		path := "/" + top.Name
		if top.Real == "" || needed[top.Name] != nil || top.Name == "tmp" ||
			slices.Contains(config.SystemDirs, top.Name) ||
			slices.ContainsFunc(dirs, func(dir dataDir) bool { return dir.Stage == path }) {
			continue
		}
		if to := findInStage(dirs, top.Real); to != "" {
			add(path, to)
		} else if isJobsPath(facts, top.Real) {
			tmp := dataDir{"/tmp", resolveTop(facts, "/tmp")}
			add(path, findInStage([]dataDir{tmp, {"/dev/shm", "/dev/shm"}}, top.Real))
		}
	}
	return links
}
