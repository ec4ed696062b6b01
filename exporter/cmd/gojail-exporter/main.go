// SPDX-License-Identifier: Apache-2.0

// gojail-exporter is the exporter for Prometheus of what slurmctld knows.
package main

import (
	"os"

	"github.com/gojail/gojail/exporter/cli"
)

func main() { os.Exit(cli.Execute()) }
