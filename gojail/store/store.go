// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/trusted"
)

// Names in the directory of a jail.
const (
	versionsDir = contract.StoreVersions
	recordsDir  = "records"
	workDir     = "work"
	currentLink = contract.StoreCurrent
	historyFile = "history.json"
	lockFile    = "lock"
)

// Store is a directory with versions of jails.
type Store struct{ dir string }

// Jail is one jail of a store.
type Jail struct {
	Name string
	dir  string
}

// Open opens the store in a directory. It fails if anybody other than root may write to it.
func Open(dir string) (*Store, error) {
	if err := checkDirectory(dir); err != nil {
		return nil, fmt.Errorf("cannot use the store of jails: %w", err)
	}
	return &Store{dir}, nil
}

// checkDirectory fails unless a path is a directory that only root can write to and replace.
func checkDirectory(dir string) error {
	if err := trusted.Parents(dir); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		if err == unix.ENOENT {
			return fmt.Errorf("%s does not exist; is its storage mounted? To begin a store there, run: mkdir -m 755 %s",
				dir, dir)
		}
		return fmt.Errorf("%s: %w", dir, err)
	}
	return trusted.Check(dir, &st, unix.S_IFDIR)
}

// checkName fails if a name is not valid for a jail of a store.
func checkName(name string) error {
	if !contract.IsName(name) {
		return fmt.Errorf("invalid name %q of a jail: must be %s", name, contract.NameRule)
	}
	return nil
}

// Jails returns the jails of the store in alphabetical order.
func (s *Store) Jails() ([]*Jail, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the store: %w", err)
	}
	var list []*Jail
	for _, e := range entries {
		if e.IsDir() && checkName(e.Name()) == nil {
			list = append(list, &Jail{e.Name(), filepath.Join(s.dir, e.Name())})
		}
	}
	return list, nil
}

// Jail returns a jail of the store. If there is none of that name, the error lists the jails of the store.
func (s *Store) Jail(name string) (*Jail, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	j := &Jail{name, filepath.Join(s.dir, name)}
	err := checkDirectory(j.dir)
	if _, lookupErr := os.Lstat(j.dir); errors.Is(lookupErr, fs.ErrNotExist) {
		return nil, s.describeMissing(name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use jail %s of the store: %w", name, err)
	}
	return j, nil
}

// describeMissing returns the error for a jail that the store does not have.
func (s *Store) describeMissing(name string) error {
	all, err := s.Jails()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has no jail yet; build one with: gojail jail build %s --from SOURCE", s.dir, name)
	}
	var names []string
	for _, j := range all {
		names = append(names, j.Name)
	}
	return fmt.Errorf("%s has no jail %q; it has: %s", s.dir, name, strings.Join(names, ", "))
}

// MakeJail returns a jail of the store, and creates its directories where they are missing.
func (s *Store) MakeJail(name string) (*Jail, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	j := &Jail{name, filepath.Join(s.dir, name)}
	for _, dir := range []string{j.dir, j.path(versionsDir), j.path(recordsDir), j.path(workDir)} {
		if err := makeDirectory(dir); err != nil {
			return nil,
				fmt.Errorf("cannot create jail %s in the store: %w; is this node allowed to write to the storage?",
					name, err)
		}
	}
	if err := makeDirectory(filepath.Join(s.dir, nodesDir)); err != nil {
		return nil, fmt.Errorf("cannot create the directory of the leases: %w", err)
	}
	return j, checkDirectory(j.dir)
}

// makeDirectory creates a directory with mode 0755, whatever the umask is, unless it exists. The directory never has
// another mode, even if the command is killed: the next one would take that mode for the administrator's choice.
func makeDirectory(dir string) error {
	defer unix.Umask(unix.Umask(0))
	if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
		return oneline.Cause(err)
	}
	return nil
}

// path returns a path in the directory of the jail.
func (j *Jail) path(parts ...string) string {
	return filepath.Join(slices.Insert(parts, 0, j.dir)...)
}
