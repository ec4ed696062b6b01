// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
)

// initTimeout is how long this node waits for another node that creates the same targets.
const initTimeout = 30 * time.Second

func newInitCommand(n *localNode) *cobra.Command {
	var force bool
	var tree string
	cmd := &cobra.Command{
		Use:   "init JAIL",
		Short: "Create the mount targets that a jail lacks, once for all nodes",
		Long: `Creates the mount points of a job in the jail's root, as directories and empty
files: /tmp, Slurm's directories and commands, and the destinations of the
configured mounts. A launch never creates them, because many nodes share the
root. Run it once, on a node that can write to the jail's storage, after you
set up a jail, change its configuration or upgrade Slurm. Existing files are
left alone.

Nothing can be created in an image file. If root = names one, run this with
--tree on the directory that the image is made from, before you make the image.

A root without /bin/sh is probably the wrong tree: nothing is created there
unless you confirm at the terminal or give --force.`,
		Example: `  gojail init debian
  gojail init --tree /build/debian debian && mksquashfs /build/debian debian.squashfs
  gojail init --force scratch`,
		Args:              cmdline.TakeOneArgument("the name of a jail"),
		ValidArgsFunction: n.CompleteJailNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return n.createTargets(cmd, args[0], tree, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "create them even in a root without /bin/sh")
	cmd.Flags().StringVar(&tree, "tree", "",
		"create them in this directory, from which an image is made later, not in root =")
	return cmd
}

// createTargets creates the mount targets of a jail, in tree unless that is "". With force, the root may lack /bin/sh.
func (n *localNode) createTargets(cmd *cobra.Command, name, tree string, force bool) error {
	c, j, err := n.LoadJail(name)
	if err != nil {
		return err
	}
	if tree != "" {
		if j, err = withRoot(j, tree); err != nil {
			return err
		}
	}
	node.RevalidateRoot(j)
	facts, err := node.ReadHost(c, j, n.State)
	if err != nil {
		return err
	}
	view, err := plan.Jail(c, j, facts)
	if err != nil {
		return err
	}
	if lacks := check.FindMissingShell(j, view); lacks != "" && !force && !isConfirmed(cmd, j.Root+" "+lacks) {
		return fmt.Errorf("%s %s: it is probably the wrong tree, and nothing was created; correct root = in %s, or "+
			"run: gojail init --force %s",
			j.Root, lacks, c.Path, j.Name)
	}
	made, err := mount.MakeTargets(c, j, view, time.Now().Add(initTimeout))
	for _, t := range made {
		fmt.Fprintln(cmd.OutOrStdout(), "created", t)
	}
	if err == nil && len(made) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "nothing to create: jail", j.Name, "has all its mount targets")
	}
	return err
}

// withRoot returns a copy of the jail that has a directory as its root.
func withRoot(j *config.Jail, tree string) (*config.Jail, error) {
	path, err := filepath.Abs(tree)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("--tree %s is not a directory", tree)
	}
	other := *j
	other.Root = path
	return &other, nil
}

// isConfirmed asks the user at the terminal whether to continue, and reports whether the answer was yes.
// It reports false if standard input is no terminal.
func isConfirmed(cmd *cobra.Command, what string) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok {
		return false
	}
	if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil {
		return false
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s; create the mount targets there anyway? [y/N] ", oneline.Printable(what))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}
