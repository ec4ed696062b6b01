// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// sections are those of sdiag's output, by the beginning of their first line, with the names in JSON of their values.
var sections = []struct {
	begin  string
	values map[string]string
}{
	{"Main schedule statistics", map[string]string{
		"Last cycle": "schedule_cycle_last", "Max cycle": "schedule_cycle_max", "Total cycles": "schedule_cycle_total", "Mean cycle": "schedule_cycle_mean",
		"Mean depth cycle": "schedule_cycle_mean_depth", "Last queue length": "schedule_queue_length",
	}},
	{"Main scheduler exit", map[string]string{
		"End of job queue": "schedule_exit/end_job_queue", "Hit default_queue_depth": "schedule_exit/default_queue_depth",
		"Hit sched_max_job_start": "schedule_exit/max_job_start", "Blocked on licenses": "schedule_exit/licenses",
		"Hit max_rpc_cnt": "schedule_exit/max_rpc_cnt", "Timeout (max_sched_time)": "schedule_exit/max_sched_time",
	}},
	{"Backfilling stats", map[string]string{
		"Total backfilled jobs (since last slurm start)": "bf_backfilled_jobs", "Total backfilled jobs (since last stats cycle start)": "bf_last_backfilled_jobs",
		"Total backfilled heterogeneous job components": "bf_backfilled_het_jobs", "Total cycles": "bf_cycle_counter", "Last cycle when": "bf_when_last_cycle",
		"Last cycle": "bf_cycle_last", "Max cycle": "bf_cycle_max", "Mean cycle": "bf_cycle_mean", "Last depth cycle": "bf_last_depth",
		"Last depth cycle (try sched)": "bf_last_depth_try", "Depth Mean": "bf_depth_mean", "Depth Mean (try depth)": "bf_depth_mean_try",
		"Last queue length": "bf_queue_len", "Queue length mean": "bf_queue_len_mean", "Last table size": "bf_table_size", "Mean table size": "bf_table_size_mean",
	}},
	{"Backfill exit", map[string]string{
		"End of job queue": "bf_exit/end_job_queue", "Hit bf_max_job_start": "bf_exit/bf_max_job_start", "Hit bf_max_job_test": "bf_exit/bf_max_job_test",
		"System state changed": "bf_exit/state_changed", "Hit table size limit (bf_node_space_size)": "bf_exit/bf_node_space_size",
		"Timeout (bf_max_time)": "bf_exit/bf_max_time",
	}},
	{"Remote Procedure Call statistics by message type", nil},
	{"Remote Procedure Call statistics by user", nil},
	{"Pending RPC statistics", nil},
}

// firstSection has the values before the first section.
var firstSection = map[string]string{
	"Server thread count": "server_thread_count", "Agent queue size": "agent_queue_size", "Agent count": "agent_count",
	"Agent thread count": "agent_thread_count", "DBD Agent queue size": "dbd_agent_queue_size", "Jobs submitted": "jobs_submitted",
	"Jobs started": "jobs_started", "Jobs completed": "jobs_completed", "Jobs canceled": "jobs_canceled", "Jobs failed": "jobs_failed",
}

var (
	rpcLine   = regexp.MustCompile(`^\t(\S.*?)\s*\(\s*\d+\)\s+count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)`)
	timeValue = regexp.MustCompile(`\((\d+)\)$`)
	sinceLine = "Data since"
)

// readDiagText reads the output of sdiag. Lines that are not known are skipped.
func readDiagText(r io.Reader) (*Diag, error) {
	d := &Diag{Values: map[string]float64{}}
	values, begin := firstSection, ""
	types, users := map[string]int{}, map[string]int{}
	lines := newScanner(r)
next:
	for lines.Scan() {
		line := lines.Text()
		for _, s := range sections {
			if strings.HasPrefix(line, s.begin) {
				values, begin = s.values, s.begin
				continue next
			}
		}
		switch {
		case strings.HasPrefix(line, sinceLine):
			if m := timeValue.FindStringSubmatch(line); m != nil {
				d.Values["req_time_start"], _ = strconv.ParseFloat(m[1], 64)
			}
		case strings.HasSuffix(begin, "by message type"):
			if rpc, is := readRPC(line); is {
				d.Types = addRPC(d.Types, types, rpc)
			}
		case strings.HasSuffix(begin, "by user"):
			if rpc, is := readRPC(line); is {
				d.Users = addRPC(d.Users, users, rpc)
			}
		default:
			if err := d.readValue(line, values); err != nil {
				return nil, err
			}
		}
	}
	if _, found := d.Values["server_thread_count"]; !found && lines.Err() == nil {
		return nil, errors.New("there is no Server thread count")
	}
	return d.finish(), lines.Err()
}

// readValue reads a line of the form "name: number" if its name is known.
func (d *Diag) readValue(line string, values map[string]string) error {
	name, text, found := strings.Cut(strings.TrimSpace(line), ":")
	key := values[name]
	if !found || key == "" {
		return nil
	}
	text = strings.TrimSpace(text)
	if m := timeValue.FindStringSubmatch(text); m != nil {
		text = m[1]
		if text == "0" {
			text = "N/A"
		}
	}
	if text == "N/A" {
		return nil // there was no cycle yet
	}
	value, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return fmt.Errorf("%.100q is not a number", line)
	}
	d.Values[key] = float64(value)
	return nil
}

func readRPC(line string) (RPC, bool) {
	m := rpcLine.FindStringSubmatch(line)
	if m == nil {
		return RPC{}, false
	}
	r := RPC{Name: m[1]}
	r.Count, _ = strconv.ParseFloat(m[2], 64)
	r.Microseconds, _ = strconv.ParseFloat(m[3], 64)
	return r, true
}
