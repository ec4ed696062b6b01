// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
)

func newEnterCommand(n *localNode) *cobra.Command {
	var name, sandbox string
	var privileged bool
	cmd := &cobra.Command{
		Use:   "enter JOB [-u USER] [-- COMMAND [ARGUMENTS]]",
		Short: "Run a command in the sandbox of a running job",
		Long: `Runs a command, or a shell, where the job's tasks are: in the same jail, with
the same /tmp, /dev/shm, --jail-mount and --jail-net. It runs as root unless -u
names somebody, and in the caller's cgroup: Slurm neither limits nor ends it.
What it was ended with is the exit code.

The programs are the jail's, which may be a user's: they get no more
capabilities and system calls than the job's tasks, but for --privileged, and a
terminal of their own. They have the keyboard where their output goes to the
terminal.

It is for root, and for root's tools. A user has Slurm's way into the sandbox of
a job: srun --overlap --jobid=JOB --jail=NAME --pty bash`,
		Example: `  gojail ls
  gojail enter 4711
  gojail enter 4711 -u alice -- ls -l /tmp`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				return fmt.Errorf("gojail enter needs a job's number; see: gojail ls")
			}
			if len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
				return fmt.Errorf("write -- before the command: gojail enter %s -- %s", args[0], strings.Join(args[1:], " "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := lookup(name)
			if err != nil {
				return err
			}
			return n.enter(args[0], sandbox, who, privileged, args[1:])
		},
	}
	cmd.Flags().StringVarP(&name, "user", "u", "root", "run the command as this user, by name or number")
	cmd.Flags().StringVar(&sandbox, "sandbox", "", "which one, where the job has several (gojail ls --json)")
	cmd.Flags().BoolVar(&privileged, "privileged", false, privilegedHelp)
	return cmd
}

func (n *localNode) enter(job, sandbox string, who *person, privileged bool, command []string) error {
	state, err := state.OpenState(n.State)
	if err != nil {
		return err
	}
	holder, err := state.Holder(job, sandbox)
	if err != nil {
		return err
	}
	deadline := contract.DefaultDeadline
	if c, _, err := n.loadJail(holder.Jail()); err == nil {
		deadline = c.Deadline
	} else if !privileged {
		return fmt.Errorf("%w; what the jail takes from its tasks is not known: gojail enter --privileged goes in without", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn...)
	code, err := n.inside(job, holder, who, privileged, deadline, command, signals)
	if err == nil && code != 0 {
		return silentExit(code)
	}
	return err
}
