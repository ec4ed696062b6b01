// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/build"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/unpack"
)

func newJailEditCommand(j *jailCommand) *cobra.Command {
	r := &build.Request{Policy: unpack.Policy{Devices: unpack.DevicesDrop}}
	cmd := &cobra.Command{
		Use:   "edit NAME [-- COMMAND [ARGUMENTS]]",
		Short: "Make a new version of a changed copy of the current one",
		Long: `Copies the current version, runs a shell or a command in a sandbox of the copy, as
root and on the node's network, and makes the copy a new version if it ends with
0. Otherwise the copy is removed. The current version and its jobs are not
touched; no job gets the new version before "gojail jail switch".

The sandbox has a writable root, and nothing else of the node's files. Its root
owns the copy, and is no user of the node, if the store's file system can map ids
(ext4, xfs, btrfs). Elsewhere, as on NFS, it is the node's uid 0 without root's
capabilities; before Linux 6.12 it can open no Unix sockets then. The version
keeps the format of the one it is copied from.`,
		Example: `  gojail jail edit debian
  gojail jail edit debian -- sh -c 'apt-get update && apt-get -y upgrade'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 || len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
				return fmt.Errorf(
					"gojail jail edit needs the name of a jail, and -- before a command; see: gojail jail edit --help")
			}
			return nil
		},
		ValidArgsFunction: j.completeStored,
		RunE:              func(cmd *cobra.Command, args []string) error { return j.edit(cmd, r, args) },
	}
	cmd.Flags().BoolVar(&r.Policy.Setuid, "keep-setuid", false,
		"keep set-ID bits and file capabilities, also outside jails")
	cmd.Flags().BoolVar(&r.Wait, "wait", false, "wait while somebody else builds this jail")
	return cmd
}

func (j *jailCommand) edit(cmd *cobra.Command, r *build.Request, args []string) error {
	jail, err := j.openJailForChange(cmd, args[0])
	if err != nil {
		return err
	}
	if r.Targets, err = j.planTargets(args[0]); err != nil {
		return err
	}
	r.Source, r.By, r.Self = "edit", findAuthor(), unpackSelf
	if len(args) > 1 { // without arguments, which may be secrets: users can read the records
		r.Source += ": " + args[1]
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	record, err := build.Edit(ctx, jail, *r,
		func(_ context.Context, root string) error { return j.runIn(root, args[1:]) })
	var code cmdline.SilentExit
	if errors.As(err, &code) {
		return fmt.Errorf("the command ended with %d: there is no new version of jail %s", int(code), args[0])
	}
	if record == nil {
		return fmt.Errorf("there is no new version of jail %s: %w", args[0], err)
	}
	printRecord(cmd.OutOrStdout(), args[0], record)
	return err // the version is built, but something of the edit is left
}
