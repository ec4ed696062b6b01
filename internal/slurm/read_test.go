// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// releases are those whose output is in testdata, as their commands printed it on a private cluster.
var releases = []string{"22.05", "24.11", "26.05"}

func open(t testing.TB, name string) io.Reader {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return strings.NewReader(string(text))
}

// wantNodes are the nodes in testdata but for what differs: the version and the time of the reason.
var wantNodes = []Node{
	{Name: "n1", State: "mixed", Flags: []string{"maintenance", "reserved"}, Partitions: []string{"main", "hid", "off"},
		GPUs: []GPUs{{"h100", 2, 1}, {"a100", 1, 0}}, CPUs: 16, CPUsAllocated: 4},
	{Name: "n2", State: "mixed", Flags: []string{"drain"}, Partitions: []string{"main", "gpu"},
		Reason: `disk is full; State=IDLE "x" |y Partitions=z [root@2026]`, ReasonUser: "root",
		GPUs: []GPUs{{"h100", 2, 0}, {"a100", 1, 0}}, CPUs: 16, CPUsAllocated: 1},
}

// TestNodes: text and JSON of each release say the same of the same nodes.
func TestNodes(t *testing.T) {
	for _, release := range releases {
		read, err := readNodesText(open(t, release+"/nodes.txt"))
		require.NoError(t, err)
		if release != "22.05" {
			same, err := readNodesJSON(open(t, release+"/nodes.json"))
			require.NoError(t, err)
			assert.Equal(t, read, same, release)
		}
		nodes := read.List
		require.Len(t, nodes, 2)
		assert.Equal(t, 2026, nodes[1].ReasonTime.Year())
		for i := range nodes {
			assert.True(t, strings.HasPrefix(nodes[i].Version, release+"."), nodes[i].Version)
			nodes[i].Version, nodes[i].ReasonTime = "", time.Time{}
		}
		assert.Equal(t, wantNodes, nodes, release)
	}
}

func TestNodeStates(t *testing.T) {
	for text, want := range map[string]string{
		"IDLE":                       "idle",
		"IDLE*":                      "idle",
		"IDLE+DRAIN":                 "idle drain",
		"DOWN*+DRAIN+NOT_RESPONDING": "down drain not_responding",
		"IDLE+CLOUD+POWERED_DOWN~":   "idle cloud powered_down",
		"ALLOCATED+DYNAMIC_NORM":     "allocated dynamic_norm",
		"UNKNOWN+INVALID_REG":        "unknown invalid_reg",
		"DRAIN+DRAIN":                "unknown drain",
		"MIXED+Ünew 7":               "mixed _new_7",
	} {
		var n Node
		n.setStates(strings.Split(text, "+"))
		assert.Equal(t, want, strings.TrimSpace(n.State+" "+strings.Join(n.Flags, " ")), text)
	}
}

func TestStatesOfARecord(t *testing.T) {
	for text, want := range map[string][]string{
		"IDLE":                      {"IDLE"},
		"IDLE+DRAIN":                {"IDLE", "DRAIN"},
		"DOWN*+NOT_RESPONDING":      {"DOWN", "NOT_RESPONDING"},
		"MIXED+CLOUD*+INVALID_REG*": {"MIXED", "CLOUD", "INVALID_REG"},
		"":                          nil,
		"DRAIN":                     nil, // no base state
		"IDLE+":                     nil,
		"IDLE+ ":                    nil,
		"idle":                      nil,
		"IDLE+x":                    nil,
		"IDLE/DRAIN":                nil,
		"*":                         nil,
	} {
		states, err := (&Record{fields: map[string]string{"State": text}}).States()
		assert.Equal(t, want, states, text)
		assert.Equal(t, want == nil, err != nil, text)
	}
}

func TestGRES(t *testing.T) {
	for text, want := range map[string][]GRES{
		"":                           nil,
		"gpu":                        {{"gpu", "", 1, false}},
		"gpu:8":                      {{"gpu", "", 8, false}},
		"gpu:h100":                   {{"gpu", "h100", 1, false}},
		"gpu:h100:4(S:0,1),nic:ib:2": {{"gpu", "h100", 4, false}, {"nic", "ib", 2, false}},
		"gpu:1g.10gb:7,gpu:1g.10gb":  {{"gpu", "1g.10gb", 7, false}, {"gpu", "1g.10gb", 1, false}},
		"bandwidth:lustre:4G":        {{"bandwidth", "lustre", -1, false}},
		"gpu:many:x":                 {{"gpu", "many", -1, false}},
		"a:no_consume:4,a:b:-1,a:":   {{"a", "", 4, true}, {"a", "b", -1, false}, {"a", "", -1, false}},
	} {
		assert.Equal(t, want, ReadGRES(text), text)
	}
}

