// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printNode returns a record as scontrol show node prints it (slurm_sprint_node_table), with texts that people wrote.
func printNode(name, reason, comment, extra string) string {
	text := "NodeName=" + name + " Arch=x86_64 CoresPerSocket=1 \n   CPUAlloc=1 CPUEfctv=4 CPUTot=4 CPULoad=0.10\n   AvailableFeatures=a b=c\n" +
		"   ActiveFeatures=a b=c\n   Gres=gpu:2\n   GresUsed=gpu:1(IDX:0)\n   NodeAddr=n1 NodeHostName=n1 Version=24.11.5\n   OS=Linux 6.1 #1 SMP x=y @0 \n" +
		"   State=IDLE ThreadsPerCore=1 Owner=N/A MCS_label=N/A\n   Partitions=main \n   CfgTRES=cpu=4\n   AllocTRES=\n   CurrentWatts=0 AveWatts=0"
	for i, line := range strings.FieldsFunc(reason, func(r rune) bool { return r == '\n' }) {
		if i == 0 {
			text += "\n   Reason=" + line + " [root@2026-11-25T13:26:57]"
		} else {
			text += "\n          " + line
		}
	}
	if comment != "" {
		text += "\n   Comment=" + comment
	}
	if extra != "" {
		text += "\n   Extra=" + extra
	}
	return text + "\n   ReservationName=r1\n\n"
}

// oddTexts are texts of users and administrators, of which none costs anything.
var oddTexts = []string{
	`{"a":1,` + "\n" + `"b":2}`, "kept for Reason=reboot later", "kept for\n   Reason=reboot [bob@2026-01-01T00:00:00]", " Reason=x", "=", "|", "a|b|c", `"`, "'", "N/A",
	"(null)", "none", "-1", "4294967294", "infinite", "NO_VAL", "1.5", "State=DOWN", "a\n   State=DOWN ThreadsPerCore=1", "a\n   Extra=b\n   State=DOWN",
	"NodeName=n2", "a\nNodeName=n2 State=DOWN", "a\n\nNodeName=n2 State=DOWN CPUTot=4 CPUAlloc=4", "a\n\nNodeName=n9 Arch=x\n", "Ünï ☃", "\xff\xfe", "\x01\x1b[31m\x7f", "\r", "\t",
	"a\n\n\nb", "[root@2026-11-25T13:26:57]", "x [bob@2025-01-01T00:00:00] y", strings.Repeat("long ", 1<<18), strings.Repeat("a\n", 1000),
	"          deep", "a\n   CfgTRES=cpu=1\n   Reason=b", "@", "@\x1fRUNNING\x1fmain\x1fn1\x1fN/A\x1fNone", "\x1f", "%r", "No nodes in the system",
}

// TestTextsOfNodes: a text of a node is its comment, and never the reason or the state of a node; a reason is a reason whatever is in it.
func TestTextsOfNodes(t *testing.T) {
	for _, text := range oddTexts {
		for what, printed := range map[string]string{
			"comment": printNode("n1", "", text, ""), "extra": printNode("n1", "", "", text), "both": printNode("n1", "", text, text),
			"reason": printNode("n1", text, "", ""), "reason and comment": printNode("n1", text, text, text),
		} {
			n, err := readNodesText(strings.NewReader(printed + printNode("n2", "disk", "", "")))
			name := fmt.Sprintf("%s %.60q", what, text)
			require.NoError(t, err, name)
			forged := strings.Count(text, "\n\nNodeName=") // a record without a state, whose only trace is that it is counted
			n1 := n.List[slices.IndexFunc(n.List, func(n Node) bool { return n.Name == "n1" })]
			assert.Equal(t, "idle [main] 4 1 24.11.5", fmt.Sprint(n1.State, " ", n1.Partitions, " ", n1.CPUs, " ", n1.CPUsAllocated, " ", n1.Version), name)
			assert.Equal(t, []GPUs{{"", 2, 1}}, n1.GPUs, name)
			want := ""
			if strings.HasPrefix(what, "reason") {
				want = toLabel(strings.TrimSpace(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "\n")))
			}
			if want != "" {
				assert.Equal(t, "root 2026", fmt.Sprint(n1.ReasonUser, " ", n1.ReasonTime.Year()), name)
			}
			assert.Equal(t, want, n1.Reason, name)
			if forged == 0 || what == "reason" { // in a reason, scontrol indents it
				assert.Zero(t, n.Odd.Count, "%s: %s", name, n.Odd.First)
				assert.Len(t, n.List, 2, name)
			}
			record, err := readRecord(printed, "n1")
			require.NoError(t, err, name)
			assert.Equal(t, want, toLabel(strings.TrimSpace(record.Reason)), name)
			assert.Equal(t, "IDLE", record.Field("State"), name)
		}
	}
}

