// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a real Prometheus, with a real node_exporter, on a private Slurm on which jobs run, every
// query of every dashboard and of every alert.
//
// A metric that a query names must be exported there. Those of others (dcgm-exporter, slurmctld) and those of hardware that
// the machine lacks are in foreign_test.go, each with where it comes from; a stand-in exports them. A query that returns
// nothing must be in quiet_test.go with the reason.
package prometheus
