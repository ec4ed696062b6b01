// SPDX-License-Identifier: Apache-2.0

// Package report reports the result of a run: to people, to programs (JSON, the exit codes of
// Nagios plugins), to Prometheus through node_exporter's textfile collector, and to syslog. It
// changes nothing and decides nothing.
package report
