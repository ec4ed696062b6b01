// SPDX-License-Identifier: Apache-2.0

// gojail is the administrator's command.
package main

import (
	"os"

	"github.com/gojail/gojail/gojail/cli"
)

func main() { os.Exit(cli.Execute()) }
