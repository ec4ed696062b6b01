// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// becomeNode gives the slurmd that follows a host name, an address and two GPUs of its own: what NVIDIA's driver shows
// of them, and device files that only this mount namespace has. $1 is the name of the node, $2 its address and $3 the
// number of its GPUs; the harness adds /usr/sbin/slurmd -N NODE.
const becomeNode = `
hostname "$1"
ip link set lo up
nsenter -t 1 -n ip link delete "$1" 2>/dev/null || : # of a former node of that name
ip link add eth0 type veth peer name "$1" netns 1
ip addr add "$2" peer 198.51.100.1 dev eth0
ip link set eth0 up
nsenter -t 1 -n ip addr add 198.51.100.1 peer "$2" dev "$1"
nsenter -t 1 -n ip link set "$1" up
nsenter -t 1 -n sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' # slurmstepd reports the end of a step to that of another node
ip route add default via 198.51.100.1
mount -t tmpfs none /sys/bus/pci/devices
mount -t tmpfs none /proc/driver
new=$(mktemp -d)
mount -t tmpfs none "$new"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx "$new"
mkdir "$new/pts" "$new/shm"
mount --bind /dev/pts "$new/pts"
mount --bind /dev/shm "$new/shm"
for minor in 0 1; do
	mknod "$new/nvidia$minor" c 195 "$minor"
	[ "$minor" -lt "$3" ] || continue
	pci=0000:0$minor:00.0
	mkdir -p "/sys/bus/pci/devices/$pci" "/proc/driver/nvidia/gpus/$pci"
	echo 0x10de >"/sys/bus/pci/devices/$pci/vendor"
	echo 0x030200 >"/sys/bus/pci/devices/$pci/class"
	printf 'Model: \t NVIDIA H100 80GB HBM3\nDevice Minor: \t %d\n' "$minor" >"/proc/driver/nvidia/gpus/$pci/information"
done
mount --move "$new" /dev
mkdir -p "/run/nodes/$1/spool" "/run/nodes/$1/run"
mount --bind "/run/nodes/$1/spool" /var/spool/slurmd
mount --bind "/run/nodes/$1/run" /run/slurm
shift 6
NODE_CONF="CPUs=2" setsid /etc/slurmd-dynamic /usr/sbin/slurmd "$@" </dev/null >/dev/null 2>&1 &
`

const (
	dynamicGPU = "gpu:nvidia_h100_80gb_hbm3"
	dynamicMax = 8 // nodes at most
)

// startDynamicHead starts a cluster without nodes, to which configless nodes may come. Slurm 22.05 alone starts no step
// on a dynamic node through another node: only there is the tree flat.
func startDynamicHead(t *testing.T) (c *harness.Cluster, is2205 bool) {
	t.Helper()
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	is2205 = harness.Version() == "22.05"
	width := "2"
	if is2205 {
		width = "65533"
	}
	script, err := os.ReadFile("../../packaging/systemd/slurmd-dynamic")
	require.NoError(t, err)
	c, err = harness.UpHead(harness.Options{Plugin: true, Bare: true, Jails: []string{"debian", "other"}, NoConf: true,
		Config: strings.NewReplacer("/var/spool/slurmd/%n", "/var/spool/slurmd", "[jail.debian]\n", "[jail.debian]\ndevices = [\"/dev/nvidia[0-9]\"]\n").Replace(harness.DefaultConfig),
		Files: map[string]string{
			"/etc/slurmd-dynamic":      strings.ReplaceAll(string(script), "/usr/local/sbin/", harness.Prefix+"/sbin/"),
			"/srv/slurmctld/gres.conf": "Name=gpu Type=nvidia_h100_80gb_hbm3 File=/dev/nvidia[0-1]\n",
		},
		SlurmConf: map[string]string{"NodeName": "DEFAULT State=UNKNOWN", "PartitionName": "main Nodes=ALL Default=YES State=UP",
			"MaxNodeCount": "16", "TreeWidth": width, "GresTypes": "gpu", "SchedulerParameters": "bf_interval=1,sched_interval=1,batch_sched_delay=0",
			"SlurmdSpoolDir": "/var/spool/slurmd", "SlurmdPidFile": "/run/slurmd-%n.pid"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	c.ShowLogs(t)
	require.Zero(t, c.Root("ln", "-s", "/srv/slurmctld", "/run/slurm/conf").Code)
	return c, is2205
}

func nameDynamic(i int) string { return fmt.Sprintf("d%d", i) }

// startDynamic starts the slurmd of a dynamic node, as slurmd-dynamic.conf does, and waits for a state of the node.
func startDynamic(t *testing.T, c *harness.Cluster, i, gpus int, state string) {
	t.Helper()
	require.NoError(t, c.StartSlurmd(nameDynamic(i), "/usr/bin/unshare", "--mount", "--uts", "--net", "--propagation=private", "/bin/sh", "-ec",
		becomeNode, "sh", nameDynamic(i), fmt.Sprintf("198.51.100.%d", 10+i), fmt.Sprint(gpus)))
	waitForDynamic(t, c, i, state)
}

// waitForDynamic waits until a dynamic node is there, in a state.
func waitForDynamic(t *testing.T, c *harness.Cluster, i int, state string) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return strings.Contains(showDynamic(c, i), "NodeName="+nameDynamic(i)+" ") && c.NodeState(nameDynamic(i)) == state
	}), "not %s: %s", state, showDynamic(c, i))
}

