// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// slurmStep is the index of the step of buildConfig on which later steps depend: it sets the paths on which nothing may
// be mounted.
const slurmStep = 3

// buildConfig returns the Config of a file, or an error with all keys that are wrong.
func (s *source) buildConfig(f *file, node string) (*Config, error) {
	if node != "" && !contract.IsName(node) {
		return nil, fmt.Errorf("invalid node name %q: must be %s", node, contract.NameRule)
	}
	c := &Config{Node: node, AllowNone: f.AllowNone, Jails: map[string]*Jail{}}
	steps := []func() error{
		func() (err error) {
			c.Scratch, err = s.parseNodePath(f.Scratch, "/var/lib/gojail", node, "scratch")
			return
		},
		func() (err error) { c.Store, err = s.parseStore(f.Store); return },
		func() (err error) { c.Deadline, err = s.parseDeadline(f.Deadline); return },
		func() (err error) { c.Slurm, err = s.parseSlurm(&f.Slurm, node); return },
		func() (err error) { c.Session, err = s.parseSession(f.Session); return },
		func() (err error) { c.Login, err = s.parseLogin(f, node); return },
		func() error { return s.parseJails(f, c) },
		func() error { return s.parseDefaultJail(f, c) },
	}
	var errs []error
	for i, step := range steps {
		err := step()
		errs = append(errs, err)
		if err != nil && i == slurmStep {
			break
		}
	}
	if err := tomlfile.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

func (s *source) parseDefaultJail(f *file, c *Config) error {
	if f.Default == nil {
		return fmt.Errorf(`default is missing: write the name of a jail, or default = "none"`)
	}
	c.Default = *f.Default
	if c.Default == None {
		if !c.AllowNone {
			return s.refuse([]string{"default"}, `"none" requires allow_none = true`)
		}
		return nil
	}
	if _, ok := f.Jail[c.Default]; !ok {
		return s.refuse([]string{"default"}, "there is no [jail.%s]; the jails are: %s", c.Default,
			strings.Join(slices.Sorted(maps.Keys(f.Jail)), ", "))
	}
	return nil
}

func (s *source) parseDeadline(text *string) (time.Duration, error) {
	if text == nil {
		return contract.DefaultDeadline, nil
	}
	d, err := time.ParseDuration(*text)
	if err != nil || d < 100*time.Millisecond || d > 10*time.Minute {
		return 0, s.refuse([]string{"deadline"}, `%q: write a time from "100ms" to "10m", such as "10s"`, *text)
	}
	return d, nil
}

func (s *source) parseSlurm(f *fileSlurm, node string) (slurm Slurm, err error) {
	if slurm.Conf, err = s.parseNodePath(f.Conf, StandardConf, node, "slurm", "conf"); err != nil {
		return
	}
	if slurm.Spool, slurm.SpoolBase, err = s.parseSpool(f.Spool, slurm.Conf, node); err != nil {
		return
	}
	if slurm.Munge, err = s.parseNodePath(f.Munge, "/run/munge/munge.socket.2", node, "slurm", "munge"); err != nil {
		return
	}
	if slurm.Summary, err = s.parseSummary(f.JobSummary); err != nil {
		return
	}
	slurm.Host = f.Host
	return slurm, s.checkPaths(f.Host, "slurm", "host")
}

// parseSummary returns the field of a job's record that gets its summary, under the name that sacctmgr(1) uses, or "".
func (s *source) parseSummary(text *string) (string, error) {
	switch {
	case text == nil || *text == None:
		return "", nil
	case *text == "AdminComment" || *text == "Comment":
		return *text, nil
	}
	return "", s.refuse([]string{"slurm", "job_summary"}, `%q: write "AdminComment", "Comment" or "none"`, *text)
}

// parseSpool returns SlurmdSpoolDir from gojail.toml, or else from slurm.conf, and its base (Slurm.SpoolBase).
func (s *source) parseSpool(text *string, conf, node string) (spool, base string, err error) {
	from := ""
	if text == nil {
		given := s.spoolDir(conf)
		perNode := strings.ReplaceAll(given.Dir, "%h", "%n")
		spool, from = strings.ReplaceAll(given.Dir, "%h", given.Host), given.From
		if spool, err = s.parseNodePath(&spool, "", node, "slurm", "spool"); err == nil {
			base, err = s.parseSpoolBase(&perNode, spool)
		}
	} else if spool, err = s.parseNodePath(text, "", node, "slurm", "spool"); err == nil {
		base, err = s.parseSpoolBase(text, spool)
	}
	if err != nil && from != "" {
		err = fmt.Errorf("%w (SlurmdSpoolDir of %s)", err, from)
	}
	return spool, base, err
}

// parseSpoolBase returns the directory above the first path component with %n, or spool if there is none. The jail has
// an empty tmpfs there, so it must be a directory of Slurm's alone.
func (s *source) parseSpoolBase(text *string, spool string) (string, error) {
	before, _, perNode := strings.Cut(*text, "%n")
	base := filepath.Dir(before + "n")
	if !perNode || Under(base, "/run") { // /run is a tmpfs in every jail
		return spool, nil
	}
	if base == "/" || filepath.Dir(base) == "/" && slices.Contains(SystemDirs, base[1:]) {
		return "", s.refuse([]string{"slurm", "spool"},
			"%q: would hide %s of every jail; use a subdirectory, such as %s",
			*text, base, filepath.Join(base, "slurmd/%n"))
	}
	return base, nil
}

// parseNodePath returns a path with %n replaced by the node's name.
func (s *source) parseNodePath(text *string, standard, node string, key ...string) (string, error) {
	path := standard
	if text != nil {
		path = *text
	}
	expanded := strings.ReplaceAll(path, "%n", node)
	if expanded != path && node == "" {
		return "", s.refuse(key, "%q: the name of this node is unknown; give --node", path)
	}
	if strings.Contains(expanded, "%") {
		return "", s.refuse(key, "%q: unknown %% sequence; only %%n, the node's name, is supported", path)
	}
	if strings.ContainsAny(expanded, " \t") {
		return "", s.refuse(key, "%q: must not contain blanks", path)
	}
	if err := rootpath.CheckClean(expanded); err != nil {
		return "", s.refuse(key, "%v", err)
	}
	return expanded, nil
}

func (s *source) checkPaths(list []string, key ...string) error {
	for _, path := range list {
		if err := rootpath.CheckClean(path); err != nil {
			return s.refuse(key, "%v", err)
		}
	}
	return nil
}

var sizeRule = regexp.MustCompile(`^([0-9]{1,12})([KMGT]?)$`)

// parseSize parses the size of a key; 0 if it is absent.
func (s *source) parseSize(text *string, key ...string) (int64, error) {
	if text == nil {
		return 0, nil
	}
	n, err := ParseSize(*text)
	if err != nil {
		return 0, s.refuse(key, "%v", err)
	}
	return n, nil
}

// ParseSize parses "0", "512M" or "4G" (powers of 1024) into bytes.
func ParseSize(text string) (int64, error) {
	m := sizeRule.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf(`%q: write a size such as "512M" or "4G", or "0" for no limit`, text)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	shift := 0
	if m[2] != "" {
		shift = 10 * (strings.Index("KMGT", m[2]) + 1)
	}
	if n > 1<<60>>shift {
		return 0, fmt.Errorf("%q: too large", text)
	}
	return n << shift, nil
}

// ParseID parses a user or group number.
func ParseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}
