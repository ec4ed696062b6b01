// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// Stage returns the view of the stage, in which slurmstepd is while it opens --output and --input and changes to
// --chdir. Root code runs there (PAM, NSS, plugins). So the stage shows only data directories of the jail, with nosuid,
// nodev and noexec: no library is loaded from them, whatever path the node's ld.so.conf names.
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
	data, err := listDataDirs(c, j, facts)
	if err != nil {
		return nil, err
	}
	links := planDataLinks(c, facts, data)
	v.Data = append(v.Data, markData("/dev/shm", links)...)
	for _, dir := range data {
		v.Data = append(v.Data, markData(dir.Stage, links)...)
	}
	v.Data = append(v.Data, planVarTmp(facts)...)
	for _, m := range planDataMounts(c, j, facts, data) {
		m.Options = append(m.Options, "noexec")
		v.Data = append(v.Data, m)
	}
	for _, dir := range facts.Foreign {
		if !Inside(v.Spec.Mounts, dir) {
			v.Foreign = append(v.Foreign, mark(dir, contract.StageNode), Bind(dir, "rbind", "ro", "nosuid", "nodev"))
		}
	}
	v.Spec.Mounts = append(v.Spec.Mounts, markData("/tmp", links)...)
	v.Links = append(v.Links, links...)
	return v, nil
}

// mark plans an empty mount below a file system, whose source says to whom the file system belongs. From the mount on
// which a file lies, the plugin decides whether it can be stdin, stdout or stderr of a task.
func mark(dir, whose string) specs.Mount {
	m := Tmpfs(dir, "ro", "mode=1777", "size=4k", "nosuid", "nodev", "noexec")
	m.Source = whose
	return m
}

// markData plans the marks of a directory with data of the jail or the job. Their sources name the links that lead
// there. A file that Slurm opened through a link has a path without it, so the plugin checks where the jail's link
// leads by then. If the links do not fit into one mark, another lies on it, and its source ends with a colon.
func markData(dir string, links []Link) []specs.Mount {
	marks := []specs.Mount{mark(dir, contract.StageData)}
	room := markMax
	for _, l := range links {
		if !config.Under(l.Target, dir) && !config.Under(dir, l.Target) {
			continue
		}
		text := ":" + l.Path + "=" + l.Target
		if len(text) > room {
			marks, room = append(marks, mark(dir, contract.StageData)), markMax
		}
		marks[len(marks)-1].Source += text
		room -= len(text)
	}
	for i := range marks[1:] {
		marks[i+1].Source += ":"
	}
	return marks
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
func planTrustedMounts(c *config.Config, j *config.Jail, facts *node.HostFacts, have []specs.Mount) ([]specs.Mount,
	error) {
	links := map[string]bool{}
	for _, top := range facts.HostTop {
		links[top.Name] = top.Link != "" && slices.Contains(config.HostDirs, top.Name)
	}
	var mounts []specs.Mount
	for _, path := range listShownPaths(c, facts) {
		if config.Under(path, "/tmp") {
			if path == facts.State || slices.Contains(facts.SlurmFiles, filepath.Join(path, contract.Plugin)) {
				return nil, config.JailErrorf(j.Name,
					"gojail's directory %s must not lie below /tmp, which is private to each job; move it", path)
			}
			return nil, config.JailErrorf(j.Name, "slurmd needs %s, but /tmp is private to each job; move it elsewhere",
				path)
		}
		if links[config.FirstName(path)] || Inside(have, path) || Inside(mounts, path) {
			continue
		}
		mounts = append(mounts, Bind(path, "rbind"))
	}
	return mounts, nil
}
