// SPDX-License-Identifier: Apache-2.0

package state

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
)

// GPU is a GPU that steps of a job got in a jail, by Slurm's index.
type GPU struct {
	Jail  string
	Index int
}

// GPUs returns the GPUs of a job as its steps noted them, each once, with the first jail that got it.
func (s *State) GPUs(job string) ([]GPU, error) {
	text, err := readNotes(filepath.Join(s.JobDir(job), contract.GPUsFile))
	var gpus []GPU
	for line := range strings.Lines(text) {
		jail, list, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		for _, index := range parseIndexes(list) {
			if !slices.ContainsFunc(gpus, func(g GPU) bool { return g.Index == index }) {
				gpus = append(gpus, GPU{jail, index})
			}
		}
	}
	return gpus, err
}

// parseIndexes parses a list such as "0,2,4-7", as spank/plugin/gpus.c does, without numbers that no node has.
func parseIndexes(list string) (indexes []int) {
	for word := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(word, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last >= contract.GpusMax {
			continue
		}
		for i := first; i <= last; i++ {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
