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
	"github.com/gojail/gojail/internal/slurm"
)

// SlurmWords returns words that identify the node's Slurm: an upgrade replaces the files, while a
// template still has the old files mounted.
func SlurmWords(c *config.Config) []string {
	var list []string
	commands, _ := FindCommands(c)
	for _, path := range append(commands, filepath.Join(c.Slurm.Conf, "plugstack.conf")) {
		list = append(list, FileWords(path)...)
	}
	return list
}

// FileWords returns a word that changes when a file is replaced, or nothing if the file does not exist.
func FileWords(path string) []string {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil
	}
	return []string{fmt.Sprintf("%s %d %d %d", path, st.Dev, st.Ino, st.Mtim.Sec)}
}

// Device is a device node of the host, or a directory of them, that a pattern matches.
type Device struct {
	Path string
	Rdev uint64 // 0 for a directory
}

// FindDevices returns the devices and directories on this node that the patterns match.
func FindDevices(globs []string) []Device {
	var list []Device
	for _, glob := range globs {
		matches, _ := filepath.Glob(glob) // Load has checked the pattern
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

// FindSlurmCommand returns the path of a command of Slurm, below slurm.host first, or "".
func FindSlurmCommand(c *config.Config, name string) string {
	for _, dir := range slurm.ListDirs("bin", c.Slurm.Host) {
		if path := filepath.Join(dir, name); rootpath.Exists(path) {
			return path
		}
	}
	return ""
}

// FindCommands returns the paths of Slurm's client commands, and their directory, the first that has srun.
func FindCommands(c *config.Config) ([]string, string) {
	for _, dir := range slurm.ListDirs("bin", c.Slurm.Host) {
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

// slurmCommands are all client commands of Slurm 22.05 to 26.05 except sview, which needs a desktop.
var slurmCommands = []string{
	"sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "scrontab", "scrun", "sdiag",
	"sgather",
	"sh5util", "sinfo", "sprio", "squeue", "sreport", "srun", "sshare", "sstat", "strigger", "swait",
}