// TestOddNodes: a record that is not whole costs its own series, and what can be read of it stays.
func TestOddNodes(t *testing.T) {
	whole := printNode("n1", "", "", "")
	for change, want := range map[[2]string]string{
		{"CPUTot=4", "CPUTot=many"}:                             "idle [main] 0 1",
		{"CPUTot=4", "CPUTot="}:                                 "idle [main] 0 1",
		{"CPUTot=4", "CPUTot=-4"}:                               "idle [main] 0 1",
		{"CPUTot=4", "CPUTot=4.5"}:                              "idle [main] 0 1",
		{"CPUTot=4", "CPUTot=4294967294"}:                       "idle [main] 0 1",
		{"CPUTot=4", "CPUTot=N/A"}:                              "idle [main] 0 1",
		{"CPUTot=4", "CPUTot=" + huge}:                          "idle [main] 0 1",
		{"CPUAlloc=1 ", ""}:                                     "idle [main] 4 0",
		{"Gres=gpu:2", "Gres=gpu:many:x"}:                       "idle [main] 4 1",
		{"Gres=gpu:2", "Gres=gpu:-1"}:                           "idle [main] 4 1",
		{"=a b=c\n", "=a\n   Gres=b\n"}:                         "idle [main] 4 1",
		{"Partitions=main", "Partitions=main\n   Partitions=b"}: "idle [] 4 1",
		{"State=IDLE", "State="}:                                "",
		{"State=IDLE", "Estate=IDLE"}:                           "",
		{"State=IDLE", "State=(null)"}:                          "",
		{"NodeName=n1", "NodeName="}:                            "",
		{"=a b=c\n", "=a\n   State=DOWN\n"}:                     "", // features of two lines
		{"=a b=c\n", "=a\n   State=DOWN\n   Reason=b\n"}:        "",
		{whole, whole + whole}:                                  "", // which of them is the node?
	} {
		text := strings.Replace(whole, change[0], change[1], 1)
		require.NotEqual(t, whole, text, change)
		n, err := readNodesText(strings.NewReader(printNode("n0", "", "", "") + text + printNode("n2", "", "", "")))
		require.NoError(t, err, change)
		got, others := describeN1(n.List)
		assert.Equal(t, want, got, change)
		assert.Equal(t, 2, others, change)
		assert.Equal(t, 1, n.Odd.Count, "%q %s", change, n.Odd.First)
	}
	for text, want := range map[string]int{"No nodes in the system\n": 0, strings.Replace(whole, "State=", "X=", 1): 1} {
		n, err := readNodesText(strings.NewReader(text))
		assert.NoError(t, err)
		assert.Equal(t, want, n.Odd.Count)
		assert.Empty(t, n.List)
	}
	for _, text := range []string{"", "\n", "slurm_load_node error", "Node n1 not found"} {
		_, err := readNodesText(strings.NewReader(text))
		assert.Error(t, err, text)
		_, err = readRecord(text, "n1")
		assert.ErrorContains(t, err, "did not show the node n1", text)
	}
	_, err := readRecord(printNode("n2", "", "", "")+whole, "n1")
	assert.ErrorContains(t, err, "did not show the node n1", "a text of another node's")
}

// describeN1 returns what a test changes of the node n1, "" if it is not in the list, and the number of other nodes.
func describeN1(list []Node) (got string, others int) {
	for _, node := range list {
		if node.Name == "n1" {
			got = fmt.Sprint(node.State, " ", node.Partitions, " ", node.CPUs, " ", node.CPUsAllocated)
		} else {
			others++
		}
	}
	return got, others
}

