// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// storePrefix begins a root that is a name in the store.
const storePrefix = "store:"

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
	name, ok := strings.CutPrefix(j.Root, storePrefix)
	switch {
	case !ok:
	case store == "":
		return s.refuse(key, "%q: gojail.toml must say where the store is, as in store = \"/shared/jails\"", j.Root)
	case !contract.IsName(name):
		return s.refuse(key, "%q: write store: and the name of a jail that gojail jail ls shows", j.Root)
	default:
		j.Versions, j.Root = name, filepath.Join(store, name, contract.StoreCurrent)
	}
	if err := rootpath.CheckClean(j.Root); err != nil {
		return s.refuse(key, "%v", err)
	}
	return nil
}

// checkSource refuses a path that cannot be the source of a mount.
func (c *Config) checkSource(path string) error {
	if err := rootpath.CheckClean(path); err != nil {
		return err
	}
	return c.refuseStored(path)
}

// refuseStored refuses a path in the store as the source of a mount. Leases name the roots of jails only, so gojail
// jail gc would remove the files of such a mount under running jobs.
func (c *Config) refuseStored(path string) error {
	if c.Store == "" || !Under(path, c.Store) {
		return nil
	}
	return fmt.Errorf("%q lies in the store, in which gojail jail gc keeps only the roots of jails; write a "+
		"directory outside %s", path, c.Store)
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

// CutStore returns the rest of a path below the store's directory, and reports whether the path lies below it.
func (c *Config) CutStore(path string) (rest string, below bool) {
	return strings.CutPrefix(path, c.Store+"/")
}