// showDynamic returns what slurmctld has of a dynamic node.
func showDynamic(c *harness.Cluster, i int) string {
	return c.Root("scontrol", "-o", "show", "node", nameDynamic(i)).Stdout
}

// findDynamic returns the number of the slurmd of a dynamic node.
func findDynamic(t *testing.T, c *harness.Cluster, i int) string {
	t.Helper()
	pid := strings.TrimSpace(readFile(c, "/run/slurmd-"+nameDynamic(i)+".pid"))
	require.NotEmpty(t, pid)
	return pid
}

// stopDynamic ends the slurmd of a dynamic node.
func stopDynamic(t *testing.T, c *harness.Cluster, i int) {
	t.Helper()
	pid := findDynamic(t, c, i)
	require.Zero(t, c.Root("kill", pid).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(c.Path("/proc/" + pid)); return err != nil }))
}

// onDynamic runs gojail in the namespaces of a dynamic node.
func onDynamic(t *testing.T, c *harness.Cluster, i int, args ...string) harness.Result {
	t.Helper()
	return c.Root(append([]string{"nsenter", "-t", findDynamic(t, c, i), "-m", "-u", "-n", "--", "gojail", "--state=/run/gojail/%n"}, args...)...)
}

// TestDynamicNodes: nodes that slurm.conf does not name come with what gojail node-conf says of them, with types at the
// first registration, and go, while a job runs on one.
func TestDynamicNodes(t *testing.T) {
	c, is2205 := startDynamicHead(t)
	startDynamic(t, c, 1, 2, "idle")
	for _, jail := range []string{"debian", "other"} {
		r := onDynamic(t, c, 1, "init", jail)
		require.Zero(t, r.Code, r)
	}
	const list = "cat " + marker + "; cd /dev; echo nvidia[0-9]"
	submit := c.Do(harness.Command{User: harness.Alice, Args: []string{"sbatch", "--parsable", "--jail=debian", "--gres=" + dynamicGPU + ":1"},
		Stdin: "#!/bin/sh\nuntil [ -e /home/alice/end ]; do sleep 0.2; done\n" + list + "\nsrun -Q cat " + marker + "\n"})
	require.Zero(t, submit.Code, submit)
	waitForDynamic(t, c, 1, "mixed")

	for i := 2; i <= dynamicMax; i++ {
		startDynamic(t, c, i, 2, "idle")
		assert.Contains(t, showDynamic(c, i), " Gres="+dynamicGPU+":2 ")
		r := onDynamic(t, c, i, "node-conf", "--check")
		assert.Zero(t, r.Code, r)
		assert.Empty(t, r.Stdout, r)
	}
	requireOutput(t, strings.TrimSpace(strings.Repeat("debian\n", dynamicMax)),
		c.Run(harness.Alice, "srun", fmt.Sprintf("-N%d", dynamicMax), "--gres="+dynamicGPU+":1", "--jail=debian", "cat", marker))
	requireOutput(t, "debian\nnvidia0", c.Run(harness.Alice, "srun", "-wd2", "--gres="+dynamicGPU+":1", "--constraint=jail-debian", "--jail=debian", "sh", "-c", list))

	leaseToDynamic(t, c, dynamicMax)
	for i := dynamicMax; i > 1; i-- {
		removeDynamic(t, c, i)
	}
	r := c.Root("gojail", "pool", "release", nameDynamic(dynamicMax))
	assert.Equal(t, "released the address 10.1.0.5 of job 7 (rail r)\n", r.Stdout, r)
	r = c.Root("gojail", "pool", "ls", "--json")
	assert.Equal(t, "{\n  \"addresses\": []\n}\n", r.Stdout, r)
	r = c.Root("scontrol", "delete", "NodeName=d1")
	assert.NotZero(t, r.Code, "it has a job: %s", r)
	assert.Equal(t, "d1", strings.TrimSpace(c.Root("sinfo", "-h", "-N", "-o", "%N").Stdout))
	changeDynamic(t, c, 2)
	// The further steps of a job that runs then do not find their node on 22.05.
	if !is2205 {
		stopSlurmctld(t, c)
		require.Zero(t, c.Root("/usr/sbin/slurmctld", "-f", "/srv/slurmctld/slurm.conf").Code)
		waitForDynamic(t, c, 2, "idle")
		waitForDynamic(t, c, 1, "mixed")
	}

	require.Zero(t, c.Root("touch", "/srv/jails/debian/home/alice/end").Code)
	job := c.WaitJob(harness.Job{ID: strings.TrimSpace(submit.Stdout)})
	assert.Equal(t, "COMPLETED debian\nnvidia0\ndebian\n", job.State+" "+job.Output, job)
	assert.Empty(t, c.Drained())
}

