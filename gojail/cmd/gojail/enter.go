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
names a user, and in the caller's cgroup: Slurm neither limits nor ends it.
gojail exits with the command's exit code.

The programs are the jail's, which may belong to a user: they get no more
capabilities and system calls than the job's tasks, unless --privileged is
given, and a terminal of their own. They get the keyboard's input if their
output goes to the terminal.

It is for root. A user enters the sandbox of a job with Slurm:
srun --overlap --jobid=JOB --jail=NAME --pty bash`,
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
			who, err := findPerson(name)
			if err != nil {
				return err
			}
			return n.enterSandbox(args[0], sandbox, who, privileged, args[1:])
		},
	}
	cmd.Flags().StringVarP(&name, "user", "u", "root", "run the command as this user, by name or number")
	cmd.Flags().StringVar(&sandbox, "sandbox", "", "which one, where the job has several (gojail ls --json)")
	cmd.Flags().BoolVar(&privileged, "privileged", false, privilegedHelp)
	return cmd
}

func (n *localNode) enterSandbox(job, sandbox string, who *person, privileged bool, command []string) error {
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
		return fmt.Errorf("%w; without the jail's isolation settings run: gojail enter --privileged", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOnSignals...)
	code, err := n.runInSandbox(job, holder, who, privileged, deadline, command, signals)
	if err == nil && code != 0 {
		return silentExit(code)
	}
	return err
}
