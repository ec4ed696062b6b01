// SPDX-License-Identifier: Apache-2.0

// Package report says what a run found: to people, to programs (JSON, the exit codes
// of Nagios plugins), to Prometheus through node_exporter's textfile collector, and
// to the system's log. It changes nothing and decides nothing.
package report
