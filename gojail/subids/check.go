// SPDX-License-Identifier: Apache-2.0

package subids

import (
	"math"
	"slices"

	"github.com/gojail/gojail/gojail/config"
)

// Check judges the ranges of all users that have one in both files. It returns a range that is good, the number of
// users with such a range, and for each other user the error that Find returns.
func (t *Table) Check() (good IDRange, users int, refused []error) {
	seen := map[any]bool{} // uids, and names of users that are not listed
	for _, l := range t.columns[0].lines {
		uid, known := t.findUser(l.name)
		var user any = uid
		if !known {
			user = l.name
		}
		if seen[user] || !t.hasLines(0, l.name, uid) || !t.hasLines(1, l.name, uid) {
			continue
		}
		seen[user] = true
		r, err := t.Find(uid, l.name)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		users++
		if good == (IDRange{}) {
			good = r
		}
	}
	return good, users, refused
}

// findUser returns the uid of a user by the name in a line, which may be a number.
func (t *Table) findUser(name string) (uid uint32, known bool) {
	if uid, known = t.accounts[name]; known {
		return uid, true
	}
	if uid, err := config.ParseID(name); err == nil {
		return uid, true
	}
	return math.MaxUint32, false // no user can have this id (setreuid(2))
}

// hasLines reports whether a file has a range with enough ids for a user.
func (t *Table) hasLines(i int, name string, uid uint32) bool {
	return slices.ContainsFunc(t.columns[i].lines, func(l line) bool {
		other, known := t.findUser(l.name)
		return l.count >= Count && (l.name == name || known && other == uid)
	})
}
