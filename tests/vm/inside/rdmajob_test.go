// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/tests/harness"
)

// addRDMAToVFs gives VFs what those of mlx5 have: an RDMA device that belongs to the PCI device and stays
// where it is when the interface moves to a job. Here it is an rxe over a macvlan of the VF, see
// tests/vm/modules. The macvlan is down and changes nothing of the VF.
func addRDMAToVFs(t *testing.T, vfs []vf) {
	t.Helper()
	for i, v := range vfs {
		requireRun(t, fmt.Sprintf("ip link add over%d link %s type macvlan mode bridge", i, v.interfaceName()))
		addRDMADevice(t, "rxe", fmt.Sprintf("rxe%d", i), fmt.Sprintf("over%d", i), "")
		require.DirExists(t, fmt.Sprintf("/sys/bus/pci/devices/%s/infiniband/rxe%d", v.pci, i))
	}
}

// waitForSharedMode waits for the RDMA mode with which tests begin: the kernel changes it only when no
// network namespace is left.
func waitForSharedMode(t *testing.T) {
	t.Helper()
	shared := func() {
		waitFor(t, "the end of the network namespaces", func() bool { _, err := tryRun("rdma system set netns shared"); return err == nil })
	}
	shared()
	t.Cleanup(shared)
}

// startRDMACluster is startNetCluster on cards with RDMA.
func startRDMACluster(t *testing.T, mode string) *harness.Cluster {
	t.Helper()
	findCards(t)
	needOwnModules(t)
	waitForSharedMode(t)
	c := startNetClusterWith(t, fmt.Sprintf("rdma = %q", mode), nil)
	require.Contains(t, requireRun(t, "rdma system"), "netns "+mode)
	var vfs []vf
	found, err := filepath.Glob("/sys/bus/pci/devices/*/physfn")
	require.NoError(t, err)
	for _, physfn := range found {
		vfs = append(vfs, vf{pci: filepath.Base(filepath.Dir(physfn))})
	}
	require.Len(t, vfs, 8)
	addRDMAToVFs(t, vfs)
	return c
}

// inRDMAJob opens all that is in the job's /dev/infiniband to read and write.
const inRDMAJob = `cd /dev/infiniband && for f in *; do
	(exec 3<>$f) && echo "opened $f $((0x$(stat -c %t $f))):$((0x$(stat -c %T $f)))"
done
for d in /sys/class/infiniband/*; do echo "device ${d##*/}"; done
echo "pci $GOJAIL_NET_RAIL0_N1_PCI"
echo "hca $NCCL_IB_HCA"
echo "job $SLURM_JOB_ID"
echo ready
exec sleep `

// rdmaJob is a job with a rail on n1 that has said what it has.
type rdmaJob struct {
	opened  []string // "uverbs0 231:192"
	devices []string // in its /sys
	pci     string   // of its VF
	hca     string
	user    string
	id      string // job's number
	pid     int    // of its task
	end     func()
}

func startRDMA(t *testing.T, c *harness.Cluster, user string, seconds int) *rdmaJob {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	srun := c.Exec(ctx, harness.Command{User: user, Args: []string{
		"srun", "-wn1", "--jail=debian", "--jail-net=r0", "bash", "-c", inRDMAJob + fmt.Sprint(seconds)}})
	out, err := srun.StdoutPipe()
	require.NoError(t, err)
	var problems strings.Builder
	srun.Stderr = &problems
	require.NoError(t, srun.Start())
	j := &rdmaJob{user: user}
	j.end = func() { c.Run(user, "scancel", "-u", user); cancel(); srun.Wait() }
	t.Cleanup(j.end)
	lines, ready := bufio.NewScanner(out), false
	for !ready && lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		switch key {
		case "opened":
			j.opened = append(j.opened, value)
		case "device":
			j.devices = append(j.devices, value)
		case "pci":
			j.pci = value
		case "job":
			j.id = value
		case "hca":
			j.hca = strings.TrimPrefix(value, "=")
		case "ready":
			ready = true
		}
	}
	if !ready {
		srun.Wait()
		require.Fail(t, "the job ended", problems.String())
	}
	waitFor(t, "the task", func() bool {
		for _, p := range c.Find(fmt.Sprintf("sleep %d", seconds)) {
			if p.Status["Name"] == "sleep" {
				j.pid = p.Pid
			}
		}
		return j.pid != 0
	})
	return j
}

// listDeviceNodes returns the device nodes of a VF's RDMA device as the kernel numbers them now, and rdma_cm,
// in the form of rdmaJob.
func listDeviceNodes(t *testing.T, pci string) (nodes []string) {
	t.Helper()
	files, err := filepath.Glob("/sys/bus/pci/devices/" + pci + "/infiniband_*/*/dev")
	require.NoError(t, err)
	for _, file := range append(files, "/sys/class/misc/rdma_cm/dev") {
		nodes = append(nodes, filepath.Base(filepath.Dir(file))+" "+requireRun(t, "cat "+file))
	}
	require.Len(t, nodes, 3, "uverbs, umad and rdma_cm")
	return nodes
}