// huge is a number that fits into nothing.
var huge = strings.Repeat("9", 400)

// TestOddNodesJSON is TestOddNodes for JSON.
func TestOddNodesJSON(t *testing.T) {
	const whole = `{"name":"n1","state":["IDLE"],"cpus":4,"alloc_cpus":1,"partitions":["main"],"reason":"","gres":"gpu:2","reason_changed_at":{"set":true,"number":1},"comment":"x"}`
	for change, want := range map[[2]string]string{
		{`"comment":"x"`, `"comment":"{\"a\":1,\n\"reason\":\"b\"}\u0001\ud800"`}: "+idle [main] 4 1",
		{`"comment":"x"`, "\"comment\":\"\xff\xfe\""}:                             "+idle [main] 4 1",
		{`"comment":"x"`, `"comment":7`}:                                          "+idle [main] 4 1",
		{`"cpus":4`, `"cpus":"4"`}:                                                "idle [main] 0 1",
		{`"cpus":4`, `"cpus":-4`}:                                                 "idle [main] 0 1",
		{`"cpus":4`, `"cpus":4.5`}:                                                "idle [main] 0 1",
		{`"cpus":4`, `"cpus":4294967294`}:                                         "idle [main] 0 1",
		{`"cpus":4`, `"cpus":1e99`}:                                               "idle [main] 0 1",
		{`"cpus":4`, `"cpus":{"set":false}`}:                                      "idle [main] 0 1",
		{`["main"]`, `"main"`}:                                                    "idle [] 4 1",
		{`"gpu:2"`, `"gpu:x:y"`}:                                                  "idle [main] 4 1",
		{`"number":1`, `"number":"x"`}:                                            "idle [main] 4 1",
		{`["IDLE"]`, `"IDLE"`}:                                                    "",
		{`["IDLE"]`, `[]`}:                                                        "",
		{`"n1"`, `null`}:                                                          "",
		{whole, `7`}:                                                              "",
		{whole, `null`}:                                                           "",
	} {
		text := strings.Replace(whole, change[0], change[1], 1)
		n, err := readNodesJSON(strings.NewReader(`{"nodes":[` + strings.Replace(whole, "n1", "n0", 1) + "," + text + "," + strings.Replace(whole, "n1", "n2", 1) + `]}`))
		require.NoError(t, err, change)
		got, others := describeN1(n.List)
		want, good := strings.CutPrefix(want, "+")
		assert.Equal(t, want, got, change)
		assert.Equal(t, 2, others, change)
		assert.Equal(t, !good, n.Odd.Count == 1, "%q %v", change, n.Odd)
	}
}

// TestTextsOfJobs: a reason of any text is one, and the other jobs are as they are.
func TestTextsOfJobs(t *testing.T) {
	const mark = "@0123456789abcdef"
	for _, text := range oddTexts {
		j := newJobs()
		row := func(columns ...string) string { return mark + separator + strings.Join(columns, separator) + "\n" }
		odd, err := readRows(strings.NewReader(row("RUNNING", "main", "n1", "N/A", "None")+row("PENDING", "main", "", "1-3", text)+row("RUNNING", "main", "n1", "N/A", "None")),
			mark, len(jobColumns), j.add)
		require.NoError(t, err, "%.60q", text)
		j.finish(odd)
		assert.Equal(t, map[string]int{"running": 2, "pending": 3}, j.States, "%.60q", text)
		assert.Equal(t, map[string]int{"n1": 2}, j.Nodes)
		assert.Equal(t, 3, j.Pending[InPartition{"main", toReason(text)}], "%.60q", text)
		if !strings.Contains(text, separator) {
			assert.Zero(t, j.Odd.Count, j.Odd.First)
		}
	}
}

