// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// trafficBytes is what a job sends to its other node: much more than anything else that its VFs carry.
const trafficBytes = 2 << 20

// inTrafficJob sends trafficBytes from the first task to the second one over rail 0, and then waits for the file end.
const inTrafficJob = `import os, socket, sys, time
home, size = "/home/alice/", int(sys.argv[1])
def wait(name):
    while not os.path.exists(home + name):
        time.sleep(0.1)
def write(name, text):
    with open(home + name + ".new", "w") as file:
        file.write(text)
    os.rename(home + name + ".new", home + name)
if os.environ["SLURM_PROCID"] == "1":
    address = os.environ["GOJAIL_NET_RAIL0_N2_ADDRESS"].split("/")[0]
    server = socket.create_server((address, 5001))
    write("server", address)
    peer, received = server.accept()[0], 0
    while got := len(peer.recv(65536)):
        received += got
    peer.sendall(str(received).encode())
    peer.close()
else:
    wait("server")
    peer = socket.create_connection((open(home + "server").read(), 5001), 60)
    peer.sendall(bytes(size))
    peer.shutdown(socket.SHUT_WR)
    write("received", peer.recv(100).decode())
wait("end")
`

// submitNetJob submits a job with a VF on rail 0 of each of its nodes, and returns its number.
func submitNetJob(t *testing.T, c *harness.Cluster, user string, args ...string) string {
	t.Helper()
	r := c.Do(harness.Command{User: user, Args: append([]string{"sbatch", "--parsable", "--jail=debian", "--jail-net=r0", "--chdir=/tmp", "--output=/home/" + user + "/out"}, args...)})
	require.Zero(t, r.Code, r)
	return strings.TrimSpace(r.Stdout)
}

// traffic is what a node's metrics say of a job's VF on rail 0.
type traffic struct {
	pci                   string
	in, out               int // bytes
	packetsIn, packetsOut int
}

// waitForTraffic waits until the metrics of a node have a job's VF with its counters, and returns them.
func waitForTraffic(t *testing.T, c *harness.Cluster, node, job string) (one traffic) {
	t.Helper()
	var text string
	waitFor(t, "the counters of job "+job+" on "+node, func() bool {
		text = c.Gojail(node, "metrics").Stdout
		return strings.Contains(text, `gojail_job_network_transmit_packets_total{job_id="`+job+`"`)
	})
	for what, to := range map[string]*int{"receive_bytes": &one.in, "transmit_bytes": &one.out, "receive_packets": &one.packetsIn, "transmit_packets": &one.packetsOut} {
		m := regexp.MustCompile(`(?m)^gojail_job_network_` + what + `_total\{job_id="` + job + `",node="` + node + `",rail="rail0-` + node + `"\} (\S+)$`).FindStringSubmatch(text)
		require.NotNil(t, m, "%s\n%s", what, text)
		value, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err, m[0])
		*to = int(value)
	}
	m := regexp.MustCompile(`gojail_job_vf\{job_id="` + job + `",netdev="\w+",node="` + node + `",pci="([^"]+)"`).FindStringSubmatch(text)
	require.NotNil(t, m, text)
	one.pci = m[1]
	t.Logf("job %s on %s: %+v", job, node, one)
	return one
}

// readEnds returns what the lines of the ends of a job on its nodes say that its VFs carried, in bytes.
func readEnds(t *testing.T, journal *harness.Journal, job string, nodes int) (in, out []int) {
	t.Helper()
	for _, line := range journal.Lines(job, "event=ended") {
		if m := regexp.MustCompile(`event=ended .* network_received=(\d+) network_sent=(\d+)$`).FindStringSubmatch(line); m != nil {
			received, _ := strconv.Atoi(m[1])
			sent, _ := strconv.Atoi(m[2])
			in, out = append(in, received), append(out, sent)
		}
	}
	require.Len(t, out, nodes)
	return in, out
}

