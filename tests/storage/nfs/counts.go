// SPDX-License-Identifier: Apache-2.0

package nfs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Counts are requests by operation, ACCESS for instance.
type Counts map[string]int

// ParseCounts reads how many requests the mount on a path has made, from the text
// of /proc/PID/mountstats (nfs_show_stats in fs/nfs/super.c).
func ParseCounts(mountstats, path string) (Counts, error) {
	begin := strings.LastIndex(mountstats, " mounted on "+path+" with fstype nfs") // the topmost, should there be several
	if begin < 0 {
		return nil, fmt.Errorf("nfs: mountstats has no NFS on %s", path)
	}
	text, _, _ := strings.Cut(mountstats[begin:], "\ndevice ")
	_, operations, found := strings.Cut(text, "per-op statistics\n")
	if !found {
		return nil, fmt.Errorf("nfs: mountstats has no operations of %s", path)
	}
	counts := Counts{}
	for line := range strings.Lines(operations) {
		name, numbers, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(numbers)
		if len(fields) == 0 {
			continue
		}
		n, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("nfs: mountstats: %q: %w", line, err)
		}
		counts[name] += n
	}
	return counts, nil
}

// leases are what a client sends to keep what it has, whether or not anybody does anything.
var leases = []string{"SEQUENCE", "TEST_STATEID", "FREE_STATEID"}

// Since is what was added to earlier counts, without leases.
func (c Counts) Since(earlier Counts) Counts {
	added := Counts{}
	for name, n := range c {
		if n -= earlier[name]; n != 0 && !slices.Contains(leases, name) {
			added[name] = n
		}
	}
	return added
}

// Sum is the number of all requests.
func (c Counts) Sum() (sum int) {
	for _, n := range c {
		sum += n
	}
	return sum
}

func (c Counts) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		words = append(words, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(words, ", ")
}
