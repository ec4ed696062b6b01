// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// storePrefix begins a root that is a name in the store.
const storePrefix = "store:"

// currentLink is the link to the current version in a jail's directory of the store, see package store.
const currentLink = "current"

func (s *source) parseStore(text *string) (string, error) {
	if text == nil {
		return "", nil
	}
	if err := rootpath.CheckClean(*text); err != nil {
		return "", s.refuse([]string{"store"}, "%v", err)
	}
	return *text, nil
}

// setRoot fills in the path of a jail's root, which may be a name in the store.
func (s *source) setRoot(j *Jail, store string) error {
	key := []string{"jail", j.Name, "root"}
	name, is := strings.CutPrefix(j.Root, storePrefix)
	switch {
	case !is:
	case store == "":
		return s.refuse(key, "%q: gojail.toml must say where the store is, as in store = \"/shared/jails\"", j.Root)
	case !contract.IsName(name):
		return s.refuse(key, "%q: write store: and the name of a jail that gojail jail ls shows", j.Root)
	default:
		j.Versions, j.Root = name, filepath.Join(store, name, currentLink)
	}
	if err := rootpath.CheckClean(j.Root); err != nil {
		return s.refuse(key, "%v", err)
	}
	return nil
}

// StandardJail returns a jail with the defaults of all keys.
func (c *Config) StandardJail(name, root string) (*Jail, error) {
	var f file
	decoded, err := tomlfile.Decode("", &f, func(toml.Key) bool { return false })
	if err != nil {
		return nil, err
	}
	s := &source{Source: decoded}
	j, err := s.parseJail(name, &fileJail{Root: &root}, c.Store)
	if err != nil {
		return nil, err
	}
	return j, s.parseMounts(c, j)
}
