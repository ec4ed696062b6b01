// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/slurm"
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
		key, value, _ := slurmconf.Cut(row)
		if key != "slurmctldhost" {
			continue
		}
		name, address, found := strings.Cut(value, "(")
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
// the line of its NodeName, or of NodeName=DEFAULT before it. 0: none, or MIG slices, whose
// type is such as "1g.10gb".
func readGresGPUs(h *check.Host) (n int) {
	for _, g := range slurm.ReadGRES(slurmconf.FindNode(readSlurmConf(h), h.Node)["gres"]) {
		switch {
		case !strings.EqualFold(g.Name, "gpu"):
		case strings.Contains(g.Type, "g."):
			return 0
		default:
			n += max(g.Count, 0)
		}
	}
	return n
}
