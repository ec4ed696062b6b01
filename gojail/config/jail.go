// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

func (s *source) parseJails(f *file, c *Config) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.Jail)) {
		fj := f.Jail[name]
		if err := s.checkJailName(name); err != nil {
			errs = append(errs, err)
			continue
		}
		j, err := s.parseJail(name, &fj, c.Store)
		if err == nil {
			err = s.parseMounts(c, j)
		}
		errs = append(errs, err)
		c.Jails[name] = j
	}
	if err := tomlfile.Join(errs...); err != nil {
		return err
	}
	c.keepProjects()
	c.collectRangeRoots()
	return nil
}

// collectRangeRoots gives each jail the roots in which users may write files as root. An image there is not root's own,
// although root owns it.
func (c *Config) collectRangeRoots() {
	var roots []string
	for _, name := range c.JailNames() {
		if j := c.Jails[name]; slices.Contains(j.Isolation.JailRoot, "range") {
			roots = append(roots, j.Root)
		}
	}
	for _, j := range c.Jails {
		j.RangeRoots = roots
	}
}

func (s *source) checkJailName(name string) error {
	key := []string{"jail", name}
	switch {
	case !contract.IsName(name):
		return s.refuse(key, "invalid name: must be %s", contract.NameRule)
	case name == None:
		return s.refuse(key, `"none" stands for no jail and cannot be a jail's name`)
	case contract.IsOtherFile(name):
		return s.refuse(key, "the name is reserved for a file of the state directory; choose another one")
	}
	return nil
}

func (s *source) parseJail(name string, f *fileJail, store string) (*Jail, error) {
	key := func(last string) []string { return []string{"jail", name, last} }
	if f.Root == nil {
		return nil, s.refuse([]string{"jail", name}, "root is missing: the directory that becomes / of the jail")
	}
	j := &Jail{
		Name: name, Root: *f.Root, Readonly: f.Readonly, Options: f.Options,
		Users: f.Users, Groups: f.Groups, Slurm: f.Slurm == nil || *f.Slurm, Tmp: TmpDisk,
		Data: f.Data, Host: f.Host, Identity: f.Identity == nil || *f.Identity, Local: f.Local, Devices: f.Devices,
		CDI:    f.CDI,
		Mounts: f.Mounts, UserMounts: f.UserMounts,
	}
	var errs []error
	errs = append(errs, s.setRoot(j, store))
	if j.Options == nil {
		j.Options = []string{"nosuid", "nodev"}
	}
	if bad := findUnknownWord(j.Options, rootOptions); bad != "" {
		errs = append(errs, s.refuse(key("options"), "unknown mount option %q; known: %s", bad,
			strings.Join(rootOptions, " ")))
	}
	if j.Host == nil {
		j.Host = []string{"/etc/resolv.conf", "/etc/hosts"}
	}
	if f.Network != nil {
		if j.Network = *f.Network; !contract.IsName(j.Network) {
			errs = append(errs,
				s.refuse(key("network"), "%q is not a label of rails; write one from network.toml, or \"none\"",
					j.Network))
		}
	}
	errs = append(errs, s.parseSizes(j, f), s.parseIsolation(j, f), s.parseWritable(j, f))
	errs = append(errs, s.checkPaths(j.Host, key("host")...), s.checkPaths(j.Local, key("local")...),
		s.checkPaths(j.Data, key("data")...))
	for last, list := range map[string][]string{"users": j.Users, "groups": j.Groups} {
		if i := slices.IndexFunc(list, IsBadAccount); i >= 0 {
			errs = append(errs, s.refuse(key(last), "%q is not a name or a number", list[i]))
		}
	}
	errs = append(errs, s.checkDataDirs(j), s.checkDevices(j))
	return j, tomlfile.Join(errs...)
}

// IsBadAccount reports whether a word cannot be the name or number of a user or group.
func IsBadAccount(name string) bool {
	return name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == ':' ||
			r == ','
	})
}

func (s *source) parseSizes(j *Jail, f *fileJail) (err error) {
	key := func(last string) []string { return []string{"jail", j.Name, last} }
	if f.Tmp != nil {
		j.Tmp = *f.Tmp
	}
	if j.Tmp != TmpDisk && j.Tmp != TmpTmpfs {
		return s.refuse(key("tmp"), `%q: write "disk" or "tmpfs"`, j.Tmp)
	}
	if j.TmpSize, err = s.parseSize(f.TmpSize, key("tmp_size")...); err != nil {
		return err
	}
	j.ShmSize, err = s.parseSize(f.ShmSize, key("shm_size")...)
	return err
}

func (s *source) checkDataDirs(j *Jail) error {
	for _, dir := range j.Data {
		name := strings.TrimPrefix(dir, "/")
		key := []string{"jail", j.Name, "data"}
		if strings.Contains(name, "/") {
			return s.refuse(key, "%q: must be directly below / of the jail", dir)
		}
		if slices.Contains(SystemDirs, name) || name == "tmp" {
			return s.refuse(key, "%q: is a system directory, whose files stay on the node", dir)
		}
	}
	return nil
}

func (s *source) checkDevices(j *Jail) error {
	for _, name := range j.CDI {
		if err := cdi.CheckName(name); err != nil {
			return s.refuse([]string{"jail", j.Name, "cdi"}, "%v", err)
		}
	}
	for _, glob := range j.Devices {
		key := []string{"jail", j.Name, "devices"}
		if err := rootpath.CheckClean(glob); err != nil {
			return s.refuse(key, "%v", err)
		}
		if _, err := filepath.Match(glob, ""); err != nil || !strings.HasPrefix(glob, "/dev/") {
			return s.refuse(key, `%q: write a pattern below /dev, such as "/dev/nvidia*"`, glob)
		}
		for _, own := range []string{"/dev/shm", "/dev/pts", "/dev/mqueue", "/dev/ptmx"} {
			if Under(glob, own) {
				return s.refuse(key, "%q: every jail already has %s", glob, own)
			}
		}
	}
	return nil
}

// Under reports whether path is dir or lies below it. Both must be clean.
func Under(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

func findUnknownWord(words, known []string) string {
	for _, w := range words {
		if !slices.Contains(known, w) {
			return w
		}
	}
	return ""
}

// findDuplicate returns a path that occurs twice in the list.
func findDuplicate(paths []string) (string, bool) {
	sorted := slices.Sorted(slices.Values(paths))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return sorted[i], true
		}
	}
	return "", false
}

// reservedPaths returns the paths that the sandbox mounts itself: no mount may lie at or below them.
func (c *Config) reservedPaths(j *Jail) []string {
	list := []string{"/proc", "/sys", "/tmp", "/dev/shm", "/dev/pts", "/dev/mqueue", c.Slurm.SpoolBase}
	if j.Slurm {
		list = append(list, c.Slurm.Conf, c.Slurm.Munge)
	}
	return list
}

// checkDestination refuses a destination that the sandbox mounts itself.
func (c *Config) checkDestination(j *Jail, dst string) error {
	if dst == "/dev" || dst == "/run" {
		return fmt.Errorf("every jail has its own %s; choose a path below it", dst)
	}
	for _, own := range c.reservedPaths(j) {
		if Under(dst, own) {
			return fmt.Errorf("every jail has its own %s", own)
		}
	}
	return nil
}
