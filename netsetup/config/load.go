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
// The file and every directory above it must belong to root and be closed to
// writing by others. Every error is one line that names the file, the line where
// there is one, and the key.
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

// Parse is Load for a text. An empty node is one that no list of nodes names.
func Parse(text, node string) (*Config, error) {
	if node != "" && !matches(wordRule, node, nodeMost) {
		return nil, fmt.Errorf("node name %.100q: only letters, digits, '.', '_' and '-', at most 64", node)
	}
	r := &reader{config: &Config{Node: node}, used: map[*Pool]string{}}
	var err error
	if r.Source, err = tomlfile.Decode(text, &r.file, nil); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		r.policies, r.pools, r.rails, r.control, r.probe, r.ufm, // each key
		r.defaultLabel, r.samePFs, r.rdmaModes, r.tags, r.tables, r.pkeys, r.overlaps, // across tables
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.config, nil
}

// reader turns the file into a Config, or names the first key that is wrong.
type reader struct {
	*tomlfile.Source
	file   file
	config *Config
	// used tells who has a pool.
	used map[*Pool]string
}

// key names a key in errors: key("nic", "vendor").
func key(words ...string) toml.Key { return words }

var (
	wordRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	// nameRule is what can be the name of an interface and of a file; sysctl(8) stumbles over dots.
	nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

// matches reports whether text follows the rule and has at most that many bytes. A rule that
// counts them itself takes ten times as long to compile, in each program that starts.
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

// name checks the name of a table among those before it.
func name(at *tomlfile.Source, name string, taken func(string) bool) error {
	switch {
	case name == "":
		return at.Refuse(key("name"), "missing; each one needs a name")
	case !matches(nameRule, name, interfaceMost):
		return at.Refuse(key("name"), "%.100q: a letter or digit, then letters, digits, '_' or '-', at most 15 in all", name)
	case name == noNetwork:
		return at.Refuse(key("name"), `"none" means no network and cannot be a name`)
	case taken(name):
		return at.Refuse(key("name"), "%q is there already; each name only once", name)
	}
	return nil
}

// within reads a number; nil is the standard.
func within(at *tomlfile.Source, value *int, standard, low, high int, k toml.Key) (int, error) {
	if value == nil {
		return standard, nil
	}
	if *value < low || *value > high {
		return 0, at.Refuse(k, "%d: write a number from %d to %d", *value, low, high)
	}
	return *value, nil
}

// nodeList reads a host list; nil is the empty one.
func nodeList(at *tomlfile.Source, text *string) (hostlist.List, error) {
	if text == nil {
		return hostlist.List{}, nil
	}
	h, err := hostlist.Parse(*text)
	if err != nil {
		return h, at.Refuse(key("nodes"), "%v", err)
	}
	return h, nil
}
