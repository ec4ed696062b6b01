// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// formatNetworkConf returns a network.toml with two rails, one on each card. Both nodes are this one machine:
// each has two of a card's four VFs. key is one more key of all policies.
func formatNetworkConf(cards []card, key string) string {
	var b strings.Builder
	for i, c := range cards {
		for n, vfs := range []string{"0-1", "2-3"} {
			fmt.Fprintf(&b, "[[policy]]\nname = \"card%d-n%d\"\nnodes = \"n%[2]d\"\nnic = { pf = [\"%s#%s\"] }\nvfs = 4\nlink = \"eth\"\ntrust = false\nspoof_check = true\n%[5]s\n", i, n+1, c.name, vfs, key)
			fmt.Fprintf(&b, "[[pool]]\nname = \"p%d-n%d\"\nsubnet = \"10.%[1]d.0.0/24\"\nranges = [\"10.%[1]d.0.%d0-10.%[1]d.0.%[2]d9\"]\nnodes = \"n%[2]d\"\nper_node = 2\n", i, n+1, n+1)
			fmt.Fprintf(&b, "[[rail]]\nname = \"rail%d-n%d\"\npolicy = \"card%[1]d-n%[2]d\"\npools = [\"p%[1]d-n%[2]d\"]\nvlan = %d\nlabels = [\"ai\", \"r%[1]d\"]\ntable = %[4]d\n", i, n+1, 100+i, 101+2*i+n)
		}
	}
	b.WriteString("[[pool]]\nname = \"control\"\nsubnet = \"203.0.113.0/24\"\nnodes = \"n[1-2]\"\nper_node = 4\n" +
		"[control]\npool = \"control\"\ninterface = \"" + controlCard + "\"\n[probe]\ngateway = false\n")
	return b.String()
}

const controlCard = "control0"

// startNetCluster starts a private Slurm in the guest's own network, with VFs from gojail vf apply.
func startNetCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	return startNetClusterWith(t, "", nil)
}

// startNetClusterWith is startNetCluster with one more key of all policies, and lines of slurm.conf.
func startNetClusterWith(t *testing.T, key string, slurmConf map[string]string) *harness.Cluster {
	t.Helper()
	all := findCards(t)
	requireRun(t, "ip link add "+controlCard+" type bridge && ip addr add 203.0.113.250/24 dev "+controlCard+" && ip link set "+controlCard+" up && sysctl -qw net.ipv4.ip_forward=1")
	t.Cleanup(func() {
		requireRun(t, "ip link del "+controlCard+"; ip addr flush dev lo; ip addr add 127.0.0.1/8 dev lo")
	})
	for _, c := range all {
		t.Cleanup(func() { requireWrite(t, c.device+"/sriov_numvfs", "0") })
	}
	c := harness.Start(t, harness.Options{Plugin: true, HostNet: true, Jails: []string{"debian", "other"}, SlurmConf: slurmConf,
		Files: map[string]string{"/etc/gojail/network.toml": formatNetworkConf(all, key)}})
	for _, node := range harness.Nodes {
		r := c.Gojail(node, "vf", "apply")
		require.Zero(t, r.Code, r)
	}
	return c
}

// describeVFs returns what jobs change: the place, RDMA device, name, MAC and MTU of each VF, the PF's
// settings of it, rules and routes. Link-local routes are left out, as the kernel changes them when the PFs'
// carrier returns, seconds after VFs were created.
func describeVFs(t *testing.T) string {
	return requireRun(t, "for d in /sys/bus/pci/devices/*/physfn; do d=${d%/physfn}; echo $(basename $d) $(ls $d/net) $(ls $d/infiniband 2>/dev/null) $(cat $d/net/*/address $d/net/*/mtu $d/net/*/flags); done; ip -o link | grep -o 'vf [0-9].*'; ip rule; ip -o route show table all | grep -v -e fe80: -e ff00: | sed 's/ linkdown//'")
}

const inJob = `for i in /sys/class/net/*; do echo "$(basename $i) $(cat $i/address)"; done; env | grep -E '^(GOJAIL_NET|NCCL|UCX)' | sort`