// leaseToDynamic leaves a lease as a node does that crashes while a job has an address, and sees that nobody else releases
// it as long as slurmctld knows the node.
func leaseToDynamic(t *testing.T, c *harness.Cluster, i int) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.Path("/etc/gojail/network.toml"), []byte("[[policy]]\nname = \"p\"\nnic = { pf = [\"nosuch0\"] }\nvfs = 1\n"+
		"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\ndirectory = \"/srv/leases\"\n[[rail]]\nname = \"r\"\npolicy = \"p\"\npools = [\"a\"]\n"), 0o644))
	r := c.Root("sh", "-ec", `umask 077; cd /srv; mkdir -p "leases/a/nodes/$1" leases/a/addresses/10.1.0.0/10.1.0.5
name=$(sed -n 's/^ClusterName=//p' slurmctld/slurm.conf)
touch "leases/a/nodes/$1/$name,7,r,10.1.0.5,-,1790000000" "leases/a/addresses/10.1.0.0/10.1.0.5/$name,7,$1,r,-,1790000000"`, "sh", nameDynamic(i))
	require.Zero(t, r.Code, r)
	r = c.Root("gojail", "pool", "release", nameDynamic(i))
	assert.Equal(t, 1, r.Code, r)
	assert.Contains(t, r.Stderr, "it is in Slurm, and its jobs may have them; remove it first (scontrol delete nodename="+nameDynamic(i)+")")
	r = c.Root("gojail", "pool", "ls")
	assert.Contains(t, r.Stdout, " "+nameDynamic(i)+" ", r)
}

// removeDynamic removes a node without jobs, as docs/operations.md has it.
func removeDynamic(t *testing.T, c *harness.Cluster, i int) {
	t.Helper()
	require.Zero(t, c.Root("scontrol", "update", "NodeName="+nameDynamic(i), "State=DRAIN", "Reason=removed").Code)
	waitForDynamic(t, c, i, "drained")
	stopDynamic(t, c, i)
	r := c.Root("scontrol", "delete", "NodeName="+nameDynamic(i))
	require.Zero(t, r.Code, r)
}

// changeDynamic lets a removed node come back, and then come with one GPU less, which slurmctld takes from a node that it
// does not know.
func changeDynamic(t *testing.T, c *harness.Cluster, i int) {
	t.Helper()
	startDynamic(t, c, i, 2, "idle")
	stopDynamic(t, c, i)
	startDynamic(t, c, i, 1, "inval")
	r := onDynamic(t, c, i, "node-conf", "--check")
	assert.Equal(t, nameDynamic(i)+": has 1 of "+dynamicGPU+", slurmctld expects 2 and makes the node INVAL\n", r.Stdout, r)
	stopDynamic(t, c, i)
	require.Zero(t, c.Root("scontrol", "delete", "NodeName="+nameDynamic(i)).Code)
	startDynamic(t, c, i, 1, "idle")
	assert.Contains(t, showDynamic(c, i), " Gres="+dynamicGPU+":1 ")
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-w"+nameDynamic(i), "--gres="+dynamicGPU+":1", "--jail=debian", "cat", marker))
}
