// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/procfs"
)

func newForgetCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:   "forget CHECK",
		Short: "Make a check forget findings that it keeps until the node boots",
		Long: `Some checks keep their findings until the node boots: errors in the kernel's log, XIDs
of a GPU, memory errors. After a repair without a reboot, forget makes such a check
start over. A fault that persists or recurs is found again. The next runs undrain the
node if all checks are good; forget itself changes nothing in Slurm.`,
		Example:           "  gojail-healthcheck forget xid",
		Args:              requireCheckName,
		ValidArgsFunction: completeCheck,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(checks.Names(), args[0]) {
				return newUnknownCheckError(args[0])
			}
			c, err := n.loadConfigAsRoot(cmd)
			if err != nil {
				return err
			}
			return n.forgetCheck(cmd, c, args[0])
		},
	}
}

func (n *node) forgetCheck(cmd *cobra.Command, c *config.Config, check string) error {
	store, err := n.openStore(c)
	if err != nil {
		return err
	}
	lock, err := n.takeRunLock(context.Background(), c.Total)
	if err != nil {
		return err
	}
	defer lock.Close()
	boot, err := procfs.ReadBootID(n.roots.Proc)
	if err != nil {
		return err
	}
	history, err := store.ReadHistory(boot)
	if err != nil {
		return err
	}
	forgotten, err := checks.ReadForgotten(n.roots)
	if err != nil {
		return err
	}
	known, err := history.ForgetCheck(check, forgotten)
	if err != nil {
		return err
	}
	if !known {
		_, err = fmt.Fprintf(cmd.OutOrStdout(),
			"no state of %s is stored on %s; if slurm.conf has another name for this node, pass it with --node\n",
			check, n.name)
		return err
	}
	if err := store.SaveHistory(history); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s starts over with the next run\n", check)
	return err
}