func TestJobOfSlurmHasItsRails(t *testing.T) {
	c := startNetCluster(t)
	before := describeVFs(t)
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=ai", "sh", "-c", inJob)
	require.Zero(t, r.Code, r)
	for _, want := range []string{`(?m)^net1 `, `(?m)^net3 `, `(?m)^ctl0 `, `NCCL_SOCKET_IFNAME==ctl0`, `GOJAIL_NET_RAILS=`} {
		assert.Regexp(t, want, r.Stdout)
	}
	names := regexp.MustCompile(`(?m)^(\w+) [0-9a-f:]{17}$`).FindAllStringSubmatch(r.Stdout, -1)
	assert.Len(t, names, 4, "lo, ctl0 and a VF for each rail: %s", r.Stdout)
	waitForVFs(t, before)

	// All steps of a job share the network, and srun inside a job reaches slurmctld.
	job := c.Batch(harness.Alice, "#!/bin/sh\ncat /sys/class/net/net1/address\nsrun -n1 cat /sys/class/net/net1/address\n",
		"-wn1", "--jail=debian", "--jail-net=ai", "--chdir=/tmp", "--output=/home/alice/net.out")
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	lines := strings.Fields(job.Output)
	if assert.Len(t, lines, 2, "%v", job) {
		assert.Equal(t, lines[0], lines[1])
	}
	waitForVFs(t, before)

	// One rail, none, and one that is not there.
	harness.RequireOutput(t, "1", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=r1", "sh", "-c", "ls /sys/class/net | grep -c ^net"))
	harness.RequireOutput(t, "/sys/class/net/"+controlCard, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=none", "sh", "-c", "ls -d /sys/class/net/"+controlCard))
	r = c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=nosuch", "echo", "ran")
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "ran")
	assert.Contains(t, r.Stderr, "nosuch")
	waitForVFs(t, before)
	assert.True(t, c.WaitIdle(), c.Drained())

	// Abstract Unix sockets belong to a network: those of the node are not the job's (unix(7)).
	listener, err := net.Listen("unix", "@gojail-abstract")
	require.NoError(t, err)
	defer listener.Close()
	const seen = "grep -c @gojail-abstract /proc/net/unix; true"
	harness.RequireOutput(t, "1", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=none", "sh", "-c", seen))
	harness.RequireOutput(t, "0", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=r1", "sh", "-c", seen))
}

// TestPeersOfAJobMeetOnTheirRails: two nodes of a job, each with its VF on a rail.
func TestPeersOfAJobMeetOnTheirRails(t *testing.T) {
	c := startNetCluster(t)
	journal := c.ListenToJournal(t)
	before := describeVFs(t)
	r := c.Run(harness.Alice, "srun", "-N2", "--jail=debian", "--jail-net=ai", "bash", "-c",
		`for r in 0 1; do for i in $(seq 40); do (exec 3<>/dev/udp/10.$r.0.$((20 - SLURM_PROCID*10))/9; echo x >&3) 2>/dev/null; `+
			`grep -E "10\.$r\.0\.(10|20) +0x1 +0x2" /proc/net/arp && break; sleep 0.3; done; done`)
	require.Zero(t, r.Code, r)
	assert.Equal(t, 4, strings.Count(r.Stdout, "0x2"), "each node has found the other on each rail: %s", r)
	waitForVFs(t, before)
	lines := journal.Lines("", "event=ended")
	assert.Regexp(t, `event=ended job=\d+ uid=\d+ jail=debian version=- memory_peak=\S+ network_received=\d+ network_sent=\d+$`, lines[len(lines)-1],
		"what the VFs carried was read before they were released")
}

// TestVFsAreFoundBackAfterACrash: the step, its slurmstepd, slurmd and the holder are killed at once.
func TestVFsAreFoundBackAfterACrash(t *testing.T) {
	c := startNetCluster(t)
	before := describeVFs(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	srun := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "--jail=debian", "--jail-net=ai", "sleep", "4321"}})
	require.NoError(t, srun.Start())
	waitFor(t, "the task", func() bool {
		return slices.ContainsFunc(c.Find("sleep 4321"), func(p harness.Process) bool { return p.Status["Name"] == "sleep" })
	})
	require.NotEqual(t, before, describeVFs(t))
	metrics := c.Gojail("n1", "metrics")
	assert.Empty(t, metrics.Stderr)
	for _, want := range []string{`gojail_job_vf{job_id="[0-9]+",netdev="net1",node="n1",pci="[0-9a-f:.]+",pf="\w+",rail="rail0-n1",rdma="",user="alice",vf="[0-3]"} 1`,
		`gojail_job_network_receive_bytes_total{job_id="[0-9]+",node="n1",rail="rail0-n1"} [0-9]`,
		`gojail_job_network_transmit_drop_total{job_id="[0-9]+",node="n1",rail="rail1-n1"} [0-9]`,
		`gojail_vfs{node="n1",rail="rail1-n1",state="in_use"} 1`} {
		assert.Regexp(t, want, metrics.Stdout)
	}
	for _, whom := range []string{"slurmd -N n1", "slurmstepd: [", "gojail-holder", "sleep 4321"} {
		for _, p := range c.Find(whom) {
			c.Root("kill", "-KILL", fmt.Sprint(p.Pid))
		}
	}
	holders, _ := os.ReadDir(c.Path("/run/gojail/n1/jobs"))
	for _, job := range holders { // its title is the kernel's name of the process, not its command line
		for _, name := range strings.Fields(requireRun(t, "ls "+c.Path("/run/gojail/n1/jobs/"+job.Name()))) {
			if strings.HasPrefix(name, "debian+") && !strings.Contains(name, ".") {
				c.Root("kill", "-KILL", strings.Fields(requireRun(t, "cat "+c.Path("/run/gojail/n1/jobs/"+job.Name()+"/"+name)))[1])
			}
		}
	}
	c.Run(harness.Alice, "scancel", "-u", "alice")
	end()
	srun.Wait()
	require.NoError(t, c.StartSlurmd("n1")) // which sweeps
	waitForVFs(t, before)
	waitFor(t, "the end of the job in the metrics", func() bool {
		text := c.Gojail("n1", "metrics").Stdout
		return strings.Contains(text, "gojail_build_info") && !strings.Contains(text, "job_id=") && !strings.Contains(text, "in_use")
	})
	harness.RequireOutput(t, "2", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=ai", "sh", "-c", "ls /sys/class/net | grep -c ^net"))
	waitForVFs(t, before)
}

// TestSlurmKilledAmidAnAttach: slurmd, slurmstepd and what attaches for them are killed at once, at every
// fourth state of the journal in turn. The start of slurmd sweeps, and all VFs are back.
func TestSlurmKilledAmidAnAttach(t *testing.T) {
	killDuringAttaches(t, startNetCluster(t), "ai", 4)
}

// killDuringAttaches returns the phases of the VFs' journals, one for each kill and VF.
func killDuringAttaches(t *testing.T, c *harness.Cluster, label string, every int) (phases []string) {
	t.Helper()
	before, kills := describeVFs(t), 0
	for at, reached := 1, true; reached; at += every {
		require.Less(t, at, 400, "the attach never ends")
		ctx, end := context.WithCancel(t.Context())
		srun := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "--jail=debian", "--jail-net=" + label, "sleep", "4322"}})
		require.NoError(t, srun.Start())
		reached = waitForJournal(t, c, at)
		kills++
		if !reached {
			assert.Greater(t, at, 8, "the journal has few states")
		}
		for _, whom := range []string{"slurmd -N n1", "slurmstepd: [", "gojail-launcher sandbox", "sleep 4322"} {
			for _, p := range c.Find(whom) {
				c.Root("kill", "-KILL", fmt.Sprint(p.Pid))
			}
		}
		files, _ := filepath.Glob(c.Path("/run/gojail/n1/net/vf/*.json"))
		for _, file := range files {
			var journal struct{ Phase string }
			require.NoError(t, json.Unmarshal([]byte(requireRun(t, "cat "+file)), &journal))
			phases = append(phases, journal.Phase)
		}
		c.Run(harness.Alice, "scancel", "-u", "alice")
		end()
		srun.Wait()
		require.NoError(t, c.StartSlurmd("n1"), "killed at state %d", at)
		waitForVFs(t, before)
		require.False(t, t.Failed(), "killed at state %d", at)
	}
	t.Log("killed", kills, "times, VFs at:", strings.Join(phases, "; "))
	c.Resume("n1")
	assert.True(t, c.WaitIdle(), c.Drained())
	return phases
}

