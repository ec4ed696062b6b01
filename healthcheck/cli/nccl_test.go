// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/nccl"
	"github.com/gojail/gojail/tests/harness"
)

const ncclHealth = `
run = "/run/health"
state = "/var/lib/health"
syslog = false
[nccl]
user = "alice"
output = "/data/alice"
command = "/opt/all_reduce_perf"
args = ["-n", "20"]
partition = "low"
gpus = 2
gres = "none"
time = "1s"
wait = "20s"
poll = "200ms"
drains = 2
metrics = "/run/nccl.prom"
[[nccl.expect]]
gpu = "H100"
gpus = 2
nodes = 1
size = "8G"
busbw = 460
[[nccl.expect]]
gpu = "H100"
gpus = 2
nodes = 2
size = "8G"
busbw = 390
`

// ncclWait is the time that a healthy job may wait for its start in this test.
var ncclWait = 20 * time.Second * harness.Slow

// ncclSite is a private cluster of four nodes with a stand-in for all_reduce_perf.
type ncclSite struct {
	*testing.T
	c *harness.Cluster
}

func startNCCL(t *testing.T) ncclSite {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	t.Parallel() // they mostly wait
	built := filepath.Join(t.TempDir(), "gojail-healthcheck")
	out, err := exec.Command("go", "build", "-o", built, "../cmd/gojail-healthcheck").CombinedOutput()
	require.NoError(t, err, string(out))
	binary, err := os.ReadFile(built)
	require.NoError(t, err)
	standin, err := os.ReadFile("../nccl/testdata/all_reduce_perf.standin")
	require.NoError(t, err)
	var nodes []string
	for i := range 4 {
		nodes = append(nodes, fmt.Sprintf("n%d NodeAddr=%s Port=%d CPUs=4 State=UNKNOWN", i+1, harness.Address, 6900+i))
	}
	c, err := harness.UpHead(harness.Options{
		Files: map[string]string{program: string(binary), "/opt/all_reduce_perf": string(standin),
			"/etc/gojail/health.toml": strings.ReplaceAll(ncclHealth, "20s", ncclWait.String())},
		SlurmConf: map[string]string{
			"NodeName": strings.Join(nodes, "\nNodeName="),
			"PartitionName": "main Nodes=n[1-4] Default=YES PriorityTier=10\n" +
				"PartitionName=low Nodes=n[1-4] PriorityTier=1 PreemptMode=CANCEL",
			"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL",
			// Jobs in a reservation wait for the scheduler's next pass over the whole queue.
			"SchedulerParameters": "bf_interval=1,sched_interval=1",
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	require.Zero(t, c.Root("install", "-d", "-o", "alice", "/srv/nccl").Code)
	for i := range 4 {
		require.NoError(t, c.StartSlurmd(fmt.Sprintf("n%d", i+1)))
	}
	s := ncclSite{t, c}
	s.idle("n1", "n2", "n3", "n4")
	return s
}

// idle waits until these nodes are idle.
func (s ncclSite) idle(nodes ...string) {
	s.Helper()
	for _, node := range nodes {
		require.True(s, harness.Poll(harness.Timeout, func() bool { return s.c.NodeState(node) == "idle" }), "%s: %s", node, show(s.c, node))
	}
}

// say sets the behavior of the stand-in on a node or a pair.
func (s ncclSite) say(what string, nodes ...string) {
	for _, node := range nodes {
		require.NoError(s, os.WriteFile(s.c.Path("/srv/nccl/"+node), []byte(what+"\n"), 0o644))
	}
}

// configure changes health.toml.
func (s ncclSite) configure(from, to string) {
	text, err := os.ReadFile(s.c.Path("/etc/gojail/health.toml"))
	require.NoError(s, err)
	require.Contains(s, string(text), from)
	require.NoError(s, os.WriteFile(s.c.Path("/etc/gojail/health.toml"), []byte(strings.Replace(string(text), from, to, 1)), 0o644))
}

// round runs the command until it ends.
func (s ncclSite) round(args ...string) *nccl.Report {
	s.Helper()
	return s.begin(args...)()
}

// begin starts the command; the returned function waits until it ends.
func (s ncclSite) begin(args ...string) func() *nccl.Report {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	s.Cleanup(cancel)
	cmd := s.c.Exec(ctx, harness.Command{Args: append([]string{program, "nccl", "--json"}, args...)})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(s, cmd.Start())
	return func() *nccl.Report {
		s.Helper()
		_ = cmd.Wait()
		s.Log(stderr.String())
		report := &nccl.Report{}
		require.NoError(s, json.Unmarshal(stdout.Bytes(), report), stdout.String()+stderr.String())
		assert.Equal(s, report.Exit, cmd.ProcessState.ExitCode())
		assert.NotContains(s, s.c.Root("scontrol", "show", "reservation").Stdout, "gojail-nccl-")
		assert.NoFileExists(s, s.c.Path("/var/lib/health/nccl/round.json"))
		return report
	}
}

// results returns the results of the nodes.
func results(r *nccl.Report) map[string]string {
	all := map[string]string{}
	for _, n := range r.Nodes {
		all[n.Node] = n.Result
		if n.Outcome != "" {
			all[n.Node] += ", " + n.Outcome
		}
	}
	return all
}

// forget removes the record of recent tests of the nodes.
func (s ncclSite) forget() {
	require.NoError(s, os.Remove(s.c.Path("/var/lib/health/nccl/tested.json")))
}

const ncclReason = "Reason=nccl: all_reduce_perf is slow or wrong with two good partners [node_problem] gojail (id "

func TestNCCLGoodRoundAndThenNothingToDo(t *testing.T) {
	s := startNCCL(t)
	dry := s.c.Root(program, "nccl", "--dry-run")
	assert.Contains(t, dry.Stdout, "4 jobs would be submitted first")
	assert.Contains(t, dry.Stdout, "--nodelist=n3 ")
	assert.Contains(t, dry.Stdout, "exec srun --ntasks-per-node=1 --cpu-bind=none /opt/all_reduce_perf -b 8589934592 -e 8589934592 -f 2 -g 2 -n 20\n")
	r := s.round()
	assert.Equal(t, map[string]string{"n1": "good", "n2": "good", "n3": "good", "n4": "good"}, results(r))
	assert.Len(t, r.Tests, 6)
	assert.Equal(t, 460.0, r.Tests[0].BusBW)
	left, err := filepath.Glob(s.c.Path("/data/alice/*"))
	require.NoError(t, err)
	assert.Empty(t, left, "the output of good jobs is removed")
	assert.Contains(t, s.c.Root("scontrol", "show", "job", r.Tests[0].Job).Stdout, "UserId=alice(")

	r = s.round()
	assert.Equal(t, "OK: no nodes to test", r.Summary)
	assert.Contains(t, r.Skipped["n1"], "tested ")
	assert.Len(t, s.round("n[1-2]").Tests, 3, "who asks for nodes gets them")
}

// One bad node of four is found with two partners; it is drained, repaired, retested, and
// returned to service.
func TestNCCLABadNode(t *testing.T) {
	s := startNCCL(t)
	s.say("slow 120.00", "n3+any")
	r := s.round()
	assert.Equal(t, map[string]string{"n1": "good", "n2": "good", "n3": "bad, drained", "n4": "good"}, results(r))
	becomes(t, s.c, "n3", "State=IDLE+DRAIN ", ncclReason, "[root@")
	assert.GreaterOrEqual(t, len(r.Tests), 8)

	t.Log("not mended: it is drained again")
	r = s.round("--retest")
	assert.Equal(t, "bad, drained again", results(r)["n3"])
	becomes(t, s.c, "n3", "State=IDLE+DRAIN ", ncclReason)
	s.say("crash", "n3")
	r = s.round("--retest", "n3")
	assert.Equal(t, "unknown, drained again", results(r)["n3"])
	becomes(t, s.c, "n3", "State=IDLE+DRAIN ", ncclReason)

	t.Log("mended")
	s.say("good", "n3", "n3+any")
	r = s.round("--retest")
	assert.Equal(t, "good, undrained", results(r)["n3"])
	s.idle("n3")
	assert.NoFileExists(t, s.c.Path("/var/lib/health/nccl/nodes/n3/drain.json"))
	text, err := os.ReadFile(s.c.Path("/run/nccl.prom"))
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^gojail_health_nccl_busbw_bytes_per_second\{node="n1",partner=""\} \d`, string(text))
	assert.Regexp(t, `(?m)^gojail_health_nccl_busbw_bytes_per_second\{node="n\d",partner="n\d"\} \d`, string(text))
	assert.Contains(t, string(text), "\ngojail_health_nccl_round_status ")
}

func TestNCCLABadLinkDrainsNobody(t *testing.T) {
	s := startNCCL(t)
	s.say("slow 100.00", "n1+n2", "n3+n4", "n1+n3", "n2+n4") // two of three ways to form pairs
	r := s.round()
	for range 10 { // pairs are formed at random
		if r.Exit != 0 {
			break
		}
		s.forget()
		s.idle("n1", "n2", "n3", "n4")
		r = s.round()
	}
	assert.Equal(t, 1, r.Exit, r.Summary)
	assert.Empty(t, s.c.Drained())
	assert.Contains(t, results(r)["n1"], "bad with a partner, good with another")
}

// ran returns the invocations of the stand-in, one per line.
func (s ncclSite) ran() string {
	text, _ := os.ReadFile(s.c.Path("/srv/nccl/ran"))
	return string(text)
}

func TestNCCLAPersonsDrainSurvives(t *testing.T) {
	s := startNCCL(t)
	s.say("slow 100.00", "n3+any")
	assert.Equal(t, "bad, drained", results(s.round())["n3"])
	s.say("good", "n3+any")
	require.Zero(t, s.c.Root("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=ADMIN SHUTDOWN").Code)
	r := s.round("--retest")
	assert.Equal(t, 3, r.Exit)
	assert.Equal(t, []string{"n3 is not retested: it is already drained: ADMIN SHUTDOWN"}, r.Errors)
	assert.Empty(t, r.Tests)
	becomes(t, s.c, "n3", "State=IDLE+DRAIN ", "Reason=ADMIN SHUTDOWN [root@")

	t.Log("a person drains a node while it is tested again")
	s.forget()
	s.say("slow 100.00", "n4+any")
	require.Zero(t, s.c.Root("scontrol", "update", "NodeName=n3", "State=RESUME").Code)
	s.idle("n1", "n2", "n3", "n4")
	assert.Equal(t, "bad, drained", results(s.round())["n4"])
	s.say("wait", "n4")
	require.NoError(t, os.Remove(s.c.Path("/srv/nccl/ran")))
	s.configure("wait = \""+ncclWait.String(), "wait = \""+(ncclWait/2).String()) // for jobs on a node that gets none
	end := s.begin("--retest", "n4")
	require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(s.ran(), "n4 ") }))
	reservation := s.c.Root("scontrol", "--oneliner", "show", "reservation", "gojail-nccl-n4").Stdout
	for _, words := range []string{" Nodes=n4 ", " Users=alice ", " State=ACTIVE "} {
		assert.Contains(t, reservation, words, "nobody else gets the node")
	}
	assert.FileExists(t, s.c.Path("/var/lib/health/nccl/round.json"))
	require.Zero(t, s.c.Root("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=fan is broken").Code)
	require.NoError(t, os.WriteFile(s.c.Path("/srv/nccl/go"), nil, 0o644))
	r = end()
	assert.Contains(t, results(r)["n4"], "left alone: it is already drained: fan is broken")
	becomes(t, s.c, "n4", "+DRAIN", "Reason=fan is broken [root@")
}
