// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
	"github.com/gojail/gojail/tests/harness"
)

// gpuLibrary is NVIDIA's library in the private machine.
const gpuLibrary = "/etc/nvml/libnvidia-ml.so.1"

// installNVML installs a stand-in for NVIDIA's library, of eight GPUs, for the rest of the test.
func installNVML(t *testing.T, c *harness.Cluster, lines ...string) {
	t.Helper()
	from := fakenvml.New(t, lines...).Path
	require.Zero(t, c.Root("mkdir", "-p", "/etc/nvml").Code)
	for _, suffix := range []string{"", ".answers"} {
		text, err := os.ReadFile(from + suffix)
		require.NoError(t, err)
		path := c.Path(gpuLibrary + suffix)
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.WriteFile(path, text, 0o755))
	}
	require.Zero(t, c.Root("sh", "-c", "echo /etc/nvml >/etc/ld.so.conf.d/nvml.conf; ldconfig").Code)
	t.Cleanup(func() {
		assert.Zero(t, c.Root("sh", "-c", "rm -rf /etc/nvml /etc/ld.so.conf.d/nvml.conf; ldconfig").Code)
	})
}

// runWithGPUs runs a job on n1 whose records say that it has these device nodes, and returns it when it has ended. begun is called
// when the job runs.
func runWithGPUs(t *testing.T, c *harness.Cluster, begun func(), nodes ...string) (job string) {
	t.Helper()
	end := c.Path("/srv/jails/debian/home/alice/end")
	r := c.Do(harness.Command{User: harness.Alice, Args: []string{"sbatch", "--parsable", "--jail=debian", "-wn1", "--chdir=/tmp", "--wrap=until [ -e /home/alice/end ]; do sleep 0.05; done"}})
	require.Zero(t, r.Code, r)
	job = strings.TrimSpace(r.Stdout)
	records := c.Path("/run/gojail/n1/jobs/" + job)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(records + "/.uid"); return err == nil }))
	require.NoError(t, os.WriteFile(records+"/.gpu-nodes", []byte(strings.Join(nodes, "\n")+"\n"), 0o600))
	begun()
	require.NoError(t, os.WriteFile(end, nil, 0o644))
	defer os.Remove(end)
	require.True(t, c.WaitIdle(), c.Drained())
	return job
}

// TestJournalOfGPUs: the line of a job's end has what the driver's accounting mode counted for its processes on its GPUs.
func TestJournalOfGPUs(t *testing.T) {
	c := sharedCluster(t)
	j := c.ListenToJournal(t)
	job := runWithGPUs(t, c, func() {
		now := fmt.Sprint(time.Now().UnixMicro())
		installNVML(t, c, "* nvmlDeviceGetAccountingMode 0 1",
			"3 nvmlDeviceGetAccountingPids 0 11 12 13 14",
			"3 nvmlDeviceGetAccountingStats/11 0 50 4000 40000 "+now, // 20 s
			"3 nvmlDeviceGetAccountingStats/12 0 100 9000 1000000 1000",
			"3 nvmlDeviceGetAccountingStats/13 0 100 9000 1000000 9000000000000000",
			"3 nvmlDeviceGetAccountingStats/14 6", // it gave way to another
			"0 nvmlDeviceGetAccountingPids 0 11",
			"0 nvmlDeviceGetAccountingStats/11 0 10 5000 50000 "+now, // 5 s
			"1 nvmlDeviceGetAccountingPids 0 11",
			"1 nvmlDeviceGetAccountingStats/11 0 100 9000 1000000 "+now) // not the job's GPU
	}, "/dev/nvidia3", "/dev/nvidia0", "/dev/nvidia3")
	lines := j.Lines(job, "event=ended")
	assert.Regexp(t, "^30 event=ended job="+job+` uid=5001 jail=debian version=- memory_peak=(-|\d+) gpu_seconds=25 gpu_memory_peak=5000$`, lines[len(lines)-1])
	requireDocumented(t, lines)

	// Whatever NVIDIA's library does, or where it is missing, the job's end does not wait for it.
	installNVML(t, c, "- nvmlInit_v2 hang")
	runWithGPUs(t, c, func() {}, "/dev/nvidia3")
	waits := c.Root("pgrep", "-f", "gojail-launcher ended")
	assert.NotEmpty(t, strings.Fields(waits.Stdout), "the job is over, and the launcher still waits")
	for _, pid := range strings.Fields(waits.Stdout) {
		c.Root("kill", "-9", pid)
	}
	job = runWithGPUs(t, c, func() {}, "/dev/nvidia3", "/dev/nvidia-caps/nvidia-cap30")
	lines = j.Lines(job, "event=ended")
	assert.Regexp(t, ` gpu_seconds=- gpu_memory_peak=-$`, lines[len(lines)-1], "the driver counts nothing for an instance of MIG")
}