func TestGPUs(t *testing.T) {
	for texts, want := range map[[2]string][]GPUs{
		{"", ""}:                           nil,
		{"nic:2,shard:8", ""}:              nil,
		{"gpu", "gpu:1(IDX:0)"}:            {{"", 1, 1}},
		{"gpu:8(S:0-1)", "gpu:0(IDX:N/A)"}: {{"", 8, 0}},
		{"gpu:h100:4(S:0,1),nic:2", "gpu:h100:3(IDX:0,2-3),nic:0"}: {{"h100", 4, 3}},
		{"gpu:a:2,gpu:a:1", "gpu:b:1"}:                             {{"a", 3, 0}, {"b", 0, 1}},
		{"gpu:h100", ""}:                                           {{"h100", 1, 0}},
		{"gpu:1g.10gb:7", "gpu:1g.10gb:2(IDX:0-1)"}:                {{"1g.10gb", 7, 2}},
		// Without a type, and with the topology that gres.conf or NVML gives.
		{"gpu:8(S:0-1)", "gpu:(null):5(IDX:0-4)"}:                       {{"", 8, 5}},
		{"gpu:8(S:0-1)", "gpu:(null):0(IDX:N/A)"}:                       {{"", 8, 0}},
		{"gpu:4,gpu:a:2", "gpu:(null):3(IDX:0-2),gpu:a:1(IDX:4),nic:0"}: {{"", 4, 3}, {"a", 2, 1}},
	} {
		got, err := readGPUs(texts[0], texts[1])
		assert.NoError(t, err)
		assert.Equal(t, want, got, texts)
	}
	for _, bad := range []string{"gpu:h100:-1", "gpu:h100:", "gpu:", "gpu:(IDX:0-7)"} {
		_, err := readGPUs("", bad)
		assert.Error(t, err, bad)
	}
}

func TestJobs(t *testing.T) {
	for _, release := range releases {
		j, err := readJobs(open(t, release+"/squeue.txt"))
		require.NoError(t, err, release)
		assert.Zero(t, j.Odd.Count, j.Odd.First)
		assert.Equal(t, map[string]int{"pending": 406, "running": 2, "completed": 1, "failed": 1}, withoutLast(j.States), release)
		assert.Equal(t, map[string]int{"n1": 2, "n2": 1}, j.Nodes, release)
		assert.Equal(t, 1, j.Partitions[InPartition{"gpu", "pending"}], "it waits in two partitions")
		assert.Equal(t, 1, j.Pending[InPartition{"off", "PartitionDown"}])
		assert.Equal(t, 1, j.Pending[InPartition{"main", "Dependency"}])
		assert.GreaterOrEqual(t, j.Pending[InPartition{"main", "ReqNodeNotAvail"}], 401)
	}
}

// readJobs reads rows that begin with "@".
func readJobs(r io.Reader) (*Jobs, error) {
	j := newJobs()
	odd, err := readRows(r, "@", len(jobColumns), j.add)
	return j.finish(odd), err
}

// rows makes rows that begin with "@", whose columns are separated with "|".
func rows(text string) io.Reader {
	var all strings.Builder
	for line := range strings.Lines(text) {
		all.WriteString("@" + separator + strings.Replace(line, "|", separator, len(jobColumns)-1))
	}
	return strings.NewReader(all.String())
}

