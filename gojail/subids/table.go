// SPDX-License-Identifier: Apache-2.0

// Package subids finds the range of subordinate ids that a user has for --jail-root=range, and judges whether somebody
// else has one of these ids. Root in the jail can take any of them, and every program that asks the kernel for the uid
// of a process (munge, an NFS server with AUTH_SYS, any daemon by SO_PEERCRED) would act for the account with that uid.
// Hiding munge's socket is not enough, because a process outside the sandbox can pass in an open file.
package subids

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/refusal"
)

// Count is the number of ids that packages need. gojail uses no more of a range.
const Count = 1 << 16

// IDRange is the range of Count ids that a user has in a user namespace, from uid and gid 0 on (subuid(5), subgid(5)).
type IDRange struct {
	UID, GID uint32 // first ids of the range on the node
}

// Owner is an account, process or job that has an id of this node.
type Owner struct {
	ID   uint32
	Name string // "carol", "group carol", "process 4711", "job 77"
}

// Table is everything that is known of the ids of this node.
type Table struct {
	columns  [2]column         // of uids and gids
	accounts map[string]uint32 // uids of users, as far as they are listed
	Unlisted []string          // services of nsswitch.conf that may have accounts, or ranges, that they do not list
}

// column is everything that is known of uids, or of gids.
type column struct {
	*kind
	lines  []line
	owners []Owner // sorted by ID
	limit  uint32  // highest id that useradd or groupadd gives to an account
	first  uint32  // lowest id that useradd gives to a range
}

// kind names the places at which uids, or gids, are found.
type kind struct {
	name     string // in messages
	file     string // file of the ranges, below /etc
	database string // database of the name service
	max, min string // keys of login.defs(5)
	// program that gives ids to accounts
	creator string
}

var kinds = [2]kind{
	{"uid", "subuid", "passwd", "UID_MAX", "SUB_UID_MIN", "useradd"},
	{"gid", "subgid", "group", "GID_MAX", "SUB_GID_MIN", "groupadd"},
}

// line is a range in a file of subordinate ids.
type line struct {
	name         string
	first, count uint32
}

func (l line) String() string { return fmt.Sprintf("%s:%d:%d", l.name, l.first, l.count) }

// AddOwners adds owners of uids and of gids.
func (t *Table) AddOwners(uids, gids []Owner) {
	for i, owners := range [][]Owner{uids, gids} {
		column := &t.columns[i]
		column.owners = append(column.owners, owners...)
		slices.SortFunc(column.owners, func(a, b Owner) int { return cmp.Compare(a.ID, b.ID) })
	}
}

// Find returns the range of a user, who must be an account. In each file it takes the first line of the user that has
// enough ids, none of which belongs to anybody else.
func (t *Table) Find(uid uint32, name string) (r IDRange, err error) {
	var gidErr error
	r.UID, err = t.find(0, uid, name)
	r.GID, gidErr = t.find(1, uid, name)
	switch {
	case err != nil && gidErr != nil: // both lines are to be corrected
		return r, fmt.Errorf("--jail-root=range: %w; and %w", err, gidErr)
	case err == nil:
		err = gidErr
	}
	if err != nil {
		return r, fmt.Errorf("--jail-root=range: %w", err)
	}
	return r, nil
}

// find returns the first id of a user's range in one of the files.
func (t *Table) find(i int, uid uint32, name string) (uint32, error) {
	column := &t.columns[i]
	isUsers := func(l line) bool {
		return l.name == name || l.name == strconv.FormatUint(uint64(uid), 10) || t.isAccount(l.name, uid)
	}
	var refused error
	for _, l := range column.lines {
		if !isUsers(l) || l.count < Count {
			continue
		}
		c := column.judge(l.first, isUsers)
		if c == nil {
			return l.first, nil
		}
		if refused == nil {
			refused = &takenError{l, column.kind, c.reason, column.findFree(isUsers)}
		}
	}
	if refused == nil {
		refused =
			refusal.Errorf("/etc/%s has no range of at least %d ids for %s; ask your administrator for a line such as "+
				"%s", column.file, Count, name, line{name, column.findFree(isUsers), Count})
	}
	return 0, refused
}

// isAccount reports whether a name of one of the files is another name of a user.
func (t *Table) isAccount(name string, uid uint32) bool {
	id, known := t.accounts[name]
	return known && id == uid
}

// takenError is the error for a range of a user with ids that belong to somebody else.
type takenError struct {
	line   line
	kind   *kind
	reason string
	free   uint32 // first id of a range that is free; 0: none was found
}

func (e *takenError) Error() string {
	remedy := fmt.Sprintf("write %s in its place, whose ids are free", line{e.line.name, e.free, Count})
	if e.free == 0 {
		remedy = fmt.Sprintf("write a range of %d ids in its place that nobody has", Count)
	}
	return fmt.Sprintf("the ids %d-%d of %s in /etc/%s %s; ask your administrator to %s",
		e.line.first, e.line.first+Count-1, e.line.name, e.kind.file, e.reason, remedy)
}

// conflict is a reason why a range cannot be used, with the last id that it concerns.
type conflict struct {
	reason string
	last   uint32
}

// judge returns a reason why the Count ids from first on cannot be a user's range, or nil.
func (c *column) judge(first uint32, isUsers func(line) bool) *conflict {
	const own = 1 << 16 // ids below are the node's own, including nobody
	last := first + Count - 1
	if first < own {
		return &conflict{fmt.Sprintf("include ids below %d, which are the node's own", own), own - 1}
	}
	i, _ := slices.BinarySearchFunc(c.owners, first, func(o Owner, id uint32) int { return cmp.Compare(o.ID, id) })
	if i < len(c.owners) && c.owners[i].ID <= last {
		return &conflict{fmt.Sprintf("include %s %d of %s", c.name, c.owners[i].ID, c.owners[i].Name), c.owners[i].ID}
	}
	for _, other := range c.lines {
		if end := other.first + other.count - 1; !isUsers(other) && other.first <= last && end >= first {
			return &conflict{fmt.Sprintf("overlap those of %s there (%s)", other.name, other), end}
		}
	}
	if c.limit >= first {
		return &conflict{fmt.Sprintf("are such as %s gives to accounts: %s of /etc/login.defs is %d", c.creator, c.max,
			c.limit), c.limit}
	}
	return nil
}

// findFree returns the first id of a range that judge accepts, from the id on at which useradd begins to look; 0 if it
// does not find one soon.
func (c *column) findFree(isUsers func(line) bool) uint32 {
	const highest, attempts = 1<<31 - 1, 10000 // some programs take an id for a signed number
	for first, i := uint64(c.first), 0; first+Count <= highest && i < attempts; i++ {
		found := c.judge(uint32(first), isUsers)
		if found == nil {
			return uint32(first)
		}
		first += (max(uint64(found.last), first) - first + Count) / Count * Count
	}
	return 0
}

// parseLines parses lines NAME:FIRST:COUNT, and leaves out those that newuidmap(1) cannot use either: moby/sys/user
// would take a number that it cannot parse for 0.
func parseLines(text string) (lines []line) {
	for _, fields := range splitLines(text) {
		if len(fields) != 3 {
			continue
		}
		first, err := config.ParseID(fields[1])
		count, countErr := config.ParseID(fields[2])
		if err == nil && countErr == nil && count > 0 && uint64(first)+uint64(count) < 1<<32 {
			lines = append(lines, line{fields[0], first, count})
		}
	}
	return lines
}
