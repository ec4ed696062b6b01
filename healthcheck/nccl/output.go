// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// testOutput is the output of all_reduce_perf (src/util.cu of nccl-tests: writeDeviceReport,
// writeResultHeader, writeBenchmarkLineBody, writeResultFooter).
type testOutput struct {
	models []string          // models of the GPUs, in the order of their ranks
	BusBW  map[int64]float64 // GB/s by the size of the message in bytes; the best of several figures
	wrong  bool              // whether a result was wrong, by the column #wrong or by the footer
	Failed bool              // whether the bandwidth is below NCCL_TESTS_MIN_BW of the job's environment
	// NVLink domains of the GPUs, as NCCL logs them: cluster UUID and clique
	domains []string
}

// patterns are the regular expressions for lines of the output. They are compiled on demand,
// since each run of the health check loads this package.
type patterns struct{ label, rank, outside, average, domain *regexp.Regexp }

var compiled = sync.OnceValue(func() patterns {
	return patterns{
		label: regexp.MustCompile(`^ *[0-9]+: ?`), // of srun --label
		rank: regexp.MustCompile(`^#\s+Rank\s+([0-9]+)\s+(?:Group\s+[0-9]+\s+)?Pid\s+[0-9]+` +
			`\s+on\s+\S+\s+device\s+[0-9]+\s+\[[^\]]*\]\s+(\S.*)$`),
		outside: regexp.MustCompile(`^#\s+Out of bounds values\s+:\s+([0-9]+)\s+(OK|FAILED)$`),
		average: regexp.MustCompile(`^#\s+Avg bus bandwidth\s+:\s+\S+(?:\s+(OK|FAILED))?$`),
		// fillInfo in src/init.cc of NCCL
		domain: regexp.MustCompile(` NCCL INFO MNNVL busId \S+ fabric UUID (\S+ cliqueId \S+) state `),
	}
})

// parseOutput parses the output of one run, which may include lines of other programs.
// Incomplete output is an error: it proves nothing about the node.
func parseOutput(text string) (*testOutput, error) {
	o := &testOutput{BusBW: map[int64]float64{}}
	is := compiled()
	var columns []string
	bounds, average := 0, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(is.label.ReplaceAllString(strings.TrimRight(line, "\r\n"), ""))
		if m := is.rank.FindStringSubmatch(line); m != nil {
			if m[1] != strconv.Itoa(len(o.models)) {
				return nil, fmt.Errorf("rank %.10s comes after %d others: the processes are not connected (was "+
					"all_reduce_perf built with MPI?)", m[1], len(o.models))
			}
			o.models = append(o.models, strings.TrimSpace(m[2]))
		} else if m := is.outside.FindStringSubmatch(line); m != nil {
			bounds++
			o.wrong = o.wrong || m[2] == "FAILED" || strings.Trim(m[1], "0") != ""
		} else if m := is.average.FindStringSubmatch(line); m != nil {
			average++
			o.Failed = o.Failed || m[1] == "FAILED"
		} else if m := is.domain.FindStringSubmatch(line); m != nil {
			if !slices.Contains(o.domains, m[1]) {
				o.domains = append(o.domains, m[1])
			}
		} else if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && fields[1] == "size" {
			columns = fields[1:]
		} else if err := o.parseRow(columns, fields); err != nil {
			return nil, err
		}
	}
	switch {
	case bounds > 1 || average > 1:
		return nil, errors.New("the output has results of more than one run")
	case len(o.models) == 0 && bounds == 0:
		return nil, errors.New("it is not output of all_reduce_perf")
	case bounds == 0 || average == 0:
		return nil, errors.New("the output is truncated")
	case len(o.models) == 0 || len(o.BusBW) == 0:
		return nil, errors.New("the output has no GPUs or no figures")
	}
	return o, nil
}

// parseRow parses one line of the table; it ignores any other line.
func (o *testOutput) parseRow(columns, fields []string) error {
	if len(columns) == 0 || len(fields) < len(columns) {
		return nil
	}
	size, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || size <= 0 {
		return nil
	}
	if !slices.Contains(columns, "busbw") || !slices.Contains(columns, "#wrong") {
		return errors.New("the table has no columns busbw and #wrong; use nccl-tests 2.13 or later")
	}
	for i, column := range columns {
		if column != "busbw" && column != "#wrong" {
			continue
		}
		value, err := strconv.ParseFloat(fields[i], 64)
		switch {
		case column == "#wrong" && fields[i] == "N/A": // results not checked, all_reduce_perf -c 0
		case err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0:
			return fmt.Errorf("the line of %d bytes has %.20q for %s", size, fields[i], column)
		case column == "#wrong":
			o.wrong = o.wrong || value != 0
		default:
			o.BusBW[size] = max(o.BusBW[size], value)
		}
	}
	return nil
}
