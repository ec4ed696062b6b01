// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/gres"
	"github.com/gojail/gojail/netsetup/provision"
)

func newVFCommand(n *localNode) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vf",
		Short: "Create and list this node's virtual network functions (VFs)",
		Long: `A VF is a part of a network card that one job uses exclusively. The policies of
network.toml define how many VFs each card has, and which cards are given whole;
see network.toml.example.`,
		Example: `  gojail vf apply --dry-run
  gojail vf ls`,
		Annotations: map[string]string{"anybody": "yes"},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newVFApplyCommand(n), newVFListCommand(n), newVFLiftCommand(n))
	return cmd
}

func newVFApplyCommand(n *localNode) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Create the node's VFs as network.toml defines them",
		Long: `Sets up cards, VFs and the mode of RDMA devices as the policies of network.toml
define them, and creates the files that gres.conf names (/dev/gojail). Settings
that are right are left alone, so it can run at any time; VFs are lost at a
reboot, so it must run before slurmd starts (gojail-vf.service).

Each change is printed as a line. If a change of a card fails, the card is
rolled back and the others continue. A number of VFs that would take one away
from a job is refused: drain the node first. The command waits while a job
gets its VFs.

The exit code is 0 if the node is as network.toml defines it, else 1. A policy
that matches no card of the node is a warning. It is an error where its key
nodes names the node, or where no policy matches although a card has SR-IOV:
nodes lists the nodes that a policy is for.`,
		Example: `  gojail vf apply --dry-run
  gojail vf apply`,
		Args: cmdline.TakeNoArgument("it applies network.toml"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry {
				return n.printPlan(cmd)
			}
			return n.applyPlan(cmd)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the changes without making them")
	return cmd
}

// applyPlan makes the changes, and holds the lock from the first look at the VFs until they are done.
func (n *localNode) applyPlan(cmd *cobra.Command) error {
	cfg, err := n.loadNetwork()
	if err != nil {
		return err
	}
	lock, err := n.lockNetwork(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer lock.Close()
	h, err := n.openHardware()
	if err != nil {
		return err
	}
	defer h.names.Close()
	plan, err := n.makePlan(cfg, h)
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
		fmt.Fprintln(cmd.OutOrStdout(), plan.ExplainIdle())
	}
	return errors.Join(err, n.createDeviceFiles(cfg, h, err == nil))
}

// printPlan prints the changes that applyPlan would make.
func (n *localNode) printPlan(cmd *cobra.Command) error {
	cfg, err := n.loadNetwork()
	if err != nil {
		return err
	}
	h, err := n.openHardware()
	if err != nil {
		return err
	}
	defer h.names.Close()
	plan, err := n.makePlan(cfg, h)
	if err == nil {
		err = plan.Observe(h.Kernel)
	}
	if err != nil {
		return err
	}
	return plan.Render(cmd.OutOrStdout())
}

// makePlan compares the node with network.toml, without changing it.
func (n *localNode) makePlan(cfg *config.Config, h hardware) (*provision.Plan, error) {
	jobs, quarantined, err := n.readHolders()
	if err != nil {
		return nil, err
	}
	inv, err := n.readInventory(h)
	if err != nil {
		return nil, err
	}
	return provision.MakePlan(cfg, inv, provision.Held{Jobs: jobs, Quarantined: quarantined})
}

// createDeviceFiles creates the files that slurmd expects. Where VFs are missing because applying failed,
// it reports nothing: that error was enough. With all VFs there, slurmd can start whatever else failed.
func (n *localNode) createDeviceFiles(cfg *config.Config, h hardware, applied bool) error {
	inv, err := n.readInventory(h)
	if err != nil {
		return err
	}
	devices, err := gres.ListDevices(cfg, inv)
	switch {
	case err != nil && !applied:
		return nil
	case err != nil:
		return err
	}
	return gres.MakeFiles(h.Dev, devices)
}

func newVFLiftCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "lift PCI",
		Short: "End the quarantine of a VF",
		Long: `A VF that could not be released completely is quarantined: it may still be in a
job's namespace, or have the job's VLAN, MAC address or rights. gojail sweep
tries again to repair it. If you have repaired it by hand, for instance by
recreating the card's VFs, lift the quarantine, and jobs get it again.`,
		Example: `  gojail vf ls
  gojail vf lift 0000:86:01.2`,
		Args: cmdline.TakeOneArgument("the PCI address of a VF, from: gojail vf ls"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := attach.Lift(cmd.Context(), n.networkState(), args[0], sayBusy(cmd.ErrOrStderr())); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "VF %s is no longer quarantined\n", args[0])
			return nil
		},
	}
}
