// SPDX-License-Identifier: Apache-2.0

package series

import "github.com/gojail/gojail/internal/metric"

// The exporter itself.
var (
	buildInfo = metric.NewGauge("gojail_exporter_build_info", "The version of gojail-exporter, as a label.",
		"version")
	slurmInfo = metric.NewGauge("gojail_exporter_slurm_info",
		"The release of Slurm's commands on this host, and the format that is asked for.", "release", "format")
	active = metric.NewGauge("gojail_exporter_active",
		"1 if this host asks for the cluster, 0 on the host of a standby controller.")
	dataAge = metric.NewGauge("gojail_exporter_data_age_seconds",
		"Time since a command began that succeeded. No series: none has yet.", "source")
	dataStale = metric.NewGauge("gojail_exporter_data_stale",
		"1 if the last command failed, or its data is too old and no longer here.", "source")
	commands        = metric.NewCounter("gojail_exporter_commands_total", "Commands of Slurm that were run.", "source")
	commandFailures = metric.NewCounter("gojail_exporter_command_failures_total", "Commands of Slurm that failed.",
		"source", "reason")
	oddRecords = metric.NewCounter("gojail_exporter_odd_records_total",
		"Records and values that could not be read, and have no series or not all.", "source")
	commandTime = metric.NewGauge("gojail_exporter_command_duration_seconds", "How long the last command took.",
		"source")
)

// Controllers.
var (
	controllerUp = metric.NewGauge("gojail_slurm_controller_up",
		"1 if slurmctld answered in the last interval, 0 if it did not.")
	controllerResponding = metric.NewGauge("gojail_slurm_controller_responding",
		"1 if this controller answered the last scontrol ping.", "controller")
)

// Nodes.
var (
	nodeState = metric.NewGauge("gojail_slurm_node_state", "The base state of the node.", "node", "state")
	nodeFlag  = metric.NewGauge("gojail_slurm_node_flag", "A flag of the state of the node, such as drain.",
		"node", "flag")
	nodeReason = metric.NewGauge("gojail_slurm_node_reason", "Why the node is drained or down, and who said so.",
		"node", "reason", "user")
	nodeReasonTime = metric.NewGauge("gojail_slurm_node_reason_time_seconds",
		"When the reason was given, in Unix time.", "node")
	nodePartition     = metric.NewGauge("gojail_slurm_node_partition", "A partition of the node.", "node", "partition")
	nodeJobs          = metric.NewGauge("gojail_slurm_node_jobs", "Number of running jobs on the node.", "node")
	nodeGPUs          = metric.NewGauge("gojail_slurm_node_gpus", "Number of GPUs of the node.", "node", "type")
	nodeGPUsAllocated = metric.NewGauge("gojail_slurm_node_gpus_allocated",
		"Number of GPUs of the node that jobs have.", "node", "type")

	nodes        = metric.NewGauge("gojail_slurm_nodes", "Number of nodes, by base state.", "state")
	nodesFlagged = metric.NewGauge("gojail_slurm_nodes_flagged", "Number of nodes with a flag.", "flag")
	nodesSlurmd  = metric.NewGauge("gojail_slurm_nodes_slurmd", "Number of nodes, by the version of their slurmd.",
		"version")
	gpus          = metric.NewGauge("gojail_slurm_gpus", "Number of GPUs, by type.", "type")
	gpusAllocated = metric.NewGauge("gojail_slurm_gpus_allocated", "Number of GPUs that jobs have, by type.", "type")

	partitionNodes = metric.NewGauge("gojail_slurm_partition_nodes",
		"Number of nodes of the partition, by base state.", "partition", "state")
	partitionCPUs = metric.NewGauge("gojail_slurm_partition_cpus",
		"Number of CPUs of the nodes of the partition.", "partition")
	partitionCPUsAllocated = metric.NewGauge("gojail_slurm_partition_cpus_allocated",
		"Number of them that jobs have, of any partition.", "partition")
	partitionGPUs = metric.NewGauge("gojail_slurm_partition_gpus",
		"Number of GPUs of the nodes of the partition.", "partition", "type")
	partitionGPUsAllocated = metric.NewGauge("gojail_slurm_partition_gpus_allocated",
		"Number of them that jobs have, of any partition.", "partition", "type")
)

// Jobs.
var (
	jobs = metric.NewGauge("gojail_slurm_jobs",
		"Number of jobs and tasks of job arrays. Those that ended are known for MinJobAge seconds.", "state")
	partitionJobs = metric.NewGauge("gojail_slurm_partition_jobs", "Number of them in the partition.", "partition",
		"state")
	partitionPending = metric.NewGauge("gojail_slurm_partition_jobs_pending",
		"Number of those that wait, by Slurm's reason.", "partition", "reason")
)

// RPCs.
var (
	rpcCalls = metric.NewCounter("gojail_slurm_rpc_calls_total", "RPCs that slurmctld handled, by type.", "rpc")
	rpcTime  = metric.NewCounter("gojail_slurm_rpc_duration_seconds_total", "Time that slurmctld spent on them.",
		"rpc")
	rpcUserCalls = metric.NewCounter("gojail_slurm_rpc_user_calls_total",
		"RPCs that slurmctld handled, by user: of those with the most.", "user")
	rpcUserTime = metric.NewCounter("gojail_slurm_rpc_user_duration_seconds_total",
		"Time that slurmctld spent on them.", "user")

	schedulerExits = metric.NewCounter("gojail_slurm_scheduler_exits_total",
		"Cycles of the main scheduler, by why they ended.", "reason")
	backfillExits = metric.NewCounter("gojail_slurm_backfill_exits_total",
		"Cycles of the backfill scheduler, by why they ended.", "reason")
)