// TestReportOfGPUs: what cannot be known is no number, and nothing of a library that hangs is left.
func TestReportOfGPUs(t *testing.T) {
	c := sharedCluster(t)
	j := c.ListenToJournal(t)
	for i, test := range []struct{ name, gpus, answers, want string }{
		{"no process", "3", "* nvmlDeviceGetAccountingMode 0 1\n* nvmlDeviceGetAccountingPids 0", "gpu_seconds=0 gpu_memory_peak=0"},
		{"accounting mode is off", "3", "3 nvmlDeviceGetAccountingMode 0 0", ""},
		{"a GPU that the driver does not know", "3,9", "* nvmlDeviceGetAccountingMode 0 1", ""},
		{"too many processes", "3", "* nvmlDeviceGetAccountingMode 0 1\n* nvmlDeviceGetAccountingPids 7", ""},
		{"the driver is not loaded", "3", "- nvmlInit_v2 9", ""},
		{"it hangs", "3", "- nvmlDeviceGetCount_v2 hang", ""},
		{"it answers late", "3", "- nvmlInit_v2 wait 3000", ""},
		{"it is missing", "3", "", ""},
	} {
		if test.answers != "" {
			installNVML(t, c, test.answers)
		} else {
			require.Zero(t, c.Root("sh", "-c", "rm -r /etc/nvml; ldconfig").Code)
		}
		job := fmt.Sprint(9000 + i)
		r := c.Root(harness.Prefix+"/lib/gojail/gojail-launcher", "ended", "state=/run/gojail/n1", "deadline=1000",
			"summary=event=ended job="+job+" uid=0", "error=a \"quote\"", "gpus="+test.gpus, "begun=0", "ended=9999999999")
		assert.Zero(t, r.Code, r)
		if test.want == "" {
			test.want = "gpu_seconds=- gpu_memory_peak=-"
		}
		assert.Equal(t, []string{"27 event=ended job=" + job + " uid=0 " + test.want + ` error="a 'quote'"`}, j.Lines(job, "event=ended"), test.name)
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("pgrep", "-f", "gojail-launcher ended").Code != 0 }), "nothing is left of it")
}

// TestSummaryWithoutSlurmdbd: a summary that cannot be written costs a job and its node nothing.
func TestSummaryWithoutSlurmdbd(t *testing.T) {
	c := sharedCluster(t)
	path := c.Path(harness.ConfigPath)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(path, before, 0o644)) })
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(before), "[slurm]\n", "[slurm]\njob_summary = \"AdminComment\"\n", 1)), 0o644))
	j := c.ListenToJournal(t)
	job := c.Batch(harness.Alice, "true", "-wn1", "--jail=debian", "--chdir=/tmp")
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.True(t, c.WaitIdle(), c.Drained())
	assert.NotZero(t, len(strings.Fields(c.Root("pgrep", "-f", "gojail-launcher ended").Stdout)), "it tries once more, and nobody waits for it")
	j.Lines(job.ID, "event=ended")
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("pgrep", "-f", "gojail-launcher ended").Code != 0 }))
	assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
}

