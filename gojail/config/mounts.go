// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// flagOptions are the mount(8) options that apply to any mount.
var flagOptions = []string{
	"ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec",
	"noatime", "relatime", "strictatime", "nodiratime", "diratime", "nosymfollow", "symfollow",
}

// rootOptions are the options that apply to the root; read-only has its own key.
var rootOptions = []string{"nosuid", "suid", "nodev", "dev", "noexec", "exec", "noatime", "relatime", "strictatime",
	"nodiratime", "nosymfollow"}

// typeOptions are the additional options of each type; those that end in = take a value.
var typeOptions = map[string][]string{
	"bind":  {"bind", "rbind"},
	"tmpfs": {"size=", "nr_inodes=", "mode=", "uid=", "gid=", "huge="},
	"overlay": {"lowerdir=", "upperdir=", "workdir=", "userxattr", "volatile", "index=", "metacopy=", "redirect_dir=",
		"xino="},
}

// parseMounts checks everything with a destination in the jail: mounts, local directories, host files,
// and the rules for user mounts.
func (s *source) parseMounts(c *Config, j *Jail) error {
	var errs []error
	all := slices.Concat(j.Local, j.Host)
	for i := range j.Mounts {
		m := &j.Mounts[i]
		if err := c.checkMount(j, m); err != nil {
			errs = append(errs, s.tableError(err, i, "jail", j.Name, "mounts"))
		}
		all = append(all, m.Destination)
	}
	for last, list := range map[string][]string{"local": j.Local, "host": j.Host} {
		for _, dst := range list {
			if err := c.checkDestination(j, dst); err != nil {
				errs = append(errs, s.refuse([]string{"jail", j.Name, last}, "%q: %v", dst, err))
			}
		}
	}
	if dst, twice := findDuplicate(all); twice {
		errs = append(errs,
			fmt.Errorf("jail.%s: %q is the destination of two entries of mounts, local and host; remove one of them",
				j.Name, dst))
	}
	for _, path := range j.Host {
		if err := c.refuseStored(path); err != nil {
			errs = append(errs, s.refuse([]string{"jail", j.Name, "host"}, "%v", err))
		}
	}
	for _, dir := range j.Local {
		for _, other := range j.Local {
			// Users can write to the outer directory: they could replace the inner one by a symlink.
			if dir != other && Under(dir, other) {
				errs = append(errs, s.refuse([]string{"jail", j.Name, "local"}, "%q lies in %q; remove one of them",
					dir, other))
			}
		}
	}
	for i, rule := range j.UserMounts {
		if err := c.checkRule(j, rule); err != nil {
			errs = append(errs, s.tableError(err, i, "jail", j.Name, "user_mounts"))
		}
	}
	return tomlfile.Join(errs...)
}

// tableError adds to an error the line and the number, from 1, of the i-th [[table]].
func (s *source) tableError(err error, i int, key ...string) error {
	err = fmt.Errorf("[[%s]] number %d: %w", strings.Join(key, "."), i+1, err)
	if line := s.TableLine(i, key...); line > 0 {
		err = fmt.Errorf("line %d: %w", line, err)
	}
	return err
}

func (c *Config) checkMount(j *Jail, m *Mount) error {
	if err := rootpath.CheckClean(m.Destination); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if err := c.checkDestination(j, m.Destination); err != nil {
		return fmt.Errorf("destination: %q: %w", m.Destination, err)
	}
	if m.Type == "" {
		m.Type = "bind"
	}
	words, known := typeOptions[m.Type]
	if !known {
		return fmt.Errorf("type: %q: write bind, tmpfs or overlay", m.Type)
	}
	if m.Type == "bind" {
		if err := c.checkSource(m.Source); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	} else if m.Source == "" {
		m.Source = m.Type
	}
	for _, option := range m.Options {
		if err := checkOption(option, words); err != nil {
			return fmt.Errorf("options: %w", err)
		}
	}
	return c.checkOverlay(m)
}

func checkOption(option string, words []string) error {
	name, value, valued := strings.Cut(option, "=")
	if valued {
		name += "="
	}
	if !slices.Contains(flagOptions, name) && !slices.Contains(words, name) {
		return fmt.Errorf("unknown option %q; known: %s", option, strings.Join(slices.Concat(flagOptions, words), " "))
	}
	if valued &&
		(value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == ',' || r == 0x7f })) {
		return fmt.Errorf("%q: the value is empty or contains a blank or a comma", option)
	}
	return nil
}

// checkOverlay requires the layers of an overlay to be clean, absolute paths outside the store.
func (c *Config) checkOverlay(m *Mount) error {
	if m.Type != "overlay" {
		return nil
	}
	found := map[string]bool{}
	for _, option := range m.Options {
		name, value, _ := strings.Cut(option, "=")
		if name != "lowerdir" && name != "upperdir" && name != "workdir" {
			continue
		}
		found[name] = true
		for _, dir := range strings.Split(value, ":") {
			if err := c.checkSource(dir); err != nil {
				return fmt.Errorf("options: %s: %w", name, err)
			}
		}
	}
	if !found["lowerdir"] {
		return fmt.Errorf("options: an overlay requires lowerdir=")
	}
	if found["upperdir"] != found["workdir"] {
		return fmt.Errorf("options: upperdir= and workdir= must be given together")
	}
	return nil
}

func (c *Config) checkRule(j *Jail, rule UserRule) error {
	if rule.Source == "" {
		return fmt.Errorf("source is missing: write the directory that users may mount from")
	}
	if err := c.checkSource(rule.Source); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if rule.Destination == "" {
		return nil
	}
	if err := rootpath.CheckClean(rule.Destination); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if err := c.refuseUserMount(j, rule.Destination); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	return nil
}

// IsBind reports whether a mount is a bind mount.
func IsBind(m specs.Mount) bool {
	return m.Type == "bind" || slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind")
}