// second is what a number of microseconds is multiplied with.
const second = 1e-6

// diagValue is a value of sdiag, by its name in JSON, and its metric.
type diagValue struct {
	key    string
	factor float64
	family metric.Family
}

// diagValues are the values of sdiag that are numbers by themselves.
var diagValues = []diagValue{
	{"req_time_start", 1, metric.NewGauge("gojail_slurm_statistics_start_time_seconds",
		"Since when slurmctld counts, in Unix time.")},
	{"server_thread_count", 1, metric.NewGauge("gojail_slurm_server_threads",
		"Number of RPCs that slurmctld handles now.")},
	{"agent_queue_size", 1, metric.NewGauge("gojail_slurm_agent_queue_size", "Number of messages to nodes that wait.")},
	{"agent_count", 1, metric.NewGauge("gojail_slurm_agents", "Number of agents that send messages to nodes.")},
	{"agent_thread_count", 1, metric.NewGauge("gojail_slurm_agent_threads", "Number of their threads.")},
	{"dbd_agent_queue_size", 1, metric.NewGauge("gojail_slurm_dbd_agent_queue_size",
		"Number of messages to slurmdbd that wait.")},

	{"jobs_submitted", 1, metric.NewCounter("gojail_slurm_jobs_submitted_total", "Jobs that were submitted.")},
	{"jobs_started", 1, metric.NewCounter("gojail_slurm_jobs_started_total", "Jobs that were started.")},
	{"jobs_completed", 1, metric.NewCounter("gojail_slurm_jobs_completed_total", "Jobs that ended.")},
	{"jobs_canceled", 1, metric.NewCounter("gojail_slurm_jobs_canceled_total", "Jobs that were canceled.")},
	{"jobs_failed", 1, metric.NewCounter("gojail_slurm_jobs_failed_total",
		"Jobs that failed because of slurmd or other errors of Slurm.")},

	{"schedule_cycle_total", 1, metric.NewCounter("gojail_slurm_scheduler_cycles_total",
		"Cycles of the main scheduler.")},
	{"schedule_cycle_last", second, metric.NewGauge("gojail_slurm_scheduler_cycle_last_seconds",
		"How long its last cycle took.")},
	{"schedule_cycle_max", second, metric.NewGauge("gojail_slurm_scheduler_cycle_max_seconds",
		"How long its longest cycle took.")},
	{"schedule_cycle_mean", second, metric.NewGauge("gojail_slurm_scheduler_cycle_mean_seconds",
		"How long its cycles took on average.")},
	{"schedule_cycle_mean_depth", 1, metric.NewGauge("gojail_slurm_scheduler_depth_mean",
		"Number of jobs that a cycle looked at, on average.")},
	{"schedule_queue_length", 1, metric.NewGauge("gojail_slurm_scheduler_queue_length",
		"Number of jobs that wait, at its last cycle.")},

	{"bf_backfilled_jobs", 1, metric.NewCounter("gojail_slurm_backfill_jobs_total",
		"Jobs that backfill started since slurmctld started.")},
	{"bf_backfilled_het_jobs", 1, metric.NewCounter("gojail_slurm_backfill_het_components_total",
		"Components of heterogeneous jobs that it started.")},
	{"bf_cycle_counter", 1, metric.NewCounter("gojail_slurm_backfill_cycles_total",
		"Cycles of the backfill scheduler.")},
	{"bf_cycle_last", second, metric.NewGauge("gojail_slurm_backfill_cycle_last_seconds",
		"How long its last cycle took.")},
	{"bf_cycle_max", second, metric.NewGauge("gojail_slurm_backfill_cycle_max_seconds",
		"How long its longest cycle took.")},
	{"bf_cycle_mean", second, metric.NewGauge("gojail_slurm_backfill_cycle_mean_seconds",
		"How long its cycles took on average.")},
	{"bf_when_last_cycle", 1, metric.NewGauge("gojail_slurm_backfill_last_cycle_time_seconds",
		"When its last cycle ended, in Unix time.")},
	{"bf_last_depth", 1, metric.NewGauge("gojail_slurm_backfill_depth",
		"Number of jobs that its last cycle looked at.")},
	{"bf_last_depth_try", 1, metric.NewGauge("gojail_slurm_backfill_depth_tried",
		"Number of them that it tried to start.")},
	{"bf_depth_mean", 1, metric.NewGauge("gojail_slurm_backfill_depth_mean",
		"Number of jobs that a cycle looked at, on average.")},
	{"bf_depth_mean_try", 1, metric.NewGauge("gojail_slurm_backfill_depth_tried_mean",
		"Number of them that it tried to start, on average.")},
	{"bf_queue_len", 1, metric.NewGauge("gojail_slurm_backfill_queue_length",
		"Number of jobs that wait, at its last cycle.")},
	{"bf_queue_len_mean", 1, metric.NewGauge("gojail_slurm_backfill_queue_length_mean", "Likewise, on average.")},
	{"bf_table_size", 1, metric.NewGauge("gojail_slurm_backfill_table_size",
		"Number of times that its last cycle planned for.")},
	{"bf_table_size_mean", 1, metric.NewGauge("gojail_slurm_backfill_table_size_mean", "Likewise, on average.")},
}
