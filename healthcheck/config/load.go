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

// Load reads and checks health.toml, as the node of that name sees it; checks are the names of all checks. The file
// and the directories above it must be root's alone. Errors are one line; an
// absent file is fs.ErrNotExist.
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

// file is health.toml: the settings of all nodes, and what differs on some.
type file struct {
	Config
	Override []override `toml:"override"`
}

type override struct {
	Nodes string `toml:"nodes"`
	Config
}

// Parse is Load for a text.
func Parse(text, node string, checks []string) (*Config, error) {
	whole := &file{Config: *Defaults()}
	source, err := tomlfile.Decode(text, whole, nil)
	if err != nil {
		return nil, err
	}
	if len(whole.Override) == 0 {
		return &whole.Config, whole.check(source.Refuse, checks)
	}
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		return nil, err // cannot be: it was decoded above
	}
	overrides, _ := tree["override"].([]map[string]any)
	delete(tree, "override")
	c, err := settle(tree, source.Refuse, checks)
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
		merged := merge(tree, o)
		changed, err := settle(merged, at.Refuse, checks) // of other nodes too: a mistake is told everywhere
		if err != nil {
			return nil, err
		}
		if nodes.Contains(node) {
			c, tree = changed, merged
		}
	}
	return c, nil
}

// settle puts a tree of keys over the standard and checks the result.
func settle(tree map[string]any, refuse refusal, checks []string) (*Config, error) {
	text, err := toml.Marshal(tree)
	if err != nil {
		return nil, err
	}
	c := Defaults()
	if _, err := toml.Decode(string(text), c); err != nil {
		return nil, err
	}
	return c, c.check(refuse, checks)
}

// merge is base with the keys of over, table by table; both stay as they are.
func merge(base, over map[string]any) map[string]any {
	all := maps.Clone(base)
	for key, value := range over {
		table, isTable := value.(map[string]any)
		if before, ok := all[key].(map[string]any); ok && isTable {
			value = merge(before, table)
		}
		all[key] = value
	}
	return all
}

// refusal makes the error for a key.
type refusal func(key toml.Key, format string, args ...any) error

func within(refuse refusal, value, low, high time.Duration, key ...string) error {
	if value < low || value > high {
		return refuse(key, "%v: write a time from \"%v\" to \"%v\"", value, low, high)
	}
	return nil
}

func absolute(refuse refusal, path string, key ...string) error {
	if path != "" && (!filepath.IsAbs(path) || filepath.Clean(path) != path) {
		return refuse(key, "%.100q: write an absolute path", path)
	}
	return nil
}

// rule checks the changes to one check; names are all there are.
func (c *Config) rule(refuse refusal, names []string, name string) error {
	r := c.Check[name]
	key := func(last string) toml.Key { return toml.Key{"check", name, last} }
	switch {
	case !slices.Contains(names, name):
		return refuse(toml.Key{"check", name}, "no such check; there are: %s", strings.Join(names, ", "))
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

// Rules is checks as the configuration changes them, without those that are off.
func (c *Config) Rules(checks []check.Check) []check.Check {
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
		check.Bad = max(1, check.Bad)
		if r.Bad != 0 {
			check.Bad = r.Bad
		}
		check.Good = max(1, check.Good)
		if r.Good != 0 {
			check.Good = r.Good
		}
		on = append(on, check)
	}
	return on
}
