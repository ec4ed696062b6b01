// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// core is a CPU core with the first of its CPUs (hardware threads) in the kernel's
// numbering.
type core struct{ socket, number, first int }

var cpuName = regexp.MustCompile(`^cpu[0-9]+$`)

// readCores returns the node's cores in Slurm's order: by socket, then by the numbers of
// their CPUs (hwloc's logical indexes).
func readCores(d directory) []core {
	var all []core
	firstOfSocket := map[int]int{}
	for _, name := range d.listNames("") {
		topology := d.in(name).in("topology")
		socket, number := topology.readNumber("physical_package_id", -1), topology.readNumber("core_id", -1)
		if !cpuName.MatchString(name) || number < 0 {
			continue // an offline CPU
		}
		cpu := d.parseNumber(strings.TrimPrefix(name, "cpu"))
		if first, known := firstOfSocket[socket]; !known || cpu < first {
			firstOfSocket[socket] = cpu
		}
		i := slices.IndexFunc(all, func(c core) bool { return c.socket == socket && c.number == number })
		if i < 0 {
			all = append(all, core{socket, number, cpu})
		} else {
			all[i].first = min(all[i].first, cpu)
		}
	}
	slices.SortFunc(all, func(a, b core) int {
		return cmp.Or(cmp.Compare(firstOfSocket[a.socket], firstOfSocket[b.socket]), cmp.Compare(a.first, b.first))
	})
	return all
}

// ListCores converts the kernel's list of CPUs near a device into Slurm's core numbers for
// gres.conf: "0-15". "" stands for all cores, and for unknown.
func (inv *Inventory) ListCores(cpus string) string {
	near := parseList(cpus)
	var numbers []int
	for i, c := range inv.cores {
		if near[c.first] {
			numbers = append(numbers, i)
		}
	}
	if len(numbers) == len(inv.cores) {
		return ""
	}
	return FormatRanges(numbers)
}

// parseList reads "0-3,8"; it ignores parts that are not numbers.
func parseList(text string) map[int]bool {
	all := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, lastErr := strconv.Atoi(to)
		if err != nil || lastErr != nil || last-first > 1<<16 {
			continue
		}
		for n := first; n <= last; n++ {
			all[n] = true
		}
	}
	return all
}

// FormatRanges writes ascending numbers as "0-3,8".
func FormatRanges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.Itoa(numbers[i])
		if j > i {
			part += "-" + strconv.Itoa(numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
