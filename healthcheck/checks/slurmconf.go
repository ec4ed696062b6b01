// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/internal/slurmconf"
)

// slurmConf are the lines of slurm.conf; a node without the file has slurmd's own
// copy of it. Sites have it on shared storage, too: for a Child only.
func slurmConf(h *check.Host) []string {
	for _, path := range slurmConfPaths(h) {
		if lines, err := slurmconf.Read(path); err == nil || len(lines) > 0 { // without a file that it includes, perhaps
			return lines
		}
	}
	return nil
}

// slurmConfPaths returns where slurm.conf may lie, the most likely first.
func slurmConfPaths(h *check.Host) []string {
	return []string{h.SlurmConf, filepath.Join(h.Roots.Etc, "slurm/slurm.conf"), filepath.Join(h.Roots.Run, "slurm/conf/slurm.conf")}
}

// slurmConfDir returns the directory of the first slurm.conf that is there.
func slurmConfDir(h *check.Host) string {
	for _, path := range slurmConfPaths(h) {
		if path != "" && present(path) {
			return filepath.Dir(path)
		}
	}
	return "/etc/slurm"
}

// slurmctldHosts are the addresses of SlurmctldHost=NAME(ADDRESS), slurm.conf(5).
func slurmctldHosts(h *check.Host) (all []string) {
	for _, row := range slurmConf(h) {
		key, value, found := strings.Cut(row, "=")
		if !found || !strings.EqualFold(strings.TrimSpace(key), "SlurmctldHost") {
			continue
		}
		name, address, found := strings.Cut(strings.TrimSpace(value), "(")
		if found {
			name = strings.TrimSuffix(address, ")")
		}
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// gresGPUs is how many GPUs slurm.conf gives the node: Gres=gpu:h100:8 in the line
// of its NodeName, or of NodeName=DEFAULT before it. 0: none, or slices of MIG.
func gresGPUs(h *check.Host) int {
	usual, gres := "", ""
	for _, row := range slurmConf(h) {
		has := map[string]string{}
		for _, word := range strings.Fields(row) {
			key, value, _ := strings.Cut(word, "=")
			has[strings.ToLower(key)] = value
		}
		names := has["nodename"]
		own, given := has["gres"]
		if strings.EqualFold(names, "DEFAULT") && given {
			usual = own
		}
		if nodes, err := hostlist.Parse(names); err == nil && nodes.Contains(h.Node) {
			if gres = usual; given {
				gres = own
			}
		}
	}
	return countGPUs(gres)
}

// countGPUs reads "gpu:h100:8(S:0-1),nic:4". A type such as "1g.10gb" is a slice.
func countGPUs(gres string) (n int) {
	for _, one := range strings.Split(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(gres, ""), ",") {
		words := strings.Split(one, ":")
		if !strings.EqualFold(words[0], "gpu") {
			continue
		}
		if len(words) == 1 {
			n++ // gpu alone is one
		}
		for i, word := range words[1:] {
			number, err := strconv.Atoi(word)
			switch {
			case strings.Contains(word, "g."):
				return 0
			case i == len(words)-2 && err == nil:
				n += number
			case i == len(words)-2:
				n++ // gpu:h100 is one
			}
		}
	}
	return n
}
