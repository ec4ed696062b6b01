// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/internal/tomlfile"
	"github.com/gojail/gojail/internal/trusted"
)

// Load reads and checks health.toml as it applies to the named node; checks are the names of
// all checks. Only root may be able to write the file and the directories above it. Each error
// is one line; a missing file is fs.ErrNotExist.
func Load(path, node string, checks []string) (*Config, error) {
	data, _, err := trusted.ReadFile(path, "the configuration of health checks")
	if err != nil {
		return nil, err
	}
	c, err := Parse(string(data), node, checks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// file is health.toml: the settings of all nodes, and the overrides for some nodes.
type file struct {
	Config
	Override []override `toml:"override"`
}

// override is one [[override]], whose keys apply to some nodes only.
type override struct {
	Nodes string `toml:"nodes"`
	Config
}

// Parse parses the text of health.toml as Load does.
func Parse(text, node string, checks []string) (*Config, error) {
	whole := &file{Config: *Defaults()}
	source, err := tomlfile.Decode(text, whole, nil)
	if err != nil {
		return nil, err
	}
	if len(whole.Override) == 0 {
		return &whole.Config, whole.checkConfig(source.Refuse, checks)
	}
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		return nil, err // unreachable: the text was decoded above
	}
	overrides, _ := tree["override"].([]map[string]any)
	delete(tree, "override")
	c, err := decodeTree(tree, source.Refuse, checks)
	if err != nil {
		return nil, err
	}
	for i, o := range overrides {
		at := source.Element("override", i)
		list, _ := o["nodes"].(string)
		nodes, err := hostlist.Parse(list)
		if err != nil {
			return nil, at.Refuse(toml.Key{"nodes"}, "%v", err)
		}
		delete(o, "nodes")
		merged := mergeTables(tree, o)
		// overrides of other nodes are checked, too, so that every node reports a mistake
		changed, err := decodeTree(merged, at.Refuse, checks)
		if err != nil {
			return nil, err
		}
		if nodes.Contains(node) {
			c, tree = changed, merged
		}
	}
	return c, nil
}

// decodeTree decodes a tree of keys over the defaults and checks the result.
func decodeTree(tree map[string]any, refuse refusal, checks []string) (*Config, error) {
	text, err := toml.Marshal(tree)
	if err != nil {
		return nil, err
	}
	c := Defaults()
	if _, err := toml.Decode(string(text), c); err != nil {
		return nil, err
	}
	return c, c.checkConfig(refuse, checks)
}

// mergeTables returns base with the keys of over, table by table; it changes neither argument.
func mergeTables(base, over map[string]any) map[string]any {
	all := maps.Clone(base)
	for key, value := range over {
		table, isTable := value.(map[string]any)
		if before, ok := all[key].(map[string]any); ok && isTable {
			value = mergeTables(before, table)
		}
		all[key] = value
	}
	return all
}

// refusal returns the error for an invalid key.
type refusal func(key toml.Key, format string, args ...any) error

// checkDuration returns an error for a time outside the limits.
func checkDuration(refuse refusal, value, low, high time.Duration, key ...string) error {
	if value < low || value > high {
		return refuse(key, "%v: write a time from \"%v\" to \"%v\"", value, low, high)
	}
	return nil
}

// checkAbsolute returns an error for a path that is not absolute.
func checkAbsolute(refuse refusal, path string, key ...string) error {
	if path != "" && (!filepath.IsAbs(path) || filepath.Clean(path) != path) {
		return refuse(key, "%.100q: write an absolute path", path)
	}
	return nil
}

// checkRule checks the changes to one check; names are the names of all checks.
func (c *Config) checkRule(refuse refusal, names []string, name string) error {
	r := c.Check[name]
	key := func(last string) toml.Key { return toml.Key{"check", name, last} }
	switch {
	case !slices.Contains(names, name):
		return refuse(toml.Key{"check", name}, "no such check; the checks are: %s", strings.Join(names, ", "))
	case r.Severity != "" && r.Severity != check.Drain && r.Severity != check.WarnOnly:
		return refuse(key("severity"), "%.30q: write %q or %q", r.Severity, check.Drain, check.WarnOnly)
	case r.Timeout < 0 || r.Timeout > c.Total/2:
		return refuse(key("timeout"), "%v: write a time up to half of total, %v", r.Timeout, c.Total/2)
	case r.Bad < 0 || r.Bad > 1000:
		return refuse(key("bad"), "%d: write a number of runs from 1 to 1000", r.Bad)
	case r.Good < 0 || r.Good > 1000:
		return refuse(key("good"), "%d: write a number of runs from 1 to 1000", r.Good)
	}
	return nil
}

// SelectChecks returns the checks with the configured changes, without those that are switched
// off.
func (c *Config) SelectChecks(checks []check.Check) []check.Check {
	var on []check.Check
	for _, check := range checks {
		r := c.Check[check.Name]
		if r.Off {
			continue
		}
		if r.Severity != "" {
			check.Severity = r.Severity
		}
		if r.Timeout != 0 {
			check.Timeout = r.Timeout
		}
		check.BadRuns = max(1, check.BadRuns)
		if r.Bad != 0 {
			check.BadRuns = r.Bad
		}
		check.GoodRuns = max(1, check.GoodRuns)
		if r.Good != 0 {
			check.GoodRuns = r.Good
		}
		on = append(on, check)
	}
	return on
}
