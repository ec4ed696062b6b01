// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/store"
)

func newJailRmCommand(j *jailCommand) *cobra.Command {
	var force bool
	var nodes nodesFlags
	cmd := &cobra.Command{
		Use:   "rm NAME VERSION",
		Short: "Remove a version of a jail",
		Long: `Removes a version that is not current and that no node and no job uses, which is
determined as by "gojail jail gc". With --force it is not determined: a node that
still has the version, for new steps or for running jobs, loses its files.`,
		Example:           `  gojail jail rm debian 20261124-152301-3f2a9c1d`,
		Args:              takeJailAndVersion(true),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			removed, err := j.remove(cmd, &nodes, args, force)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "removed version %s of jail %s\n", removed, args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove the version even if it may be in use")
	nodes.add(cmd)
	return cmd
}

func (j *jailCommand) remove(cmd *cobra.Command, f *nodesFlags, args []string, force bool) (removed string, err error) {
	s, err := j.openStoreForChange(cmd)
	if err != nil {
		return "", err
	}
	jail, err := s.Jail(args[0])
	if err != nil {
		return "", err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	if _, err := jail.Version(args[1]); err != nil { // before Slurm is asked, which may take long
		return "", err
	}
	var cluster store.Cluster
	if !force {
		if cluster, err = j.askSlurm(ctx, f); err != nil {
			return "", fmt.Errorf("%w; --force removes a version whoever uses it", err)
		}
	}
	err = jail.Remove(ctx, args[1], func(v *store.Version) error {
		if removed = v.Version; force {
			return nil
		}
		u, err := s.Survey(cluster, f.expiry)
		if err == nil {
			err = u.Refuse(jail, v)
		}
		if err != nil {
			return fmt.Errorf("version %s is not removed: %w; --force removes it nevertheless", v.Version, err)
		}
		return nil
	})
	return removed, err
}
