// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// sections are the sections of sdiag's output, by the beginning of their first line, with the names in JSON of their
// values.
var sections = []struct {
	begin  string
	values map[string]string
}{
	{"Main schedule statistics", map[string]string{
		"Last cycle": "schedule_cycle_last", "Max cycle": "schedule_cycle_max", "Total cycles": "schedule_cycle_total",
		"Mean cycle":       "schedule_cycle_mean",
		"Mean depth cycle": "schedule_cycle_mean_depth", "Last queue length": "schedule_queue_length",
	}},
	{"Main scheduler exit", map[string]string{
		"End of job queue":        "schedule_exit/end_job_queue",
		"Hit default_queue_depth": "schedule_exit/default_queue_depth",
		"Hit sched_max_job_start": "schedule_exit/max_job_start", "Blocked on licenses": "schedule_exit/licenses",
		"Hit max_rpc_cnt": "schedule_exit/max_rpc_cnt", "Timeout (max_sched_time)": "schedule_exit/max_sched_time",
	}},
	{"Backfilling stats", map[string]string{
		"Total backfilled jobs (since last slurm start)":       "bf_backfilled_jobs",
		"Total backfilled jobs (since last stats cycle start)": "bf_last_backfilled_jobs",
		"Total backfilled heterogeneous job components":        "bf_backfilled_het_jobs",
		"Total cycles":    "bf_cycle_counter",
		"Last cycle when": "bf_when_last_cycle",
		"Last cycle":      "bf_cycle_last", "Max cycle": "bf_cycle_max", "Mean cycle": "bf_cycle_mean",
		"Last depth cycle":             "bf_last_depth",
		"Last depth cycle (try sched)": "bf_last_depth_try", "Depth Mean": "bf_depth_mean",
		"Depth Mean (try depth)": "bf_depth_mean_try",
		"Last queue length":      "bf_queue_len", "Queue length mean": "bf_queue_len_mean",
		"Last table size": "bf_table_size", "Mean table size": "bf_table_size_mean",
	}},
	{"Backfill exit", map[string]string{
		"End of job queue": "bf_exit/end_job_queue", "Hit bf_max_job_start": "bf_exit/bf_max_job_start",
		"Hit bf_max_job_test":                       "bf_exit/bf_max_job_test",
		"System state changed":                      "bf_exit/state_changed",
		"Hit table size limit (bf_node_space_size)": "bf_exit/bf_node_space_size",
		"Timeout (bf_max_time)":                     "bf_exit/bf_max_time",
	}},
	{"Remote Procedure Call statistics by message type", nil},
	{"Remote Procedure Call statistics by user", nil},
	{"Pending RPC statistics", nil},
}

// firstSection has the names of the values before the first section.
var firstSection = map[string]string{
	"Server thread count": "server_thread_count", "Agent queue size": "agent_queue_size", "Agent count": "agent_count",
	"Agent thread count": "agent_thread_count", "DBD Agent queue size": "dbd_agent_queue_size",
	"Jobs submitted": "jobs_submitted",
	"Jobs started":   "jobs_started", "Jobs completed": "jobs_completed", "Jobs canceled": "jobs_canceled",
	"Jobs failed": "jobs_failed",
}

// knownValues are the names in JSON of all values of sections and firstSection.
func knownValues() map[string]bool {
	known := map[string]bool{sinceKey: true}
	for _, key := range firstSection {
		known[key] = true
	}
	for _, s := range sections {
		for _, key := range s.values {
			known[key] = true
		}
	}
	return known
}

var (
	rpcLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\t(\S.*?)\s*\(\s*\d+\)\s+count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)(?:\s|$)`)
	})
	timeValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\((\d+)\)$`) })
)

const (
	sinceLine = "Data since"
	sinceKey  = "req_time_start"
)

// diagReader is a position in the output of sdiag.
type diagReader struct {
	*Diag
	values       map[string]string // names of the section's values
	rpcs         *[]RPC            // list for the section's RPCs; nil: it has none
	types, users map[string]int
	known        int // number of lines that were recognized
}

// readDiagText reads the output of sdiag. It skips lines that it does not know, and values that are not unsigned
// numbers.
func readDiagText(r io.Reader) (*Diag, error) {
	d := &diagReader{Diag: &Diag{Values: map[string]float64{}}, values: firstSection, types: map[string]int{},
		users: map[string]int{}}
	err := eachLine(r, d.readLine)
	if err == nil && d.known == 0 {
		err = errors.New("there are no statistics in it")
	}
	return d.finish(), err
}

func (d *diagReader) readLine(line string) {
	for _, s := range sections {
		if strings.HasPrefix(line, s.begin) {
			d.values, d.rpcs = s.values, nil
			switch {
			case strings.HasSuffix(s.begin, "by message type"):
				d.rpcs = &d.Types
			case strings.HasSuffix(s.begin, "by user"):
				d.rpcs = &d.Users
			}
			return
		}
	}
	text := strings.TrimSpace(line)
	name, value, _ := strings.Cut(text, ":")
	switch {
	case strings.HasPrefix(line, sinceLine):
		d.readValue(sinceKey, strings.TrimPrefix(text, sinceLine), line)
	case d.rpcs != nil && text != "":
		d.readRPC(line)
	case d.values[name] != "":
		d.readValue(d.values[name], value, line)
	}
}

// readValue reads a value, which may be a time with seconds since 1970 in parentheses.
func (d *diagReader) readValue(key, text, line string) {
	d.known++
	text = strings.TrimSpace(text)
	if m := timeValue().FindStringSubmatch(text); m != nil {
		if text = m[1]; text == "0" {
			return
		}
	}
	if strings.EqualFold(text, "N/A") { // there was no cycle yet
		return
	}
	if value, err := strconv.ParseUint(text, 10, 64); err == nil && isValue(float64(value)) {
		d.Values[key] = float64(value)
	} else {
		d.Odd.add("not an unsigned number", line)
	}
}

func (d *diagReader) readRPC(line string) {
	var r RPC
	m := rpcLine().FindStringSubmatch(line)
	if m != nil {
		r.Name = m[1]
		r.Count, _ = strconv.ParseFloat(m[2], 64)
		r.Microseconds, _ = strconv.ParseFloat(m[3], 64)
	}
	if m == nil || !isValue(r.Count) || !isValue(r.Microseconds) {
		d.Odd.add("not the statistics of an RPC", line)
		return
	}
	seen := d.types
	if d.rpcs == &d.Users {
		seen = d.users
	}
	*d.rpcs = addRPC(*d.rpcs, seen, r)
}
