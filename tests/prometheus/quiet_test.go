// SPDX-License-Identifier: Apache-2.0

package prometheus_test

// quiet are the panels that rightly show nothing on this site, and why.
var quiet = map[string]string{
	"gojail-health: Silent for 10 minutes":       "the checks have just run",
	"gojail-cluster: Nodes with GPUs and no job": "both have the job",
	"gojail-health: Runs with errors":            "the run was complete",
	"gojail-health: Uncorrectable errors":        "its GPUs are well",
	"gojail-health: Corrected errors in an hour": "its GPUs are well",
	"gojail-health: Remapped rows":               "its GPUs are well",
	"gojail-health: Tests that failed":           "its tests with NCCL passed",
	"gojail-health: PCIe replays in an hour":     "its GPUs are well",
	"gojail-jails: Jails with several versions":  "its jails are not of a store",
	"gojail-jails: Templates out of date":        "gojail.toml is as it was",
	"gojail-jails: Metrics that are incomplete":  "all could be read",
}

// uncertain are the panels that show what the machine does besides, or nothing.
var uncertain = map[string]bool{
	"gojail-health: Processes in D state": true,
	"gojail-health: Zombies":              true,
	// Backfill has had a cycle or not; 22.05 does not tell why cycles end; Slurm may have been too busy once.
	"gojail-scheduler: Backfill":                             true,
	"gojail-scheduler: Since the last cycle of backfill":     true,
	"gojail-scheduler: Why cycles of the main scheduler end": true,
	"gojail-scheduler: Why cycles of backfill end":           true,
	"gojail-scheduler: Commands of gojail-exporter":          true,
}

// expected is what panels show while the job runs, by dashboard and title.
func expected(job string) map[string]string {
	return map[string]string{
		"gojail-job: Nodes":                            "2",
		"gojail-job: GPUs":                             "4",
		"gojail-job: GPU use":                          "n1 GPU 0 87; n2 GPU 1 87 n1 GPU 2 1 50; n2 GPU 2 2 50",
		"gojail-job: Memory of GPUs":                   "n1 GPU 0 4e+04; n1 GPU 2 1 4e+04; n2 GPU 1 4e+04; n2 GPU 2 2 4e+04",
		"gojail-job: VFs":                              "1",
		"gojail-job: Nodes and jails":                  "n1 alice debian; n2 alice debian",
		"gojail-job: Checks that failed while it ran":  "n1 daemons drain; n2 daemons drain",
		"gojail-job: VFs of the job":                   "n1 rail0 net1 mlx5_3 0000:86:00.2 ens1 1",
		"gojail-node: Jobs in jails":                   "1",
		"gojail-node: GPUs of jobs":                    "2",
		"gojail-node: GPU use":                         "GPU 0 job " + job + " 87 GPU 2 1 job " + job + " 50",
		"gojail-node: VFs of jobs":                     "3",
		"gojail-node: VFs in quarantine":               "1",
		"gojail-node: Bad checks":                      "1",
		"gojail-node: Jobs":                            job + " alice debian",
		"gojail-node: Health checks that warn or fail": "clock drain 2; daemons drain 3; nvidia-smi drain 2",
		"gojail-node: GPUs with their jobs":            "0 " + job + " alice " + uuids[0] + "; 2 1 " + job + " alice " + uuids[2],
		"gojail-cluster: Controller":                   "1",
		"gojail-cluster: Nodes":                        "2",
		"gojail-cluster: Drained nodes":                "1",
		"gojail-cluster: Jobs that wait":               "1",
		"gojail-cluster: Jobs that run":                "1",
		"gojail-scheduler: Controller":                 "1",
		"gojail-scheduler: Controllers":                "head 1",
		"gojail-scheduler: Stale data":                 "0",
		"gojail-jails: Jobs in jails":                  "1",
		"gojail-jails: Damaged sandboxes":              "1",
		"gojail-jails: Ends that failed":               "0",
		"gojail-jails: Nodes per version":              "debian 2",
		"gojail-rails: VFs of jobs":                    "3",
		"gojail-rails: VFs in quarantine":              "1",
		"gojail-rails: Jobs with VFs":                  "1",
		"gojail-rails: Each VF in quarantine":          "n1 rail0 0000:86:00.2",
		"gojail-rails: Each VF of a job":               "n1 rail0 " + job + " alice 0000:86:00.2 mlx5_3",
		"gojail-health: Nodes that report":             "2",
		"gojail-health: Drained":                       "0",
		"gojail-health: Nodes with a bad check":        "2",
		"gojail-health: Checks that count as bad":      "n1 daemons drain; n2 daemons drain",
	}
}