// TestJobsOpenTheirRDMADevices: two jobs on one node, each with a VF of the same card.
func TestJobsOpenTheirRDMADevices(t *testing.T) {
	for _, mode := range []string{"shared", "exclusive"} {
		t.Run(mode, func(t *testing.T) { runRDMAJobs(t, mode) })
	}
}

// runRDMAJobs runs jobs that open their RDMA devices, and no others.
func runRDMAJobs(t *testing.T, mode string) {
	c := startRDMACluster(t, mode)
	before, all := describeVFs(t), requireRun(t, "ls /sys/class/infiniband")
	device := map[string]string{} // of a VF
	for name := range strings.FieldsSeq(all) {
		device[filepath.Base(requireRun(t, "readlink -f /sys/class/infiniband/"+name+"/device"))] = name
	}
	jobs := []*rdmaJob{startRDMA(t, c, harness.Alice, 4331), startRDMA(t, c, harness.Bob, 4332)}
	require.NotEqual(t, jobs[0].pci, jobs[1].pci)
	for _, j := range jobs {
		name := device[j.pci]
		require.NotEmpty(t, name, j.pci)
		assert.ElementsMatch(t, listDeviceNodes(t, j.pci), j.opened, "the job's own in /dev/infiniband, each opened")
		assert.Equal(t, name, j.hca)
		assert.Contains(t, c.Gojail("n1", "metrics").Stdout, `pci="`+j.pci+`"`)
		assert.Contains(t, c.Gojail("n1", "metrics").Stdout, `rdma="`+name+`",user=`)
		// A further sandbox of the job has the same devices.
		again := c.Run(j.user, "srun", "--overlap", "-Q", "-wn1", "--jobid="+j.id, "--jail=other", "--jail-net=r0", "sh", "-c", "cd /dev/infiniband && for f in *; do : <>$f && echo $f; done")
		require.Zero(t, again.Code, again)
		var names []string
		for _, node := range j.opened {
			names = append(names, strings.Fields(node)[0])
		}
		assert.ElementsMatch(t, names, strings.Fields(again.Stdout), "%s", again)
		its := c.Root("nsenter", "--net", fmt.Sprintf("--target=%d", j.pid), "rdma", "dev")
		require.Zero(t, its.Code, its)
		if mode == "exclusive" {
			assert.Equal(t, []string{name}, j.devices)
			assert.Regexp(t, `^\d+: `+name+`: [^\n]*\n$`, its.Stdout, "alone in its namespace")
			assert.NotContains(t, requireRun(t, "rdma dev"), name+":")
			// The number alone is of no use elsewhere, not even to root.
			out, err := tryRun("bash -c 'exec 3<>/dev/infiniband/" + strings.Fields(listDeviceNodes(t, j.pci)[0])[0] + "'")
			assert.Error(t, err)
			assert.Contains(t, out, "Operation not permitted")
		} else {
			assert.ElementsMatch(t, strings.Fields(all), j.devices, "the kernel shows all of them")
			assert.Equal(t, 8, strings.Count(its.Stdout, "rxe"), its)
		}
	}
	// No job makes itself the node of another.
	major, minor, _ := strings.Cut(strings.Fields(jobs[0].opened[0])[1], ":")
	for _, user := range []string{harness.Bob, "root"} {
		r := c.Run(user, "srun", "-wn1", "--jail=debian", "mknod", "/tmp/others", "c", major, minor)
		assert.NotZero(t, r.Code, r)
		assert.Contains(t, r.Stderr, "Operation not permitted")
	}
	for _, j := range jobs {
		j.end()
	}
	waitForVFs(t, before)
	assert.Equal(t, all, requireRun(t, "ls /sys/class/infiniband"))
	assert.Equal(t, 8, strings.Count(requireRun(t, "rdma dev"), "rxe"))
	waitFor(t, "two nodes of each device, and rdma_cm", func() bool { nodes, _ := os.ReadDir("/dev/infiniband"); return len(nodes) == 17 })
	assert.True(t, c.WaitIdle(), c.Drained())
}

// TestRDMADeviceComesBackAfterKills: what TestAttachKilledAnywhere does, with a device that moves.
func TestRDMADeviceComesBackAfterKills(t *testing.T) {
	all := findCards(t)[:1]
	needOwnModules(t)
	waitForSharedMode(t)
	requireRun(t, "rdma system set netns exclusive")
	vfs := all[0].makeVFs(t, 1)
	addRDMAToVFs(t, vfs)
	away := killAttaches(t, all, vfs, config.RDMAExclusive, 4)
	assert.Greater(t, away, 1, "with the job's namespace alive, and with it gone")
}

// TestSlurmKilledWhileADeviceMoves is TestSlurmKilledAmidAnAttach, with a device that moves.
func TestSlurmKilledWhileADeviceMoves(t *testing.T) {
	c := startRDMACluster(t, "exclusive")
	phases := killDuringAttaches(t, c, "r0", 4)
	assert.Contains(t, phases, "rdma, after", "the move of the device, and the steps up to the next phase")
	assert.Contains(t, phases, "routes", "the device is in the job's namespace")
	assert.Equal(t, 8, strings.Count(requireRun(t, "rdma dev"), "rxe"))
}
