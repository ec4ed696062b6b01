// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// asked is where the commands that exporters run are written down.
const asked = "/tmp/asked"

// withWrappers adds commands of Slurm that write down what they are asked, for --slurm-bin.
func withWrappers(options harness.Options) harness.Options {
	files := map[string]string{}
	for path, text := range options.Files {
		files[path] = text
	}
	for _, name := range []string{"scontrol", "squeue", "sdiag"} {
		files["/opt/wrapped/"+name] = "#!/bin/sh\n[ \"$1\" = --version ] || echo \"$(hostname) ${0##*/} $*\" >>" + asked + "\nexec /usr/bin/${0##*/} \"$@\"\n"
	}
	options.Files = files
	return options
}

// withTypedGPUs are nodes with GPUs of two types, which are no GPUs.
var withTypedGPUs = harness.Options{
	Plugin: true,
	Files:  map[string]string{"/etc/slurm/gres.conf": "Name=gpu Type=h100 File=/dev/null,/dev/zero\nName=gpu Type=a100 File=/dev/full\n"},
	SlurmConf: map[string]string{
		"GresTypes": "gpu",
		"NodeName": "n1 NodeAddr=" + harness.Address + " Port=6818 CPUs=16 Gres=gpu:h100:2,gpu:a100:1 State=UNKNOWN\n" +
			"NodeName=n2 NodeAddr=" + harness.Address + " Port=6819 CPUs=16 Gres=gpu:h100:2,gpu:a100:1 State=UNKNOWN",
	},
}

// startExporter starts an exporter of nobody's, through another command if one is given.
func startExporter(t *testing.T, c *harness.Cluster, address string, by ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	args := slices.Concat(by, []string{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "gojail-exporter", "--slurm-bin=/opt/wrapped",
		"--interval=10s", "--timeout=5s", "--max-age=50s", "--listen-address=" + address})
	var log strings.Builder
	exporter := c.Exec(ctx, harness.Command{Dir: "/", Args: args})
	exporter.Stderr = &log
	require.NoError(t, exporter.Start())
	ended := make(chan error, 1)
	go func() { ended <- exporter.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
}

// scrape returns the metrics of an exporter, which listens within the machine.
func scrape(c *harness.Cluster, address string) string {
	host, port, _ := strings.Cut(address, ":")
	r := c.Root("bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port+"; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
	return r.Stdout
}

// requireSeries waits until the exporter has lines, and returns its metrics.
func requireSeries(t *testing.T, c *harness.Cluster, address string, lines ...string) (text string) {
	t.Helper()
	missing := lines
	harness.Poll(harness.Timeout, func() bool {
		text = scrape(c, address)
		missing = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(text, "\n"+line+"\n") })
		return len(missing) == 0
	})
	require.Empty(t, missing)
	return text
}

