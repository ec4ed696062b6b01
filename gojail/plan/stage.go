// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// Stage returns the view of the stage: slurmstepd is in it while it opens --output and --input and
// changes to --chdir. Root code runs there (PAM, NSS, plugins), so it shows only data directories of the
// jail, with nosuid, nodev and noexec: no library is loaded from them, whatever path the node's
// ld.so.conf names.
func Stage(c *config.Config, j *config.Jail, facts *node.HostFacts) (*View, error) {
	v := &View{
		TmpfsRoot: true,
		Spec: &specs.Spec{
			Version: specs.Version,
			Root:    &specs.Root{Path: j.Root, Readonly: true},
			Linux:   &specs.Linux{},
		},
	}
	for _, top := range facts.HostTop {
		switch {
		case !slices.Contains(config.HostDirs, top.Name):
		case top.Link != "":
			v.Links = append(v.Links, Link{"/" + top.Name, top.Link})
		default:
			v.Spec.Mounts = append(v.Spec.Mounts, Bind("/"+top.Name, "rbind"))
		}
	}
	trusted, err := planTrustedMounts(c, j, facts, v.Spec.Mounts)
	if err != nil {
		return nil, err
	}
	v.Spec.Mounts = append(v.Spec.Mounts, trusted...)
	data, err := DataDirs(c, j, facts)
	if err != nil {
		return nil, err
	}
	for _, dir := range append([]string{"/dev/shm"}, data...) {
		v.Data = append(v.Data, mark(dir, contract.StageData))
	}
	for _, m := range planDataMounts(c, j, data) {
		m.Options = append(m.Options, "noexec")
		v.Data = append(v.Data, m)
	}
	for _, dir := range facts.Foreign {
		if !Inside(v.Spec.Mounts, dir) {
			v.Foreign = append(v.Foreign, mark(dir, contract.StageNode), Bind(dir, "rbind", "ro", "nosuid", "nodev"))
		}
	}
	v.Spec.Mounts = append(v.Spec.Mounts, mark("/tmp", contract.StageData))
	v.Links = append(v.Links, planDataLinks(facts, data)...)
	return v, nil
}

// mark plans an empty mount below a file system, which says whose that is: by what it lies on, the plugin decides which files can be
// stdin, stdout and stderr of a task.
func mark(dir, whose string) specs.Mount {
	m := Tmpfs(dir, "ro", "mode=1777", "size=4k", "nosuid", "nodev", "noexec")
	m.Source = whose
	return m
}

// TrustedPaths returns the host's paths that slurmstepd, which is root, still uses in the stage: the
// stage mounts them, and no user's file covers them.
func TrustedPaths(c *config.Config, state string, dirs, files []string) []string {
	list := []string{c.Slurm.Conf, c.Slurm.Spool, filepath.Dir(c.Slurm.Munge), state}
	list = slices.Concat(list, c.Slurm.Host, dirs)
	for _, file := range files {
		list = append(list, filepath.Dir(file))
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(path string) bool { return path == "" || path == "/" })
}

// listShownPaths returns the trusted paths that exist.
func listShownPaths(c *config.Config, facts *node.HostFacts) []string {
	return slices.DeleteFunc(TrustedPaths(c, facts.State, facts.SlurmDirs, facts.SlurmFiles), func(path string) bool {
		return !facts.Exists[path]
	})
}

// planTrustedMounts plans mounts of the trusted paths that no mounted directory of the host contains.
func planTrustedMounts(c *config.Config, j *config.Jail, facts *node.HostFacts, have []specs.Mount) ([]specs.Mount, error) {
	links := map[string]bool{}
	for _, top := range facts.HostTop {
		links[top.Name] = top.Link != "" && slices.Contains(config.HostDirs, top.Name)
	}
	var mounts []specs.Mount
	for _, path := range listShownPaths(c, facts) {
		if config.Under(path, "/tmp") {
			if path == facts.State || slices.Contains(facts.SlurmFiles, filepath.Join(path, contract.Plugin)) {
				return nil, fmt.Errorf("jail %s: gojail's directory %s must not lie below /tmp, which is private to each job; move it", j.Name, path)
			}
			return nil, fmt.Errorf("jail %s: slurmd needs %s, but /tmp is private to each job; move it elsewhere", j.Name, path)
		}
		if links[config.FirstName(path)] || Inside(have, path) || Inside(mounts, path) {
			continue
		}
		mounts = append(mounts, Bind(path, "rbind"))
	}
	return mounts, nil
}