// TestOddJobs: a job that cannot be read is not counted, or not on its nodes.
func TestOddJobs(t *testing.T) {
	for bad, pending := range map[string]int{
		"PENDING": 1, "|main||N/A|None": 1, "PENDING|main||x|None": 1, "PENDING|main||-1|None": 1, "PENDING|main||3-1|None": 1, "PENDING|main||" + huge + "|None": 1,
		"PENDING|main||(null)|None": 1, "RUNNING|main|n[1-|N/A|None": 1, "RUNNING|main|n[1-99999999]|N/A|None": 1,
	} {
		j, err := readJobs(rows("PENDING|main||N/A|None\n" + bad + "\nCOMPLETED|main||N/A|None\n"))
		require.NoError(t, err, bad)
		assert.Equal(t, pending, j.States["pending"], bad)
		assert.Equal(t, 1, j.States["completed"], bad)
		assert.Empty(t, j.Nodes, bad)
		assert.Equal(t, 1, j.Odd.Count, bad)
	}
	for _, away := range []string{"slurm_load_jobs error: away", "yes\nyes", "\n"} {
		_, err := readJobs(strings.NewReader(away))
		assert.ErrorContains(t, err, "where a row should begin", away)
	}
	j, err := readJobs(strings.NewReader(""))
	require.NoError(t, err, "no job is an answer")
	assert.Zero(t, j.Odd.Count)
}

// TestOddStatistics: a value that is not an unsigned number costs that one.
func TestOddStatistics(t *testing.T) {
	const (
		asText = "Server thread count: 1\nJobs submitted: 5\nBackfilling stats\n\tLast cycle when: %[1]s\n\tTotal cycles: %[1]s\n\tMax cycle: 7\n" +
			"Remote Procedure Call statistics by user\n\troot (0) count:%[1]s ave_time:1 total_time:2\n\tx y) count:3 (7) count:2 ave_time:1 total_time:2\n"
		asJSON = `{"statistics":{"server_thread_count":1,"jobs_submitted":5,"bf_cycle_counter":%[1]s,"bf_cycle_max":7,"parts_packed":true,"bf_exit":{"a":%[1]s,"b":3},
			"rpcs_by_user":[{"user":"root","count":%[1]s,"total_time":2},{"user":"x y) count:3","count":2,"total_time":2}]}}`
	)
	check := func(d *Diag, err error, odd int, name string) {
		require.NoError(t, err, name)
		want := map[string]float64{"server_thread_count": 1, "jobs_submitted": 5, "bf_cycle_max": 7, "bf_exit/b": 3}
		maps.DeleteFunc(want, func(key string, _ float64) bool { return key == "bf_exit/b" && d.Values[key] == 0 })
		assert.Equal(t, want, d.Values, name)
		assert.Equal(t, []RPC{{"x y) count:3", 2, 2}}, d.Users, name)
		assert.Equal(t, odd, d.Odd.Count, "%s: %s", name, d.Odd.First)
	}
	for value, odd := range map[string]int{
		"x": 3, "-1": 3, "1.5": 3, "": 3, "infinite": 3, "NO_VAL": 3, "4294967294": 3, "4294967295": 3, "18446744073709551614": 3, huge: 3, "0x10": 3, "\xff": 3, "N/A": 1, "n/a": 1, "(null)": 3,
	} {
		d, err := readDiagText(strings.NewReader(fmt.Sprintf(asText, value)))
		if strings.HasPrefix(value, "4294967") || strings.HasPrefix(value, "1844") {
			assert.Equal(t, odd, d.Odd.Count, value)
		}
		check(d, err, odd, value)
	}
	for value, odd := range map[string]int{
		`"x"`: 3, "-1": 3, `{"set":true,"number":-5}`: 3, "4294967294": 3, "1e99": 3, "[]": 3, "true": 3, `"NaN"`: 3, "18446744073709551614": 3,
	} {
		d, err := readDiagJSON(strings.NewReader(fmt.Sprintf(asJSON, value)))
		check(d, err, odd, value)
	}
	for _, bad := range []string{"", "slurm_get_statistics: away"} {
		_, err := readDiagText(strings.NewReader(bad))
		assert.Error(t, err, bad)
	}
	for _, bad := range []string{"", "{", "[]", `{"statistics":[]}`, `{"statistics":{}}`, `{"statistics":{"x":1}}`} {
		_, err := readDiagJSON(strings.NewReader(bad))
		assert.Error(t, err, bad)
	}
}