// TestTrafficIsOfTheJobThatSentIt requires that what a job sends over its VF is in its own series and in the line of its end, and in
// those of no other job: neither of one that is there at the same time on the same card, nor of one that gets the VF afterwards.
func TestTrafficIsOfTheJobThatSentIt(t *testing.T) {
	c := startNetCluster(t)
	journal := c.ListenToJournal(t)
	before := describeVFs(t)
	home := c.Path("/srv/jails/debian/home/alice/")
	require.NoError(t, os.WriteFile(home+"/traffic.py", []byte(inTrafficJob), 0o644))
	t.Cleanup(func() { c.Root("scancel", "-u", "alice"); c.Root("scancel", "-u", "bob") })

	silent := submitNetJob(t, c, harness.Bob, "-wn1", "--wrap=sleep 1000")
	waitForTraffic(t, c, "n1", silent)
	busy := submitNetJob(t, c, harness.Alice, "-N2", fmt.Sprintf("--wrap=srun -n2 python3 /home/alice/traffic.py %d", trafficBytes))
	var received []byte
	require.True(t, harness.Poll(harness.Timeout*harness.Slow, func() bool { received, _ = os.ReadFile(home + "/received"); return len(received) > 0 }),
		"%v", c.Root("cat", "/srv/jails/debian/home/alice/out"))
	require.Equal(t, fmt.Sprint(trafficBytes), string(received))

	// Headers and what is sent again are counted, too; what is acknowledged goes the other way.
	const most, answers, packets = trafficBytes * 3 / 2, trafficBytes / 4, trafficBytes / 1500
	const bytesOfSilence, packetsOfSilence = trafficBytes / 16, packets / 4 // neighbours are looked for
	sender, receiver, other := waitForTraffic(t, c, "n1", busy), waitForTraffic(t, c, "n2", busy), waitForTraffic(t, c, "n1", silent)
	assert.True(t, sender.out >= trafficBytes && sender.out < most, "sent: %+v", sender)
	assert.True(t, sender.in > 0 && sender.in < answers, "acknowledged: %+v", sender)
	assert.True(t, receiver.in >= trafficBytes && receiver.in < most, "received: %+v", receiver)
	assert.True(t, receiver.out > 0 && receiver.out < answers, "acknowledged: %+v", receiver)
	for _, n := range []int{sender.packetsOut, receiver.packetsIn} {
		assert.True(t, n >= packets && n < 3*packets, "packets: %d", n)
	}
	requireSilence := func(one traffic, why string) {
		t.Helper()
		assert.Less(t, one.in+one.out, bytesOfSilence, "%s: %+v", why, one)
		assert.Less(t, one.packetsIn+one.packetsOut, packetsOfSilence, "%s: %+v", why, one)
	}
	assert.NotEqual(t, sender.pci, other.pci)
	requireSilence(other, "at the same time on the same card")
	assert.NotContains(t, c.Gojail("n2", "metrics").Stdout, `job_id="`+silent+`"`)

	require.NoError(t, os.WriteFile(home+"/end", nil, 0o644))
	waitFor(t, "the end of the job", func() bool { return !strings.Contains(c.Root("squeue", "-h", "-o", "%A").Stdout, busy) })
	// The other VF of n1 is the one that was just released, and its driver goes on counting.
	next := submitNetJob(t, c, harness.Alice, "-wn1", "--wrap=exec sleep 4341")
	afterwards := waitForTraffic(t, c, "n1", next)
	assert.Equal(t, sender.pci, afterwards.pci)
	task := 0
	waitFor(t, "the task", func() bool {
		for _, p := range c.Find("sleep 4341") {
			if p.Status["Name"] == "sleep" {
				task = p.Pid
			}
		}
		return task != 0
	})
	driver := c.Root("nsenter", "--net", fmt.Sprintf("--target=%d", task), "ip", "-j", "-s", "link", "show", "net1")
	assert.Regexp(t, `"tx":\{"bytes":\d{7,},`, driver.Stdout, driver)
	requireSilence(afterwards, "afterwards on the same VF")

	journal.Lines("", "event=entered job="+next) // those of the ends were sent before
	in, out := readEnds(t, journal, busy, 2)
	assert.True(t, slices.Max(in) >= trafficBytes && slices.Max(in) < most && slices.Min(in) < answers, "received: %d", in)
	assert.True(t, slices.Max(out) >= trafficBytes && slices.Max(out) < most && slices.Min(out) < answers, "sent: %d", out)
	require.Zero(t, c.Root("scancel", silent, next).Code)
	require.True(t, c.WaitIdle(), c.Drained())
	for _, job := range []string{silent, next} {
		in, out := readEnds(t, journal, job, 1)
		assert.Less(t, in[0]+out[0], bytesOfSilence, "job %s", job)
	}
	waitForVFs(t, before)
}