// DataDirs returns the directories of the jail that the stage shows.
func DataDirs(c *config.Config, j *config.Jail, facts *node.HostFacts) ([]string, error) {
	needed := map[string]string{}
	varTmp := facts.VarTmp
	for _, path := range listShownPaths(c, facts) {
		needed[config.FirstName(path)] = path
		varTmp = varTmp && !config.Under(path, "/var/tmp")
	}
	var dirs []string
	for _, top := range facts.JailTop {
		if top.Link == "" && OwnData(j, top.Name) && (needed[top.Name] == "" || j.Data != nil) {
			dirs = append(dirs, "/"+top.Name)
		}
	}
	for _, dir := range j.Data {
		if path := needed[config.FirstName(dir)]; path != "" {
			return nil, fmt.Errorf("jail %s: %s cannot be a data directory: slurmd needs the node's own %s", j.Name, dir, path)
		}
	}
	if varTmp {
		dirs = append(dirs, "/var/tmp")
	}
	return dirs, nil
}

// OtherMounts returns the destinations of bind mounts of the site that lie in none of the data directories.
func OtherMounts(c *config.Config, j *config.Jail, dirs []string) []string {
	var others []string
	add := func(destination string) {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return config.Under(destination, dir) }) {
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

// OwnData reports whether a top-level directory of the jail is data. By default that is any directory
// except system directories, root's home and hidden ones: libraries that slurmstepd loads read ~/.NAME
// and /.NAME as root.
func OwnData(j *config.Jail, name string) bool {
	if j.Data != nil {
		return slices.Contains(j.Data, "/"+name)
	}
	return !slices.Contains(config.SystemDirs, name) && name != "tmp" && name != "root" && !strings.HasPrefix(name, ".")
}

// planDataMounts plans the data directories of the jail's root, read-only where tasks have the root read-only, and the jail's mounts below
// them, so that a path means the same file in both views. A tmpfs or a writable overlay cannot be mounted twice: output
// there needs a task.
func planDataMounts(c *config.Config, j *config.Jail, dirs []string) []specs.Mount {
	var mounts []specs.Mount
	for _, dir := range dirs {
		m := Bind(dir, "rbind", "nosuid", "nodev")
		if j.Readonly {
			m.Options = slices.Insert(m.Options, 1, "ro")
		}
		m.Source = filepath.Join(j.Root, dir)
		mounts = append(mounts, m)
	}
	data := slices.Clone(mounts)
	for _, m := range slices.Concat(planLocalMounts(c, j), ConfiguredMounts(j)) {
		if Inside(data, m.Destination) && (m.Type == "bind" || m.Type == "overlay" && !isWritableOverlay(m)) {
			m.Options = append(slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool {
				return o == "nosuid" || o == "nodev"
			}), "nosuid", "nodev") // last, so that no other option undoes them
			mounts = append(mounts, m)
		}
	}
	return mounts
}

func isWritableOverlay(m specs.Mount) bool {
	return slices.ContainsFunc(m.Options, func(o string) bool { return strings.HasPrefix(o, "upperdir=") })
}

// planDataLinks returns the jail's symlinks, such as /home -> /data/home, that lead into a data
// directory. Elsewhere they would lead to the node's files.
func planDataLinks(facts *node.HostFacts, dirs []string) []Link {
	var links []Link
	for _, top := range facts.JailTop {
		if top.Link == "" || slices.Contains(config.SystemDirs, top.Name) || top.Name == "tmp" {
			continue
		}
		to := filepath.Join("/", top.Link)
		if slices.ContainsFunc(dirs, func(dir string) bool { return config.Under(to, dir) }) {
			links = append(links, Link{"/" + top.Name, top.Link})
		}
	}
	return links
}
