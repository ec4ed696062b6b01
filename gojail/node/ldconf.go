// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/slurmconf"
)

// ldConf is the configuration of the node's dynamic linker.
const ldConf = "/etc/ld.so.conf"

// readLdDirs returns the directories that an ld.so.conf and the files that it includes name, as
// ldconfig(8) reads them.
func readLdDirs(path string, depth int) []string {
	var dirs []string
	for _, line := range ConfLines(path) {
		words := strings.Fields(line)
		if words[0] == "include" && depth < 8 {
			for _, pattern := range words[1:] {
				files, _ := filepath.Glob(slurmconf.Beside(path, pattern))
				for _, file := range files {
					dirs = append(dirs, readLdDirs(file, depth+1)...)
				}
			}
		} else if dir, _, _ := strings.Cut(line, "="); filepath.IsAbs(dir) { // DIR=TYPE, of old C libraries
			dirs = append(dirs, filepath.Clean(strings.TrimSpace(dir)))
		}
	}
	return dirs
}

// findForeignDirs returns the linker's directories that do not lie below a directory of HostDirs.
func findForeignDirs(path string) []string {
	dirs := slices.DeleteFunc(readLdDirs(path, 0), func(dir string) bool {
		return slices.Contains(config.HostDirs, config.FirstName(dir)) || config.Under(dir, "/tmp") ||
			!rootpath.Exists(dir) || rootpath.CheckClean(dir) != nil
	})
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
