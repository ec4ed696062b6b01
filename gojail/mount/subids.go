// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/trusted"
)

// IDRange is the range of ids that a user has in a user namespace, from uid and gid 0 on (subuid(5),
// subgid(5)).
type IDRange struct {
	UID, GID uint32 // first ids of the range on the node
	Count    uint32 // number of uids and of gids
}

// RangeCount is the number of ids that packages need. No more are used.
const RangeCount = 1 << 16

// SubIDs returns a user's range of /etc/subuid and /etc/subgid, the files that only root can write. It does
// not ask the source that a line "subid:" of nsswitch.conf names (getsubids(1)): libsubid would load that module
// into a process of root's.
func SubIDs(uid uint32) (IDRange, error) {
	name := strconv.FormatUint(uint64(uid), 10)
	names := []string{name}
	if u, err := user.LookupId(name); err == nil {
		names = append(names, u.Username)
	}
	var r IDRange
	var counts [2]uint32
	for i, path := range []string{"/etc/subuid", "/etc/subgid"} {
		text, _, err := trusted.ReadFile(path, "the file of subordinate ids")
		if err != nil {
			return r, fmt.Errorf("--jail-root=range: %w", err)
		}
		first, count := subRange(string(text), names)
		if count == 0 {
			return r, fmt.Errorf("--jail-root=range: %s has no range of at least %d ids for %s; ask your administrator for a line such as %s:100000:65536",
				path, RangeCount, names[len(names)-1], names[len(names)-1])
		}
		counts[i] = count
		if i == 0 {
			r.UID = first
		} else {
			r.GID = first
		}
	}
	r.Count = min(counts[0], counts[1], RangeCount)
	return r, nil
}

// subRange returns the first range of at least RangeCount ids in lines NAME:FIRST:COUNT. It skips ranges
// with ids of the node's own users. moby/sys/user would take a number that it cannot read for 0.
func subRange(text string, names []string) (first, count uint32) {
	const ownUsers = 1 << 16
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 || !slices.Contains(names, fields[0]) {
			continue
		}
		first, err := config.ParseID(fields[1])
		count, also := config.ParseID(fields[2])
		if err == nil && also == nil && first >= ownUsers && count >= RangeCount && uint64(first)+uint64(count) < 1<<32 {
			return first, count
		}
	}
	return 0, 0
}
