// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/build"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/gojail/unpack"
)

func newJailVerifyCommand(j *jailCommand) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify NAME [VERSION]",
		Short: "Compare a version with what was built",
		Long: `Reads all files of a version, without VERSION of the current one, and prints each
that was added, is missing, or differs in type, owner, mode, size, content, link
target or extended attributes. An image file is compared as a whole. It reads everything from the
storage; it changes nothing.

The exit code is 1 if there is a difference.`,
		Example: `  gojail jail verify debian
  gojail jail verify debian --json | jq '.differences[].path'`,
		Args:              takeJailAndVersion(false),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			jail, err := j.openJail(args[0])
			if err != nil {
				return err
			}
			id := store.Current
			if len(args) > 1 {
				id = args[1]
			}
			v, err := jail.Version(id)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			found := []unpack.Difference{}
			err = build.Verify(ctx, jail, v, unpackSelf, func(d unpack.Difference) {
				found = append(found, d)
				if !asJSON {
					fmt.Fprintln(cmd.OutOrStdout(), d)
				}
			})
			if err != nil {
				return err
			}
			if asJSON {
				err = cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"version": v.Version, "differences": found})
			} else if len(found) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "version %s of jail %s is as it was built\n", v.Version, args[0])
			}
			if err == nil && len(found) > 0 {
				return cmdline.SilentExit(1)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
