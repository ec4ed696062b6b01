// SPDX-License-Identifier: Apache-2.0

package subids

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/trusted"
)

// Source is the place from which a table is read.
type Source struct {
	Etc string // the directory /etc

	// List calls line with each line of a database that the name service lists; LookUp returns the name of an id, or
	// "". Both end with the context: a name service may hang.
	List   func(ctx context.Context, database string, line func(string)) error
	LookUp func(ctx context.Context, database string, id uint32) (string, error)
}

// listing are the services of nsswitch.conf(5) that list all their accounts. Other services, such as sss, winbind and
// ldap, may find an account that setpwent(3) does not return, or be down without an error.
var listing = []string{"files", "compat", "db", "systemd", "altfiles", "extrausers", "mymachines"}

// Read reads a table: the files of ranges, which only root can write, and the accounts that the name service lists. It
// does not ask the source in a line "subid:" of nsswitch.conf (getsubids(1)): libsubid would load that module into a
// process of root's.
func Read(ctx context.Context, s Source) (*Table, error) {
	t := &Table{accounts: map[string]uint32{}}
	defs, err := readOptional(filepath.Join(s.Etc, "login.defs"))
	if err != nil {
		return nil, err
	}
	services, err := readOptional(filepath.Join(s.Etc, "nsswitch.conf"))
	if err != nil {
		return nil, err
	}
	for i := range kinds {
		text, _, err := trusted.ReadFile(filepath.Join(s.Etc, kinds[i].file), "the file of subordinate ids")
		if err != nil {
			return nil, err
		}
		t.columns[i] = column{kind: &kinds[i], lines: parseLines(string(text)),
			limit: readNumber(defs, kinds[i].max, 60000), first: readNumber(defs, kinds[i].min, 100000)}
		t.Unlisted = append(t.Unlisted, findUnlisted(services, kinds[i].database)...)
	}
	t.Unlisted = append(t.Unlisted, findUnlisted(services, "subid")...) // it may have ranges of other users
	slices.Sort(t.Unlisted)
	t.Unlisted = slices.Compact(t.Unlisted)
	return t, t.list(ctx, s)
}

// list adds the accounts that the name service lists.
func (t *Table) list(ctx context.Context, s Source) error {
	var uids, gids []Owner
	err := s.List(ctx, "passwd", func(text string) {
		fields := strings.Split(text, ":")
		if len(fields) < 4 {
			return
		}
		if uid, err := config.ParseID(fields[2]); err == nil {
			uids = append(uids, Owner{uid, fields[0]})
			t.accounts[fields[0]] = uid
		}
		if gid, err := config.ParseID(fields[3]); err == nil {
			gids = append(gids, Owner{gid, fields[0]})
		}
	})
	if err != nil {
		return err
	}
	err = s.List(ctx, "group", func(text string) {
		fields := strings.Split(text, ":")
		if len(fields) < 3 {
			return
		}
		if gid, err := config.ParseID(fields[2]); err == nil {
			gids = append(gids, Owner{gid, "group " + fields[0]})
		}
	})
	t.AddOwners(uids, gids)
	return err
}

// Probe asks the name service for the ids at both ends of a range. It fails if an account has one of them, or if the
// service does not answer. So it finds services that have an account for every id, and services that are down.
func (r IDRange) Probe(ctx context.Context, s Source) error {
	for i, first := range []uint32{r.UID, r.GID} {
		for _, id := range []uint32{first, first + Count - 1} {
			name, err := s.LookUp(ctx, kinds[i].database, id)
			if err != nil {
				return fmt.Errorf("--jail-root=range: cannot ask the name service whether an account has %s %d: %w; "+
					"try again, or ask your administrator to correct it",
					kinds[i].name, id, err)
			}
			if name != "" {
				return fmt.Errorf("--jail-root=range: %s has %s %d of your range in /etc/%s; ask your administrator "+
					"for a range that no account has",
					name, kinds[i].name, id, kinds[i].file)
			}
		}
	}
	return nil
}

// findUnlisted returns the services of a database that may have accounts they do not list.
func findUnlisted(nsswitch, database string) (services []string) {
	for text := range strings.Lines(nsswitch) {
		text, _, _ = strings.Cut(text, "#")
		name, list, found := strings.Cut(text, ":")
		if !found || strings.TrimSpace(name) != database {
			continue
		}
		inAction := false // [NOTFOUND=return]
		for word := range strings.FieldsSeq(list) {
			inAction = inAction || strings.HasPrefix(word, "[")
			if !inAction && !slices.Contains(listing, word) {
				services = append(services, word)
			}
			inAction = inAction && !strings.HasSuffix(word, "]")
		}
	}
	return services
}

// readOptional reads a configuration file of the node; a missing one is empty.
func readOptional(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// readNumber returns the value of a key of login.defs(5), or its default.
func readNumber(defs, key string, value uint32) uint32 {
	for text := range strings.Lines(defs) {
		if fields := strings.Fields(text); len(fields) >= 2 && fields[0] == key {
			if number, err := config.ParseID(fields[1]); err == nil {
				value = number
			}
		}
	}
	return value
}

// splitLines returns the fields of lines that are separated by colons.
func splitLines(text string) (list [][]string) {
	for l := range strings.Lines(text) {
		list = append(list, strings.Split(strings.TrimSpace(l), ":"))
	}
	return list
}
