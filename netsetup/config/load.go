// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/internal/tomlfile"
	"github.com/gojail/gojail/internal/trusted"
)

// Load reads and checks the configuration at path, as the node of that name sees it.
//
// The file and all directories above it must belong to root and must not be writable for
// others. Each error is one line with the file, the key and, if there is one, the line in
// the file.
func Load(path, node string) (*Config, error) {
	data, _, err := trusted.ReadFile(path, "the network configuration")
	if err != nil {
		return nil, err
	}
	c, err := Parse(string(data), node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Path = path
	return c, nil
}

// Parse checks the text of a configuration like Load. An empty node stands for a node that
// no list names.
func Parse(text, node string) (*Config, error) {
	if node != "" && !matches(wordRule, node, nodeMost) {
		return nil, fmt.Errorf("node name %.100q: only letters, digits, '.', '_' and '-', at most 64", node)
	}
	r := &reader{config: &Config{Node: node}, owners: map[*Pool]string{}}
	var err error
	if r.Source, err = tomlfile.Decode(text, &r.file, nil); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		r.parsePolicies, r.parsePools, r.parseRails, r.parseControl, r.parseProbe, r.parseUFM, // each key
		// across tables
		r.parseDefault, r.checkPFs, r.checkRDMAModes, r.checkTags, r.checkTables, r.checkPKeys, r.checkOverlaps,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.config, nil
}

// reader converts the file into a Config. It stops at the first key that is wrong.
type reader struct {
	*tomlfile.Source
	file   file
	config *Config
	// the rail or [control] that uses each pool
	owners map[*Pool]string
}

// key returns the path of a key for errors: key("nic", "vendor").
func key(words ...string) toml.Key { return words }

var (
	wordRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	// nameRule matches names that can be those of an interface and of a file; sysctl(8) treats dots as separators.
	nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

// matches reports whether text matches the rule and has at most that many bytes. A rule
// with its own limit would take ten times as long to compile, at the start of each program.
func matches(rule *regexp.Regexp, text string, most int) bool {
	return len(text) <= most && rule.MatchString(text)
}

// Longest names, in bytes.
const (
	nodeMost      = 64
	labelMost     = 64
	interfaceMost = 15  // IFNAMSIZ, without the zero at its end
	altNameMost   = 127 // ALTIFNAMSIZ, likewise
)

// checkName rejects the name of a table that is missing, not well-formed or taken.
func checkName(at *tomlfile.Source, name string, taken func(string) bool) error {
	switch {
	case name == "":
		return at.Refuse(key("name"), "missing; each one needs a name")
	case !matches(nameRule, name, interfaceMost):
		return at.Refuse(key("name"), "%.100q: a letter or digit, then letters, digits, '_' or '-', at most 15 in all",
			name)
	case name == noNetwork:
		return at.Refuse(key("name"), `"none" means no network and cannot be a name`)
	case taken(name):
		return at.Refuse(key("name"), "duplicate name %q; each name may be used once", name)
	}
	return nil
}

// parseNumber reads a number from low to high; the default is standard.
func parseNumber(at *tomlfile.Source, value *int, standard, low, high int, k toml.Key) (int, error) {
	if value == nil {
		return standard, nil
	}
	if *value < low || *value > high {
		return 0, at.Refuse(k, "%d: write a number from %d to %d", *value, low, high)
	}
	return *value, nil
}

// parseNodes reads a host list; the default is the empty list.
func parseNodes(at *tomlfile.Source, text *string) (hostlist.List, error) {
	if text == nil {
		return hostlist.List{}, nil
	}
	h, err := hostlist.Parse(*text)
	if err != nil {
		return h, at.Refuse(key("nodes"), "%v", err)
	}
	return h, nil
}
