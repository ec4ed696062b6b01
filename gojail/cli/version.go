// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/version"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Prints the version of this command, and of the contract between the plugin and
the library, which must be equal in all parts on a node.`,
		Example:     `  gojail version`,
		Args:        cmdline.TakeNoArgument("it prints the version"),
		Annotations: map[string]string{"anybody": "yes"},
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), formatVersion())
		},
	}
}

func formatVersion() string {
	return fmt.Sprintf("gojail %s, contract %d, %s", version.Text(), contract.Version, runtime.Version())
}
