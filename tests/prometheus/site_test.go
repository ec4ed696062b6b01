// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
	"github.com/gojail/gojail/tests/harness"
)

// Where what runs in the machine listens, and the directories of the two textfile collectors.
const (
	prometheus = "127.0.0.1:9090"
	exporter   = "127.0.0.1:9100"
	standIn    = "127.0.0.1:9400"
	ofSlurm    = "127.0.0.1:9948"
	ofSlurmToo = "127.0.0.1:9949"

	textfiles    = "/run/node-exporter"
	standInFiles = "/run/stand-in"
)

const prometheusConfig = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [/etc/prometheus/*.rules.yml]
scrape_configs:
  - {job_name: node, static_configs: [{targets: ["` + exporter + `"]}]}
  - {job_name: slurm, static_configs: [{targets: ["` + ofSlurm + `", "` + ofSlurmToo + `"]}]}
  - {job_name: stand-in, honor_labels: true, static_configs: [{targets: ["` + standIn + `"]}]}
`

// site is a cluster with GPUs, Prometheus and node_exporter.
type site struct {
	*harness.Cluster
	client http.Client
}

// findMissing returns what this machine lacks, or "".
func findMissing() string {
	for _, name := range []string{"prometheus", "prometheus-node-exporter", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			return "needs " + name + ": make deps installs it"
		}
	}
	return harness.Missing()
}

// gpuLines are gres.conf: what Slurm starts with, since the machine gets its device nodes later. Each node has a GPU, and an instance
// of MIG of a third one.
const gpuLines = "NodeName=n1 Name=gpu File=/dev/tty61\nNodeName=n1 Name=gpu MultipleFiles=/dev/tty58,/dev/tty59\n" +
	"NodeName=n2 Name=gpu File=/dev/tty62\nNodeName=n2 Name=gpu MultipleFiles=/dev/tty58,/dev/tty60\n"

// newSite starts the cluster and the daemons, which end with the test.
func newSite(t *testing.T) *site {
	t.Helper()
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	repository, err := harness.Repository()
	require.NoError(t, err)
	rules, err := filepath.Glob(filepath.Join(repository, "packaging/prometheus/*.rules.yml"))
	require.NoError(t, err)
	files := map[string]string{
		"/etc/slurm/gres.conf":           gpuLines,
		"/etc/prometheus/prometheus.yml": prometheusConfig,
		"/etc/gojail/health.toml":        healthConfig,
	}
	for _, path := range rules {
		files["/etc/prometheus/"+filepath.Base(path)] = readFile(t, path)
	}
	node := "NodeAddr=" + harness.Address + " CPUs=2 Gres=gpu:2 State=UNKNOWN"
	s := &site{Cluster: harness.Start(t, harness.Options{
		Plugin: true, Jails: []string{"debian", "other"}, Files: files, Constrain: true,
		Config: strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\ndevices = [\"/dev/nvidia*\"]\n", 1),
		SlurmConf: map[string]string{"GresTypes": "gpu", "JobAcctGatherType": "jobacct_gather/cgroup",
			"NodeName": "n1 Port=6818 " + node + "\nNodeName=n2 Port=6819 " + node},
	})}
	s.client.Transport = &http.Transport{DialContext: s.dial}
	s.addGPUs(t)
	library := fakenvml.New(t).Path
	for _, suffix := range []string{"", ".answers"} {
		require.NoError(t, os.WriteFile(s.Path("/etc/gojail/libnvidia-ml.so.1"+suffix), []byte(readFile(t, library+suffix)), 0o755))
	}
	for _, dir := range []string{textfiles, standInFiles, mappings, "/run/prometheus"} {
		require.Zero(t, s.Root("mkdir", "-p", dir).Code)
	}
	s.start(t, "prometheus-node-exporter", "--web.listen-address="+exporter, "--collector.textfile.directory="+textfiles, "--no-collector.systemd")
	s.start(t, "prometheus-node-exporter", "--web.listen-address="+standIn, "--collector.disable-defaults", "--collector.textfile",
		"--collector.textfile.directory="+standInFiles, "--web.disable-exporter-metrics")
	s.start(t, "prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/run/prometheus", "--web.listen-address="+prometheus)
	return s
}

// healthConfig is health.toml: a daemon that is not there makes a check fail, which drains no node here.
const healthConfig = `run = "/run/health"
state = "/var/lib/health"
syslog = false
metrics = "` + textfiles + `/health-%n.prom"
[slurm]
drain = false
[daemons]
processes = ["nosuchd"]
[check.daemons]
bad = 1
[gpu]
library = "/etc/gojail/libnvidia-ml.so.1"
`

// startExporter starts gojail-exporter, once there is something to tell; it asks Slurm at once, and then every ten seconds.
// There are two, which know nothing of each other: dashboards count the cluster once.
// It returns false in a tree that does not have gojail-exporter.
func (s *site) startExporter(t *testing.T) bool {
	t.Helper()
	repository, err := harness.Repository()
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(repository, "exporter")); os.IsNotExist(err) {
		return false
	}
	require.Zero(t, s.Root("test", "-x", harness.Prefix+"/sbin/gojail-exporter").Code, "make builds gojail-exporter")
	for _, address := range []string{ofSlurm, ofSlurmToo} {
		s.start(t, "gojail-exporter", "--listen-address="+address, "--interval=10s", "--timeout=5s")
	}
	return true
}

// uuids are those of the GPUs of both nodes, which are one machine. The last one is divided into the instances.
var uuids = []string{"GPU-11111111-1111-1111-1111-111111111111", "GPU-22222222-2222-2222-2222-222222222222", "GPU-33333333-3333-3333-3333-333333333333"}

// instances are the numbers of the device nodes in /dev/nvidia-caps that give access to the GPU instances of MIG, by number.
var instances = map[int]int{1: 12, 2: 21}

// addGPUs gives the machine device nodes of GPUs, on which no driver is, and what the driver says of them. Its /dev is that of
// the host: it gets a copy, in which no other test's devices appear.
func (s *site) addGPUs(t *testing.T) {
	t.Helper()
	script := "set -e\nmkdir /run/dev\nmount -t tmpfs -o mode=755 tmpfs /run/dev\ncp -ax /dev/. /run/dev\n" +
		"for dir in pts shm; do mount --bind /dev/$dir /run/dev/$dir; done\nmount --rbind /run/dev /dev\n" +
		"mount -t tmpfs tmpfs /proc/driver\nmkdir -p /proc/driver/nvidia\n" +
		"echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan 22 00:00:00 UTC 2025' >/proc/driver/nvidia/version\n"
	for i, uuid := range uuids {
		dir := fmt.Sprintf("/proc/driver/nvidia/gpus/0000:%d0:00.0", i+1)
		script += fmt.Sprintf("mknod -m 666 /dev/nvidia%d c 195 %[1]d; mkdir -p %s; printf 'Model: NVIDIA H100\\nGPU UUID: %s\\nDevice Minor: %[1]d\\n' >%[2]s/information\n", i, dir, uuid)
	}
	for id, minor := range instances {
		dir := fmt.Sprintf("/proc/driver/nvidia/capabilities/gpu2/mig/gi%d", id)
		script += fmt.Sprintf("mkdir -p /dev/nvidia-caps %s; mknod -m 444 /dev/nvidia-caps/nvidia-cap%d c 234 %[2]d; printf 'DeviceFileMinor: %[2]d\\nDeviceFileMode: 292\\n' >%[1]s/access\n", dir, minor)
	}
	script += "mount -t tmpfs tmpfs /sys/bus/pci/devices\n"
	for i := range 8 { // those of fakenvml
		script += fmt.Sprintf("d=/sys/bus/pci/devices/0000:%x:00.0; mkdir $d; echo 0x10de >$d/vendor; echo 0x030200 >$d/class\n", 0x10+i)
	}
	script += "ip link add eth0 type veth peer name eth1\n" +
		"sed -i 's|tty61|nvidia0|; s|tty62|nvidia1|; s|tty58|nvidia2|; s|tty59|nvidia-caps/nvidia-cap12|; s|tty60|nvidia-caps/nvidia-cap21|' /etc/slurm/gres.conf\n"
	r := s.Root("sh", "-c", script)
	require.Zero(t, r.Code, r)
	for _, node := range harness.Nodes {
		require.Zero(t, s.Gojail(node, "reload").Code)
		require.NoError(t, s.RestartSlurmd(node))
	}
	require.True(t, s.WaitIdle(), s.Drained())
}

// start starts a daemon in the machine for the rest of the test.
func (s *site) start(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log, err := os.Create(filepath.Join(t.TempDir(), args[0]))
	require.NoError(t, err)
	cmd := s.Exec(ctx, harness.Command{Args: args})
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
		log.Close()
		if t.Failed() {
			text := readFile(t, log.Name())
			t.Logf("---- %s ----\n%s", strings.Join(args, " "), text[max(0, len(text)-3000):])
		}
	})
}

// dial connects to an address in the machine's network namespace.
func (s *site) dial(_ context.Context, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	inside, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", s.Pid))
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	if err := unix.Setns(int(inside.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	defer func() {
		if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(err) // the thread would serve other goroutines in the wrong network
		}
	}()
	return net.DialTimeout(network, address, 5*time.Second)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
