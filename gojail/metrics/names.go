// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/gojail/gojail/internal/metric"

// newGauge returns a gauge with the label node. The label is needed because two slurmds of one machine write a file
// each, and the series of all files of the textfile collector must differ.
func newGauge(name, help string, labels ...string) metric.Family {
	return metric.NewGauge(name, help, append([]string{"node"}, labels...)...)
}

// newCounter returns a counter with the label node.
func newCounter(name, help string, labels ...string) metric.Family {
	return metric.NewCounter(name, help, append([]string{"node"}, labels...)...)
}

// The label of a job is job_id: Prometheus sets the label job itself.
var (
	buildInfo     = newGauge("gojail_build_info", "The version of gojail, as a label.", "version")
	metricsTime   = newGauge("gojail_metrics_time_seconds", "When this file was written, in Unix time.")
	metricsErrors = newGauge("gojail_metrics_errors", "Number of errors that made this file incomplete.")

	jobInfo = newGauge("gojail_job_info", "A job with a sandbox, with its jail and the version of that.", "job_id",
		"user", "jail", "version")
	jobStart = newGauge("gojail_job_start_time_seconds", "When the job's first sandbox was made, in Unix time.",
		"job_id")
	jobGPU = newGauge("gojail_job_gpu", "A GPU or a MIG instance that steps of the job got.", "job_id", "user",
		"jail", "gpu", "UUID", "GPU_I_ID", "device", "pci_bus_id")
	jobVF = newGauge("gojail_job_vf", "A VF of the job.", "job_id", "user", "rail", "pci", "netdev", "rdma", "pf",
		"vf")

	jobMemory = newGauge("gojail_job_memory_bytes", "Memory of the job's processes and of its files in memory.",
		"job_id")
	jobMemoryPeak = newGauge("gojail_job_memory_peak_bytes", "The most memory that the job had so far.", "job_id")
	jobCPU        = newCounter("gojail_job_cpu_seconds_total", "Time that the job's processes ran.", "job_id")

	jobScratch = newGauge("gojail_job_scratch_bytes",
		"Bytes of the node's disk that files of the job take below the scratch directory.", "job_id")
	jobScratchLimit = newGauge("gojail_job_scratch_limit_bytes", "Bytes that they may take.", "job_id")

	stepsEntered = newCounter("gojail_steps_entered_total", "Steps that entered their jail since the node booted.",
		"jail")
	stepsFailed = newCounter("gojail_steps_failed_total", "Steps that did not enter, by what failed.", "jail",
		"reason")
	stepEntry = newGauge("gojail_step_entry_duration_seconds", "How long the plugin prepared a step that entered.",
		"jail")

	templateInfo = newGauge("gojail_template_info", "A jail that is assembled on this node.", "jail", "key",
		"version")
	templateStart = newGauge("gojail_template_start_time_seconds", "When the jail was assembled, in Unix time.",
		"jail")
	templateCurrent = newGauge("gojail_template_current",
		"1 if the next job gets this template, 0 if the configuration has changed since.", "jail")

	sandboxCount = newGauge("gojail_sandboxes", "Number of sandboxes of jobs.", "jail", "state")
	endsFailed   = newGauge("gojail_job_ends_failed", "Number of jobs whose end failed and is to be tried again.")

	vfCount        = newGauge("gojail_vfs", "Number of VFs that are not free.", "rail", "state")
	vfInQuarantine = newGauge("gojail_vf_quarantined", "A VF in quarantine, which no job gets.", "rail", "pci")
)