func TestUnknownStateOfJobs(t *testing.T) {
	j, err := readJobs(rows("BRAND_NEW|main||N/A|None\nOUT_OF_MEMORY|main|n1|N/A|OutOfMemory\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]int{Other: 1, "out_of_memory": 1}, j.States)
	assert.Empty(t, j.Nodes)
}

// withoutLast makes up for the job that the recording of one release has and those of others have not.
func withoutLast(states map[string]int) map[string]int {
	if states["pending"] == 405 {
		states["pending"]++
	}
	return states
}

func TestTasks(t *testing.T) {
	for text, want := range map[string]int{
		"": 1, "N/A": 1, "7": 1, "1-4": 4, "1-4,7%2": 5, "0-9:2": 5, "0-9:3%1": 4, "0-2147483647": 1 << 31,
	} {
		got, err := countTasks(text)
		assert.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"4-1", "a", "1-", "1-3:0", "1,...", "-1", "1-99999999999"} {
		_, err := countTasks(text)
		assert.Error(t, err, text)
	}
}

func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"": "None", "Resources": "Resources", "ReqNodeNotAvail, UnavailableNodes:n[1-3]": "ReqNodeNotAvail", "(Priority)": "Priority",
		"launch failed requeued held": "launch_failed_requeued_held", "Nodes required for job are DOWN, DRAINED": "Nodes_required_for_job_are_DOWN",
		"Ünï\n\"x|y": "n___x_y",
	} {
		assert.Equal(t, want, toReason(text), text)
	}
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "PENDING|main||1-%d|Reason%d\nPENDING|p%d||N/A|None\n", i+1, i, i)
	}
	j, err := readJobs(rows(text.String()))
	require.NoError(t, err)
	words, partitions := map[string]bool{}, map[string]bool{}
	for key := range j.Pending {
		words[key.Word], partitions[key.Partition] = true, true
	}
	assert.Len(t, words, reasonsMost+1)
	assert.LessOrEqual(t, len(partitions), partitionsMost+1)
	assert.Equal(t, 500, j.Pending[InPartition{"main", "Reason499"}], "the most frequent ones stay")
	assert.Zero(t, j.Pending[InPartition{"main", "Reason1"}])
	assert.Equal(t, 500*501/2+500, j.States["pending"])
}

// TestDiag: text has what JSON has, but for sums and what only JSON has.
func TestDiag(t *testing.T) {
	for _, release := range releases {
		d, err := readDiagText(open(t, release+"/sdiag.txt"))
		require.NoError(t, err)
		assert.Equal(t, 2.0, d.Values["bf_cycle_counter"], release)
		assert.Equal(t, 2.0, d.Values["jobs_completed"])
		assert.Greater(t, d.Values["req_time_start"], 1.7e9)
		assert.Greater(t, d.Values["bf_when_last_cycle"], 1.7e9)
		assert.Len(t, d.Types, 12, release)
		assert.Len(t, d.Users, 3)
		if release == "22.05" {
			assert.Equal(t, RPC{"REQUEST_SUBMIT_BATCH_JOB", 7, 12700}, d.Types[0])
			continue
		}
		j, err := readDiagJSON(open(t, release+"/sdiag.json"))
		require.NoError(t, err)
		for key, value := range d.Values {
			if key != "bf_table_size_mean" { // rounded up in JSON alone
				assert.Equal(t, value, j.Values[key], "%s %s", release, key)
			}
		}
		assert.Equal(t, 6.0, d.Values["schedule_exit/end_job_queue"]+d.Values["bf_exit/bf_max_time"]-map[string]float64{"26.05": 1}[release])
		assert.Subset(t, j.Types, d.Types[:2])
	}
	for _, none := range []string{"N/A", "Thu Jan 01 00:00:00 1970 (0)"} {
		d, err := readDiagText(strings.NewReader("Server thread count: 1\nBackfilling stats\n\tLast cycle when: " + none + "\n"))
		require.NoError(t, err)
		assert.NotContains(t, d.Values, "bf_when_last_cycle")
	}
}

func TestLimit(t *testing.T) {
	list := []RPC{{"a", 1, 10}, {"b", 5, 50}, {Other, 4, 40}, {"c", 2, 20}}
	assert.Equal(t, list, Limit(list, 4))
	assert.Equal(t, []RPC{{"b", 5, 50}, {Other, 7, 70}}, Limit(list, 2), "a user may have that name")
}

func TestPing(t *testing.T) {
	for _, release := range releases {
		list, err := readPing(open(t, release+"/ping.txt"))
		require.NoError(t, err)
		assert.Equal(t, []Controller{{"head", true}}, list)
		list, err = readPing(open(t, release+"/down-ping.txt"))
		require.NoError(t, err)
		assert.Equal(t, []Controller{{"head", false}}, list)
	}
	_, err := readPing(strings.NewReader("slurm_ping: error\n"))
	assert.Error(t, err)
}

func TestActive(t *testing.T) {
	up := func(states ...bool) (list []Controller) {
		for i, is := range states {
			list = append(list, Controller{string(rune('a'+i)) + ".example.org", is})
		}
		return list
	}
	for _, test := range []struct {
		list []Controller
		want string // the hosts that are active, of a, b and x, which has no controller
	}{
		{nil, "abx"},
		{up(true), "abx"},
		{up(true, true), "ax"},
		{up(false, true), "bx"},
		{up(false, false), "abx"},
	} {
		got := ""
		for _, host := range []string{"a", "b", "x"} {
			if IsActive(test.list, host) {
				got += host
			}
		}
		assert.Equal(t, test.want, got, test.list)
	}
	assert.False(t, IsActive(up(true, true), "b.other.example.org"))
}
