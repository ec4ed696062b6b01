// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// readSite returns the lines of the site file, which the launches on this node use, or none if it cannot be read as a
// whole.
func (s *State) readSite() []string {
	text, err := os.ReadFile(filepath.Join(s.path, contract.SiteFile))
	if err != nil || !strings.HasSuffix(string(text), "\nend\n") {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// Scratch returns the scratch directory from the site file, or "" if no site file can be read.
func (s *State) Scratch() string {
	for _, line := range s.readSite() {
		if path, ok := strings.CutPrefix(line, "scratch "); ok && rootpath.CheckClean(path) == nil {
			return path
		}
	}
	return ""
}

// GPUNodes returns the device nodes of each of Slurm's GPUs in each jail, from the site file.
func (s *State) GPUNodes() map[GPU][]string {
	nodes, jail := map[GPU][]string{}, ""
	for _, line := range s.readSite() {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "jail":
			jail = rest
		case "gpu":
			number, path, _ := strings.Cut(rest, " ")
			if index, err := strconv.Atoi(number); err == nil {
				nodes[GPU{jail, index}] = append(nodes[GPU{jail, index}], path)
			}
		}
	}
	return nodes
}
