// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/hostlist"
)

// Jobs are the numbers of jobs. The tasks of a job array count one by one, even while they are still one record.
type Jobs struct {
	States     map[string]int      // by state
	Partitions map[InPartition]int // by partition and state; a job that waits in several partitions counts in each
	Pending    map[InPartition]int // by partition and reason
	Nodes      map[string]int      // running jobs by node
	Odd        Odd

	partitions map[string]bool // partitions that are counted separately
}

// InPartition is a state or a reason of jobs in a partition.
type InPartition struct{ Partition, Word string }

// jobColumns are the columns of squeue for Jobs.add: state, partitions, nodes, tasks, reason. The reason is last,
// because it may be any text.
var jobColumns = []string{"%T", "%P", "%N", "%K", "%r"}

// JobStates are the states of jobs (squeue(1), JOB STATE CODES).
var JobStates = []string{
	"boot_fail", "cancelled", "completed", "completing", "configuring", "deadline", "expediting", "failed", "node_fail",
	"out_of_memory",
	"pending", "preempted", "requeue_fed", "requeue_hold", "requeued", "resizing", "resv_del_hold", "revoked",
	"running",
	"signaling", "special_exit", "stage_out", "stopped", "suspended", "timeout",
}

// Other is the name of the entry for everything beyond the limits of a list.
const Other = "other"

const (
	partitionsMost = 256 // partitions that are counted separately
	reasonsMost    = 50  // reasons that are counted separately, the most frequent ones
	countsMost     = 1 << 16
)

func newJobs() *Jobs {
	return &Jobs{
		States: map[string]int{}, Partitions: map[InPartition]int{}, Pending: map[InPartition]int{},
		Nodes:      map[string]int{},
		partitions: map[string]bool{},
	}
}

// add counts the job of a row of jobColumns. If its nodes cannot be parsed, it still counts the job, but on no node.
func (j *Jobs) add(row []string) error {
	state := strings.ToLower(row[0])
	if state == "" {
		return errors.New("a job does not have a state")
	}
	if !slices.Contains(JobStates, state) {
		state = Other
	}
	tasks, err := countTasks(row[3])
	if err != nil {
		return err
	}
	j.States[state] += tasks
	for name := range strings.SplitSeq(row[1], ",") {
		if name = toLabel(name); !j.partitions[name] {
			if len(j.partitions) >= partitionsMost {
				name = Other
			}
			j.partitions[name] = true
		}
		j.Partitions[InPartition{name, state}] += tasks
		if state == "pending" {
			addReason(j.Pending, InPartition{name, toReason(row[4])}, tasks)
		}
	}
	if state == "running" {
		return j.addNodes(row[2])
	}
	return nil
}

// finish limits the lists that were read.
func (j *Jobs) finish(odd Odd) *Jobs {
	j.limitReasons()
	j.Odd = odd
	return j
}

// toReason returns the word of a reason: "ReqNodeNotAvail" of "ReqNodeNotAvail, UnavailableNodes:n[1-3]".
func toReason(text string) string {
	text, _, _ = strings.Cut(text, ",")
	text, _, _ = strings.Cut(text, ":")
	if text = strings.Trim(toWord(strings.Trim(text, "()")), "_"); text == "" {
		return "None"
	}
	return text
}

func addReason(counts map[InPartition]int, key InPartition, tasks int) {
	if _, known := counts[key]; !known && len(counts) >= countsMost {
		key.Word = Other
	}
	counts[key] += tasks
}

// limitReasons keeps the most frequent reasons and replaces the others by one.
func (j *Jobs) limitReasons() {
	total := map[string]int{}
	for key, count := range j.Pending {
		total[key.Word] += count
	}
	if len(total) <= reasonsMost {
		return
	}
	words := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a, b))
	})
	few := map[InPartition]int{}
	for key, count := range j.Pending {
		if slices.Contains(words[reasonsMost:], key.Word) {
			key.Word = Other
		}
		few[key] += count
	}
	j.Pending = few
}

// countTasks returns the number of tasks of a record: 5 for "1-4,7%2", 1 for a job that is not an array.
func countTasks(text string) (int, error) {
	text, _, _ = strings.Cut(text, "%")
	if text == "" || text == "N/A" {
		return 1, nil
	}
	count := 0
	for part := range strings.SplitSeq(text, ",") {
		part, stepText, stepped := strings.Cut(part, ":")
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, firstErr := strconv.ParseUint(low, 10, 31)
		last, lastErr := strconv.ParseUint(high, 10, 31)
		step, stepErr := uint64(1), error(nil)
		if stepped {
			step, stepErr = strconv.ParseUint(stepText, 10, 31)
		}
		if cmp.Or(firstErr, lastErr, stepErr) != nil || last < first || step == 0 {
			return 0, fmt.Errorf("%.100q is not a list of tasks", text)
		}
		count += int((last-first)/step) + 1
	}
	return count, nil
}

// addNodes counts a job on each of its nodes.
func (j *Jobs) addNodes(text string) error {
	if text == "" {
		return nil
	}
	if !strings.ContainsAny(text, "[,") {
		j.addNode(toLabel(text))
		return nil
	}
	list, err := hostlist.Parse(text)
	if err != nil {
		return err
	}
	for i := range list.Len() {
		j.addNode(list.Name(i))
	}
	return nil
}

func (j *Jobs) addNode(name string) {
	if _, known := j.Nodes[name]; known || len(j.Nodes) < nodesMost {
		j.Nodes[name]++
	}
}
