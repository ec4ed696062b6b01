// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/slurmconf"
)

// readSlurmConf returns the lines of slurm.conf; on a node without the file, those of slurmd's
// copy. Since sites keep the file on shared storage, only checks in a Child may call this
// function.
func readSlurmConf(h *check.Host) []string {
	for _, path := range listSlurmConfPaths(h) {
		if lines, err := slurmconf.Read(path); err == nil || len(lines) > 0 { // an included file may be missing
			return lines
		}
	}
	return nil
}

// listSlurmConfPaths returns the possible paths of slurm.conf, the most likely first.
func listSlurmConfPaths(h *check.Host) []string {
	return []string{h.SlurmConf, filepath.Join(h.Roots.Etc, "slurm/slurm.conf"),
		filepath.Join(h.Roots.Run, "slurm/conf/slurm.conf")}
}

// findSlurmConfDir returns the directory of the first slurm.conf that exists.
func findSlurmConfDir(h *check.Host) string {
	for _, path := range listSlurmConfPaths(h) {
		if path != "" && mayExist(path) {
			return filepath.Dir(path)
		}
	}
	return "/etc/slurm"
}

// readControllerHosts returns the addresses of SlurmctldHost=NAME(ADDRESS), slurm.conf(5).
func readControllerHosts(h *check.Host) (all []string) {
	for _, row := range readSlurmConf(h) {
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

// readGresGPUs returns the number of GPUs that slurm.conf gives the node: Gres=gpu:h100:8 in
// the line of its NodeName, or of NodeName=DEFAULT before it. 0: none, or MIG slices.
func readGresGPUs(h *check.Host) int {
	return countGPUs(slurmconf.FindNode(readSlurmConf(h), h.Node)["gres"])
}

// countGPUs parses "gpu:h100:8(S:0-1),nic:4". A type such as "1g.10gb" is a MIG slice.
func countGPUs(gres string) (n int) {
	for _, one := range strings.Split(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(gres, ""), ",") {
		words := strings.Split(one, ":")
		if !strings.EqualFold(words[0], "gpu") {
			continue
		}
		if len(words) == 1 {
			n++ // "gpu" alone is one GPU
		}
		for i, word := range words[1:] {
			number, err := strconv.Atoi(word)
			switch {
			case strings.Contains(word, "g."):
				return 0
			case i == len(words)-2 && err == nil:
				n += number
			case i == len(words)-2:
				n++ // "gpu:h100" is one GPU
			}
		}
	}
	return n
}