// TestExporter: what slurmctld knows is on the page, for three commands per interval; where it is away, the page says so.
func TestExporter(t *testing.T) {
	c := harness.Start(t, withWrappers(withTypedGPUs))
	job := submitScript(t, c, "exec sleep 1000\n", "-wn1", "--gres=gpu:h100:1", "--chdir=/tmp", "--output=/dev/null", "--job-name=a|b c")
	submitScript(t, c, "true\n", "--hold", "--array=1-200,300-900:3%2", "--chdir=/tmp")
	require.Zero(t, c.Root("scontrol", "update", "NodeName=n2", "State=DRAIN", `Reason=disk "x" is full; State=IDLE|`).Code)
	require.Zero(t, c.Root("install", "-m", "666", "/dev/null", asked).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.JobFields(job)["JobState"] == "RUNNING" })) // or the exporter learns it an interval later
	const address = "127.0.0.1:9948"
	startExporter(t, c, address)
	text := requireSeries(t, c, address,
		`gojail_slurm_controller_up 1`,
		`gojail_slurm_controller_responding{controller="head"} 1`,
		`gojail_exporter_active 1`,
		`gojail_slurm_node_state{node="n1",state="mixed"} 1`,
		`gojail_slurm_node_state{node="n2",state="idle"} 1`,
		`gojail_slurm_node_flag{flag="drain",node="n2"} 1`,
		`gojail_slurm_node_reason{node="n2",reason="disk \"x\" is full; State=IDLE|",user="root"} 1`,
		`gojail_slurm_node_partition{node="n1",partition="main"} 1`,
		`gojail_slurm_node_gpus{node="n1",type="h100"} 2`,
		`gojail_slurm_node_gpus_allocated{node="n1",type="h100"} 1`,
		`gojail_slurm_node_gpus_allocated{node="n1",type="a100"} 0`,
		`gojail_slurm_gpus{type="h100"} 4`,
		`gojail_slurm_node_jobs{node="n1"} 1`,
		`gojail_slurm_node_jobs{node="n2"} 0`,
		`gojail_slurm_jobs{state="pending"} 401`,
		`gojail_slurm_jobs{state="running"} 1`,
		`gojail_slurm_partition_jobs_pending{partition="main",reason="JobHeldUser"} 401`,
		`gojail_slurm_rpc_calls_total{rpc="REQUEST_SUBMIT_BATCH_JOB"} 2`,
		`gojail_slurm_rpc_user_calls_total{user="alice"} 2`,
		`gojail_slurm_jobs_submitted_total 402`,
	)
	assert.Contains(t, text, "\ngojail_slurm_scheduler_cycles_total ")
	assert.Contains(t, text, "\ngojail_slurm_backfill_cycles_total ")
	assert.NotContains(t, text, "data_stale{source=\"nodes\"} 1")

	// Many scrape: Slurm is asked as often as the exporter says, and that is three times an interval at most.
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { scrape(c, address) })
	}
	all.Wait()
	text = scrape(c, address)
	intervals := readSeries(t, text, `gojail_exporter_commands_total{source="nodes"}`)
	assert.LessOrEqual(t, float64(strings.Count(readFile(c, asked), "\n")), 3*(intervals+1), readFile(c, asked))

	require.Zero(t, c.Root("scancel", job).Code)
	requireSeries(t, c, address, `gojail_slurm_node_jobs{node="n1"} 0`)

	require.Zero(t, c.Root("scontrol", "shutdown", "slurmctld").Code)
	text = requireSeries(t, c, address, `gojail_slurm_controller_up 0`, `gojail_exporter_data_stale{source="nodes"} 1`)
	assert.Equal(t, 1.0, readSeries(t, text, `gojail_slurm_node_gpus{node="n1",type="a100"}`), "it is shown with its age")
	assert.Greater(t, readSeries(t, text, `gojail_exporter_data_age_seconds{source="nodes"}`), 1.0)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		text = scrape(c, address)
		return !strings.Contains(text, "gojail_slurm_node")
	}))
	assert.Contains(t, text, "\ngojail_slurm_controller_up 0\n")
	r := c.Root("gojail-exporter", "--once", "--timeout=5s")
	assert.Equal(t, 1, r.Code, r)
	assert.Contains(t, r.Stderr, "gojail-exporter: slurmctld does not answer; see: scontrol ping\n")
	assert.Contains(t, r.Stdout, "\ngojail_slurm_controller_up 0\n")

	require.Zero(t, c.Do(harness.Command{Dir: "/", Args: []string{"/usr/sbin/slurmctld"}}).Code)
	requireSeries(t, c, address, `gojail_slurm_controller_up 1`, `gojail_exporter_data_stale{source="nodes"} 0`, `gojail_slurm_node_flag{flag="drain",node="n2"} 1`)
}

// TestExporterFormats: text and JSON of one release say the same. Where Slurm has no data_parser/v0.0.42, it is asked for text, and
// --format=json fails.
func TestExporterFormats(t *testing.T) {
	c := harness.Start(t, withTypedGPUs)
	formats, automatic := []string{"text", "auto", "json"}, "json"
	if !strings.Contains(c.Root("sh", "-c", "ls "+strings.ReplaceAll(harness.PluginDirs(t), ":", " ")).Stdout, "data_parser_v0_0_42") {
		formats, automatic = formats[:2], "text"
		r := c.Root("gojail-exporter", "--once", "--format=json")
		assert.Equal(t, 1, r.Code, r)
		assert.Contains(t, r.Stderr, "gojail-exporter: cannot read nodes, diag from Slurm: the lines above say why; "+
			"if Slurm's plugins for JSON (data_parser, serializer/json) are missing, use --format=auto, which reads text then\n")
	}
	require.Zero(t, c.Root("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a Partitions=b [c@d]").Code)
	pages := map[string]string{}
	for _, format := range formats {
		r := c.Root("gojail-exporter", "--once", "--format="+format)
		require.Zero(t, r.Code, r)
		var lines []string
		for line := range strings.Lines(r.Stdout) {
			if strings.HasPrefix(line, "gojail_slurm_node") || strings.HasPrefix(line, "gojail_slurm_gpus") || strings.HasPrefix(line, "gojail_slurm_partition") {
				lines = append(lines, line)
			}
		}
		pages[format] = strings.Join(lines, "")
		if format == "auto" {
			assert.Contains(t, r.Stdout, `gojail_exporter_slurm_info{format="`+automatic+`",release="`)
		}
	}
	assert.Contains(t, pages["text"], `reason="a Partitions=b [c@d]",user="root"`)
	for _, format := range formats {
		assert.Equal(t, pages["text"], pages[format], format)
	}
}

