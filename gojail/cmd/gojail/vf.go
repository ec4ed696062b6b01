// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/gres"
	"github.com/gojail/gojail/netsetup/provision"
)

func vfCommand(n *localNode) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vf",
		Short: "Make this node's virtual network functions (VFs), list them, release one",
		Long: `A VF is a part of a network card that a job gets for itself. The policies of
network.toml say which cards have how many; see network.toml.example.`,
		Example: `  gojail vf apply --dry-run
  gojail vf ls`,
		Annotations: map[string]string{"anybody": "yes"},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(vfApplyCommand(n), vfListCommand(n), vfLiftCommand(n))
	return cmd
}

func vfApplyCommand(n *localNode) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the node's VFs as network.toml wants them",
		Long: `Brings cards, VFs and the mode of RDMA devices to what the policies of
network.toml want, and makes the files that gres.conf names (/dev/gojail). What
is right already is left alone, so it can run at any time; VFs last until the
node is booted, so it has to run before slurmd starts (gojail-vf.service).

Each change is a line. A card whose change fails is taken back to what it was,
the others go on. A number of VFs that would take one away from a job is
refused: drain the node first. While a job is given its VFs, this waits.

The exit code is 0 if the node is as network.toml wants it, else 1. A policy
that matches no card of the node is a warning. It is an error where its nodes
names the node, or where no policy matches although a card has SR-IOV: nodes
says which nodes a policy is for.`,
		Example: `  gojail vf apply --dry-run
  gojail vf apply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry {
				return n.showPlan(cmd)
			}
			return n.apply(cmd)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be done, and do nothing")
	return cmd
}

// apply holds the lock from before it looks at the VFs until they are as wanted.
func (n *localNode) apply(cmd *cobra.Command) error {
	cfg, err := n.loadNetwork()
	if err != nil {
		return err
	}
	lock, err := n.lockNetwork(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer lock.Close()
	h, err := n.hardware()
	if err != nil {
		return err
	}
	defer h.names.Close()
	plan, err := n.plan(cfg, h)
	if err != nil {
		return err
	}
	for _, warning := range plan.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	steps := 0
	err = provision.Apply(plan, h.Kernel, func(s *provision.Step) {
		steps++
		fmt.Fprintln(cmd.OutOrStdout(), s)
	})
	if err == nil && steps == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), plan.Idle())
	}
	return errors.Join(err, makeDeviceNodes(cfg, h, err == nil))
}

func (n *localNode) showPlan(cmd *cobra.Command) error {
	cfg, err := n.loadNetwork()
	if err != nil {
		return err
	}
	h, err := n.hardware()
	if err != nil {
		return err
	}
	defer h.names.Close()
	plan, err := n.plan(cfg, h)
	if err == nil {
		err = plan.Observe(h.Kernel)
	}
	if err != nil {
		return err
	}
	return plan.Render(cmd.OutOrStdout())
}

func (n *localNode) plan(cfg *config.Config, h hardware) (*provision.Plan, error) {
	jobs, quarantined, err := n.holders()
	if err != nil {
		return nil, err
	}
	inv, err := h.inventory()
	if err != nil {
		return nil, err
	}
	return provision.Make(cfg, inv, provision.Held{Jobs: jobs, Quarantined: quarantined})
}

// makeDeviceNodes makes slurmd's files. Where VFs could not be made, their own
// error was enough; with all VFs there, slurmd can start whatever else failed.
func makeDeviceNodes(cfg *config.Config, h hardware, applied bool) error {
	inv, err := h.inventory()
	if err != nil {
		return err
	}
	devices, err := gres.Devices(cfg, inv)
	switch {
	case err != nil && !applied:
		return nil
	case err != nil:
		return err
	}
	return gres.MakeFiles(h.Dev, devices)
}

func vfLiftCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "lift PCI",
		Short: "End the quarantine of a VF",
		Long: `A VF that could not be given back in order is quarantined: it may still be in a
job's namespace, or carry its VLAN, its MAC address or its rights. gojail sweep
tries again to put it right. If you have done that by hand, for instance by
making the card's VFs anew, lift the quarantine, and jobs get it again.`,
		Example: `  gojail vf ls
  gojail vf lift 0000:86:01.2`,
		Args: one("the PCI address of a VF, from: gojail vf ls"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := attach.Lift(n.netState(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "VF %s is no longer quarantined\n", args[0])
			return nil
		},
	}
}