// TestNetworkOfAJobIsTold: the end of a job with a network says what its rails carried, before they are released. The rail is a veth
// interface in the network namespace of a process; VFs are in the VM of the tests.
func TestNetworkOfAJobIsTold(t *testing.T) {
	c := sharedCluster(t)
	config := c.Path("/etc/gojail/network.toml")
	t.Cleanup(func() {
		os.Remove(config)
		c.Root("rm", "-rf", "/run/gojail/n1/net")
	})
	require.NoError(t, os.WriteFile(config, []byte("[[policy]]\nname = \"p\"\nnic = { pf = [\"nosuch0\"] }\nvfs = 1\n[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\nnodes = \"n[1-2]\"\nper_node = 1\n"+
		"[[rail]]\nname = \"r\"\npolicy = \"p\"\npools = [\"a\"]\n"), 0o644))
	r := c.Root("sh", "-ec", `cd /run/gojail/n1; mkdir -p -m 700 net net/vf net/jobs jobs/9077
setsid unshare -n sleep 60 >/dev/null 2>&1 </dev/null & pid=$!
while [ "$(cat /proc/$pid/comm)" != sleep ]; do sleep 0.1; done
nsenter -t $pid -n sh -ec 'ip link add net1 type veth peer name peer; ip link set peer up; ip link set net1 up; ip addr add 10.9.0.1/24 dev net1; ping -qc1 -W1 10.9.0.2 >/dev/null || true'
set -- $(cat /proc/$pid/stat); shift 21
echo "`+fmt.Sprint(contract.Version)+` $pid $1 0123456789abcdef 0" >jobs/9077/.net
echo '{"0000:86:00.2":{"Received":0,"Sent":1,"Interface":{"tx_bytes":1,"tx_dropped":0}}}' >jobs/9077/.net.counters
echo rubbish >net/vf/0000:86:00.4.json; chmod 600 net/vf/0000:86:00.4.json
echo 5001 >jobs/9077/.uid
echo '{"job":"9077","boot":"b","network":{"job":"9077","rails":[{"rail":"r","name":"net1","pci":"0000:86:00.2"}]}}' >net/jobs/9077.json
chmod 600 net/jobs/9077.json`)
	require.Zero(t, r.Code, r)
	metrics := c.Gojail("n1", "metrics")
	assert.Contains(t, metrics.Stdout, `gojail_job_vf{job_id="9077",netdev="net1",node="n1",pci="0000:86:00.2",pf="",rail="r",rdma="",user="",vf="0"} 1`+"\n", metrics.Stderr)
	assert.Regexp(t, `(?m)^gojail_job_network_transmit_bytes_total\{job_id="9077",node="n1",rail="r"\} [1-9]\d*$`, metrics.Stdout)
	assert.Contains(t, metrics.Stdout, `gojail_job_network_transmit_drop_total{job_id="9077",node="n1",rail="r"} 0`+"\n")
	assert.NotContains(t, metrics.Stdout, "gojail_job_network_receive_bytes_total{", "what it was at the start is unknown")
	assert.Contains(t, metrics.Stdout, `gojail_vf_quarantined{node="n1",pci="0000:86:00.4",rail=""} 1`+"\n", "its record is damaged")
	assert.Contains(t, metrics.Stdout, `gojail_vfs{node="n1",rail="",state="quarantined"} 1`+"\n")
	require.Zero(t, c.Root("rm", "/run/gojail/n1/net/vf/0000:86:00.4.json").Code)
	r = c.Root(harness.Prefix+"/lib/gojail/gojail-launcher", "epilog", "state=/run/gojail/n1", "node=n1", "job=9077", "deadline=10000")
	assert.Zero(t, r.Code, r)
	assert.Regexp(t, `^note network_received=\d+ network_sent=[1-9]\d*\nok\n$`, r.Stderr)
	assert.NoFileExists(t, c.Path("/run/gojail/n1/net/jobs/9077.json"))
}