// The standby controller of the cluster: a host of its own as far as slurmctld and the exporter look.
const standbyAddress = "192.0.2.77"

var onStandby = []string{"unshare", "--uts", "--mount", "sh", "-c", `hostname standby && mount -t tmpfs -o mode=755 tmpfs /run/slurm && chown slurm /run/slurm && exec "$@"`, "sh"}

// TestExporterBesideBothControllers: the exporter beside the standby is quiet until its controller takes over.
func TestExporterBesideBothControllers(t *testing.T) {
	options := withWrappers(harness.Options{Plugin: true, SlurmConf: map[string]string{
		"SlurmctldHost":           "head(" + harness.Address + ")\nSlurmctldHost=standby(" + standbyAddress + ")",
		"CommunicationParameters": "NoCtldInAddrAny",
		"SlurmctldTimeout":        "10",
	}})
	c := harness.Start(t, options)
	require.Zero(t, c.Root("ip", "address", "add", standbyAddress+"/32", "dev", "lo").Code)
	hosts := readFile(c, "/etc/hosts")
	require.NoError(t, os.WriteFile(c.Path("/etc/hosts"), []byte(hosts+standbyAddress+" standby\n"), 0o644))
	r := c.Do(harness.Command{Dir: "/", Args: append(slices.Clone(onStandby), "/usr/sbin/slurmctld", "-L", "/var/log/slurm/standby.log")})
	require.Zero(t, r.Code, r)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(c.Root("scontrol", "ping").Stdout, "standby is UP") }),
		"%s\n%s", c.Root("scontrol", "ping"), readFile(c, "/var/log/slurm/standby.log"))
	require.Zero(t, c.Root("install", "-m", "666", "/dev/null", asked).Code)

	const first, second = "127.0.0.1:9948", "127.0.0.1:9949"
	startExporter(t, c, first, "unshare", "--uts", "sh", "-c", `hostname head && exec "$@"`, "sh")
	startExporter(t, c, second, onStandby...)
	requireSeries(t, c, first, `gojail_exporter_active 1`, `gojail_slurm_controller_up 1`, `gojail_slurm_controller_responding{controller="standby"} 1`,
		`gojail_slurm_node_state{node="n1",state="idle"} 1`, `gojail_exporter_data_stale{source="diag"} 0`)
	text := requireSeries(t, c, second, `gojail_exporter_active 0`)
	assert.NotContains(t, text, "gojail_slurm_")
	time.Sleep(25 * time.Second) // two intervals
	commands := map[string]int{}
	for line := range strings.Lines(readFile(c, asked)) {
		host, command, _ := strings.Cut(line, " ")
		if host == "standby" {
			commands[strings.TrimSpace(command)]++
		}
	}
	assert.Len(t, commands, 1, "the standby asks for nothing")
	assert.GreaterOrEqual(t, commands["scontrol ping"], 2)
	assert.NotContains(t, readFile(c, "/var/log/slurm/standby.log"), "standby mode")
	text = scrape(c, first)
	intervals := readSeries(t, text, `gojail_exporter_commands_total{source="nodes"}`)
	assert.LessOrEqual(t, float64(strings.Count(readFile(c, asked), "head ")), 3*(intervals+1), readFile(c, asked))

	pid := strings.TrimSpace(readFile(c, "/run/slurm/slurmctld.pid"))
	require.Zero(t, c.Root("kill", "-KILL", pid).Code)
	requireSeries(t, c, second, `gojail_exporter_active 1`, `gojail_slurm_controller_up 1`, `gojail_slurm_node_state{node="n1",state="idle"} 1`,
		`gojail_slurm_controller_responding{controller="head"} 0`)
	text = requireSeries(t, c, first, `gojail_exporter_active 0`)
	assert.NotContains(t, text, "gojail_slurm_", "one of the two")
}
