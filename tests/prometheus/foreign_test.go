// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/metric/metrictest"
)

// dcgm are the metrics of dcgm-exporter (etc/default-counters.csv there), with a value for the stand-in.
var dcgm = map[string]float64{
	"DCGM_FI_DEV_GPU_UTIL":            87,
	"DCGM_FI_DEV_FB_USED":             40000,
	"DCGM_FI_DEV_POWER_USAGE":         512.5,
	"DCGM_FI_DEV_GPU_TEMP":            61,
	"DCGM_FI_DEV_XID_ERRORS":          0,
	"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.42,
	"DCGM_FI_PROF_GR_ENGINE_ACTIVE":   0.5,
}

// vfMetric matches what gojail exports of a job with VFs. The cards are in the VM of the tests alone (tests/vm/inside).
var vfMetric = regexp.MustCompile(`^gojail_(job_vf|job_network_|job_rdma_|vfs|vf_quarantined)`)

// absent are the other metrics of gojail that this machine cannot have, with the labels that they have, and why.
var absent = map[string]struct{ labels, why string }{
	"gojail_job_scratch_bytes":                   {`job_id="JOB",node="n1"`, "project quotas"},
	"gojail_job_scratch_limit_bytes":             {`job_id="JOB",node="n1"`, "project quotas"},
	"gojail_health_nccl_round_status":            {``, "a round of all_reduce_perf on GPUs"},
	"gojail_health_nccl_round_timestamp_seconds": {``, "a round of all_reduce_perf on GPUs"},
	"gojail_health_nccl_busbw_bytes_per_second": {`node="n1",partner=""} 4e11
gojail_health_nccl_busbw_bytes_per_second{node="n1",partner="n2"`, "a round of all_reduce_perf on GPUs"},
	"gojail_health_nccl_busbw_expected_bytes_per_second": {`node="n1",partner=""} 4.6e11
gojail_health_nccl_busbw_expected_bytes_per_second{node="n1",partner="n2"`, "a round of all_reduce_perf on GPUs"},
	"gojail_health_nccl_test_passed":        {`node="n1",partner=""`, "a round of all_reduce_perf on GPUs"},
	"gojail_health_rdma_link_downed_total":  {`node="n1",port="mlx5_0/1"`, "an RDMA card"},
	"gojail_health_rdma_port_errors_total":  {`node="n1",port="mlx5_0/1",counter="symbol_error"`, "an RDMA card"},
	"gojail_health_memory_errors_total":     {`node="n1",controller="mc0",kind="ce"`, "a memory controller that EDAC knows"},
	"gojail_health_gpu_nvlink_errors_total": {`node="n1",gpu="0"`, "NVLinks"},
}

// elsewhere are metrics of gojail-exporter that this site's Slurm does not have; its own tests have them.
var elsewhere = map[string]string{
	"gojail_slurm_scheduler_exits_total":            "Slurm 24.11 and later",
	"gojail_slurm_backfill_exits_total":             "Slurm 24.11 and later",
	"gojail_slurm_backfill_cycle_mean_seconds":      "a cycle of backfill",
	"gojail_slurm_backfill_last_cycle_time_seconds": "a cycle of backfill",
}

// isForeign returns where a metric comes from that is not exported on the machine, or "".
func isForeign(metric string) string {
	if _, ok := dcgm[metric]; ok {
		return "dcgm-exporter"
	}
	if vfMetric.MatchString(metric) {
		return "cards with SR-IOV"
	}
	return absent[metric].why
}

// readPage returns the labels of each metric of docs/metrics.md, which a test compares with what gojail writes.
func readPage(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	for _, m := range metrictest.ReadPage(t) {
		metrics[m.Name] = m.Labels
	}
	return metrics
}

// writeDCGM writes what dcgm-exporter would of the GPUs, with the labels that it has (internal/pkg/rendermetrics there). Of a GPU with
// MIG it tells of the instances, and not of how busy they are, as the driver does not.
func writeDCGM(text *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(dcgm)) {
		for i, uuid := range uuids {
			gpu := fmt.Sprintf("%s{gpu=\"%d\",UUID=%q,pci_bus_id=\"00000000:%d0:00.0\",device=\"nvidia%[2]d\",modelName=\"NVIDIA H100 80GB HBM3\"", name, i, uuid, i+1)
			end := fmt.Sprintf(",hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"570.86.15\"} %g\n", dcgm[name])
			if i < len(uuids)-1 {
				text.WriteString(gpu + end)
				continue
			}
			for _, id := range slices.Sorted(maps.Keys(instances)) {
				if name != "DCGM_FI_DEV_GPU_UTIL" {
					fmt.Fprintf(text, "%s,GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"%d\"%s", gpu, id, end)
				}
			}
		}
	}
}

// writeStandIn replaces what the stand-in exports. Counters are of that moment, in seconds.
func (s *site) writeStandIn(t *testing.T, page map[string][]string, job string, moment int) {
	t.Helper()
	var text strings.Builder
	writeDCGM(&text)
	values := strings.NewReplacer("JOB", job)
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		fmt.Fprintf(&text, "%s{%s} %d\n", name, values.Replace(absent[name].labels), 1000*moment)
	}
	known := map[string]string{"job_id": job, "user": "alice", "rail": "rail0", "pci": "0000:86:00.2", "netdev": "net1", "rdma": "mlx5_3", "pf": "ens1",
		"vf": "1", "device": "mlx5_3", "port": "1", "state": "quarantined"}
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if !vfMetric.MatchString(name) {
			continue
		}
		labels := `node="n1"`
		for _, label := range page[name] {
			require.Contains(t, known, label, name)
			labels += fmt.Sprintf(",%s=%q", label, known[label])
		}
		value := 1
		if strings.HasSuffix(name, "_total") {
			value = 1000 * moment
		}
		fmt.Fprintf(&text, "%s{%s} %d\n", name, labels, value)
		if name == "gojail_vfs" {
			fmt.Fprintf(&text, "%s{%s} 3\n", name, strings.Replace(labels, "quarantined", "in_use", 1))
		}
	}
	path := s.Path(standInFiles + "/stand-in.prom")
	require.NoError(t, os.WriteFile(path+".new", []byte(text.String()), 0o644))
	require.NoError(t, os.Rename(path+".new", path))
}
