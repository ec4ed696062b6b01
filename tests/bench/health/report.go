// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// writeReport writes the table, and how far the aims are met.
func writeReport(w io.Writer, list []*candidate, rounds int, before string) {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	fmt.Fprintf(w, "\n# what a health check costs a healthy node: %d CPUs, kernel %s, %s\n", runtime.NumCPU(),
		unix.ByteSliceToString(uts.Release[:]), time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(w, "# %d rounds, shuffled, medians, ratios of pairs | CPU: user and system of all processes | %d processes | load %s -> %s\n",
		rounds, countProcesses(), before, readLoad())
	fmt.Fprintf(w, "%-9s %8s %7s %7s %8s %8s %7s %7s %8s  %s\n", "", "wall ms", "p10", "p90", "to nhc", "CPU ms", "p10", "p90", "to nhc", "what it is")
	nhc := findCandidate(list, "nhc")
	for _, c := range list {
		if c.why != "" {
			fmt.Fprintf(w, "%-9s not measured: %s\n", c.name, c.why)
			continue
		}
		fmt.Fprintf(w, "%-9s %8.1f %7.1f %7.1f %8s %8.1f %7.1f %7.1f %8s  %s\n", c.name,
			findQuantile(c.wall, 0.5), findQuantile(c.wall, 0.1), findQuantile(c.wall, 0.9), medianRatio(c.wall, nhc.wall),
			findQuantile(c.cpu, 0.5), findQuantile(c.cpu, 0.1), findQuantile(c.cpu, 0.9), medianRatio(c.cpu, nhc.cpu), c.about)
	}
	gojail := findCandidate(list, "gojail")
	if gojail.why != "" {
		return
	}
	fmt.Fprintf(w, "\naim: at most 25 ms CPU: %s\n", formatVerdict(findQuantile(gojail.cpu, 0.5) <= 25))
	if slow := findCandidate(list, "one slow"); slow.why == "" {
		wall, bound := findQuantile(slow.wall, 0.5), milliseconds(slowest)+2*findQuantile(gojail.wall, 0.5)
		fmt.Fprintf(w, "aim: wall time bounded by the slowest check: %s, %.0f ms with one that takes %.0f ms (up to %.0f ms)\n",
			formatVerdict(wall <= bound), wall, milliseconds(slowest), bound)
	}
	for _, other := range []struct{ name, how string }{{"nhc+log", "with its log checks, as gojail's"}, {"nhc", "without its log checks"}} {
		if n := findCandidate(list, other.name); n.why == "" {
			fmt.Fprintf(w, "aim: at most a third of NHC's CPU, %s: %s\n", other.how, formatVerdict(3*findQuantile(gojail.cpu, 0.5) <= findQuantile(n.cpu, 0.5)))
		}
	}
}

// findCandidate returns the candidate of that name, or one that is not measured.
func findCandidate(list []*candidate, name string) *candidate {
	i := slices.IndexFunc(list, func(c *candidate) bool { return c.name == name })
	if i < 0 {
		return &candidate{name: name, why: "does not exist"}
	}
	return list[i]
}

func formatVerdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

// findQuantile interpolates between the two nearest values.
func findQuantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// medianRatio returns the median of the ratios of pairs, or "-" without pairs.
func medianRatio(of, base []float64) string {
	if len(of) != len(base) || len(of) == 0 {
		return "-"
	}
	var ratios []float64
	for i := range of {
		ratios = append(ratios, of[i]/base[i])
	}
	return fmt.Sprintf("%.2f", findQuantile(ratios, 0.5))
}

func readLoad() string {
	text, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// countProcesses returns the number of processes, each of which some checks read.
func countProcesses() int {
	entries, _ := os.ReadDir("/proc")
	return len(slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.Trim(e.Name(), "0123456789") != "" }))
}
