// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/state"
)

func newEnterCommand(n *localNode) *cobra.Command {
	var name, sandbox string
	cmd := &cobra.Command{
		Use:   "enter JOB [-u root] [-- COMMAND [ARGUMENTS]]",
		Short: "Run a command in the sandbox of a running job",
		Long: `Runs a command, or a shell, where the job's tasks are: in the same jail, with
the same /tmp, /dev/shm, --jail-mount and --jail-net, and in the caller's
cgroup: Slurm neither limits nor ends it. gojail exits with the command's exit
code.

The programs are the jail's, and may be written by its users. So the command
runs as the job's owner, with the rights of the job's tasks and no more. With
-u root it is root of a user namespace, as tasks with --jail-root=self are: it
has uid 0 and capabilities in there, the owner's rights over files, and no
access to munge. Other users are refused.

The command gets pipes and a terminal of its own, from and to which gojail
copies. It gets the keyboard's input if its output goes to the terminal.

It is for root. A user enters the sandbox of a job with Slurm:
srun --overlap --jobid=JOB --jail=NAME --pty bash`,
		Example: `  gojail ls
  gojail enter 4711
  gojail enter 4711 -- ls -l /tmp
  gojail enter 4711 -u root`,
		Args: takeCommand("needs a job's number; see: gojail ls"),
		RunE: func(_ *cobra.Command, args []string) error { return n.enterSandbox(args[0], sandbox, name, args[1:]) },
	}
	cmd.Flags().StringVarP(&name, "user", "u", "", "root of the sandbox, or the owner of the job (default: the owner)")
	cmd.Flags().StringVar(&sandbox, "sandbox", "", "which one, where the job has several (gojail ls --json)")
	return cmd
}

func (n *localNode) enterSandbox(job, sandbox, name string, command []string) error {
	state, err := state.OpenState(n.State)
	if err != nil {
		return err
	}
	holder, err := state.Holder(job, sandbox)
	if err != nil {
		return err
	}
	owner, err := findPersonOf(holder.UID)
	if err != nil {
		return fmt.Errorf("job %s: %w", job, err)
	}
	who, err := chooseRunner(name, owner, false, fmt.Sprintf("job %s is of user %s: -u takes root or %[2]s", job,
		owner.name))
	if err != nil {
		return err
	}
	c, _, err := n.LoadJail(holder.Jail())
	if err != nil {
		return fmt.Errorf("%w; without the jail's isolation settings nothing is run in it", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOnSignals...)
	code, err := n.runInSandbox(job, holder, who, c.Deadline, command, signals)
	if err == nil && code != 0 {
		return cmdline.SilentExit(code)
	}
	return err
}
