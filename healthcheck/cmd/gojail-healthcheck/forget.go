// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
)

func forgetCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:   "forget CHECK",
		Short: "Say that what a check found is mended, which it would keep until the node boots",
		Long: `Some checks keep what they saw until the node boots: errors in the kernel's log, XIDs
of a GPU, errors of memory. After a repair without a reboot, forget makes one start
anew. What is still wrong, or comes again, it finds again. The next runs undrain the
node if all is well; forget itself tells Slurm nothing.`,
		Example:           "  gojail-healthcheck forget xid",
		Args:              oneCheck,
		ValidArgsFunction: completeCheck,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(checks.Names(), args[0]) {
				return noCheck(args[0])
			}
			if os.Geteuid() != 0 {
				return errors.New("needs root")
			}
			c, err := n.load(cmd)
			if err != nil {
				return err
			}
			return n.forget(cmd, c, args[0])
		},
	}
}

func (n *node) forget(cmd *cobra.Command, c *config.Config, check string) error {
	store, err := n.store(c)
	if err != nil {
		return err
	}
	lock, err := alone(context.Background(), filepath.Join(n.runDir, "lock"), c.Total)
	if err != nil {
		return err
	}
	defer lock.Close()
	boot, err := os.ReadFile(filepath.Join(n.roots.Proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return err
	}
	history, err := store.History(strings.TrimSpace(string(boot)))
	if err != nil {
		return err
	}
	forgotten, err := checks.ForgetNow(n.roots)
	if err != nil {
		return err
	}
	known, err := history.Forget(check, forgotten)
	if err != nil {
		return err
	}
	if !known {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "nothing is remembered of %s on %s; if slurm.conf has another name for this node, give it with --node\n", check, n.name)
		return err
	}
	if err := store.Save(history); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s starts anew with the next run\n", check)
	return err
}
