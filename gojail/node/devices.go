// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/rootpath"
)

// SlurmPresent identifies the node's Slurm: an upgrade replaces these files, and
// a template has the old ones bound.
func SlurmPresent(c *config.Config) []string {
	var list []string
	commands, _ := FindCommands(c)
	for _, path := range append(commands, filepath.Join(c.Slurm.Conf, "plugstack.conf")) {
		list = append(list, Identify(path)...)
	}
	return list
}

// Identify changes when a file is replaced, and is empty where there is none.
func Identify(path string) []string {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil
	}
	return []string{fmt.Sprintf("%s %d %d %d", path, st.Dev, st.Ino, st.Mtim.Sec)}
}

// Device is a host device node (or a directory of them) that a glob found.
type Device struct {
	Path string
	Rdev uint64 // 0 for a directory
}

// FindDevices expands the globs on this node. What is neither a device nor a
// directory is left out.
func FindDevices(globs []string) []Device {
	var list []Device
	for _, glob := range globs {
		matches, _ := filepath.Glob(glob) // the pattern was checked by Load
		for _, path := range matches {
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				continue
			}
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFCHR, unix.S_IFBLK:
				list = append(list, Device{path, uint64(st.Rdev)})
			case unix.S_IFDIR:
				list = append(list, Device{Path: path})
			}
		}
	}
	slices.SortFunc(list, func(a, b Device) int { return slices.Compare([]byte(a.Path), []byte(b.Path)) })
	return slices.Compact(list)
}

// FindCommands lists the Slurm client commands of the node, from the first
// directory that has srun: below slurm.host, then the usual ones.
func FindCommands(c *config.Config) ([]string, string) {
	var dirs []string
	for _, host := range c.Slurm.Host {
		dirs = append(dirs, filepath.Join(host, "bin"))
	}
	for _, dir := range append(dirs, "/usr/bin", "/usr/local/bin", "/opt/slurm/bin") {
		if _, err := os.Stat(filepath.Join(dir, "srun")); err != nil {
			continue
		}
		var list []string
		for _, name := range slurmCommands {
			if path := filepath.Join(dir, name); rootpath.Exists(path) {
				list = append(list, path)
			}
		}
		return list, dir
	}
	return nil, ""
}

// slurmCommands are all client commands of Slurm 22.05 to 26.05 but sview, which is a desktop's.
var slurmCommands = []string{
	"sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "scrontab", "scrun", "sdiag", "sgather",
	"sh5util", "sinfo", "sprio", "squeue", "sreport", "srun", "sshare", "sstat", "strigger", "swait",
}