// waitForJournal waits for the n-th state of a job's journal; false: the step runs without it.
func waitForJournal(t *testing.T, c *harness.Cluster, n int) bool {
	t.Helper()
	last, seen, running := map[string]string{}, 0, false
	waitFor(t, "the journal or the task", func() bool {
		for range 50 { // a state lasts for milliseconds
			files, _ := filepath.Glob(c.Path("/run/gojail/n1/net/*/*.json"))
			for _, file := range files {
				if text, err := os.ReadFile(file); err == nil && string(text) != last[file] {
					last[file] = string(text)
					seen++
				}
			}
			if seen >= n {
				return true
			}
		}
		running = slices.ContainsFunc(c.Find("sleep 4322"), func(p harness.Process) bool { return p.Status["Name"] == "sleep" })
		return running
	})
	return seen >= n
}

// waitForVFs waits until all VFs are as before.
func waitForVFs(t *testing.T, before string) {
	t.Helper()
	was, is := strings.Split(before, "\n"), []string{}
	if !harness.Poll(harness.Timeout, func() bool { is = strings.Split(describeVFs(t), "\n"); return slices.Equal(was, is) }) {
		gone := slices.DeleteFunc(slices.Clone(was), func(line string) bool { return slices.Contains(is, line) })
		come := slices.DeleteFunc(slices.Clone(is), func(line string) bool { return slices.Contains(was, line) })
		assert.Fail(t, "the VFs are not as before", "gone:\n%s\ncome:\n%s", strings.Join(gone, "\n"), strings.Join(come, "\n"))
	}
}
