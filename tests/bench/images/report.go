// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// writeReport writes the table.
func writeReport(w io.Writer, s settings, compressed int64, list []*candidate) {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	fmt.Fprintf(w, "# a tree from an image: %d files, %d MiB, %d MiB compressed, %d layers\n", s.files, s.bytes>>20, compressed>>20, layers)
	fmt.Fprintf(w, "# %d CPUs, kernel %s, %s | %d rounds, shuffled, medians; memory: the largest of all\n", runtime.NumCPU(),
		unix.ByteSliceToString(uts.Release[:]), time.Now().UTC().Format("2006-01-02 15:04 UTC"), s.rounds)
	fmt.Fprintf(w, "%-17s %7s %7s %11s  %s\n", "", "wall s", "CPU s", "memory MiB", "what it is")
	for _, c := range list {
		if c.why != "" {
			fmt.Fprintf(w, "%-17s not measured: %s\n", c.name, c.why)
			continue
		}
		fmt.Fprintf(w, "%-17s %7.1f %7.1f %11.0f  %s\n", c.name, findMedian(c.wall), findMedian(c.cpu), slices.Max(c.memory), c.about)
	}
}

func findMedian(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
