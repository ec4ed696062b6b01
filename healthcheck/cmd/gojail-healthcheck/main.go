// SPDX-License-Identifier: Apache-2.0

// gojail-healthcheck is the HealthCheckProgram of a node.
package main

import (
	"os"

	"github.com/gojail/gojail/healthcheck/cli"
)

func main() { os.Exit(cli.Execute()) }
