// SPDX-License-Identifier: Apache-2.0

// Package inside runs commands in jails: those of gojail run, gojail enter and gojail jail edit.
package inside

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

// localNode is the node that the global flags name, with the commands of this package.
type localNode struct{ *cmdline.Node }

// NewCommands returns the commands that run others in a jail.
func NewCommands(node *cmdline.Node) []*cobra.Command {
	n := &localNode{node}
	return []*cobra.Command{newRunCommand(n), newEnterCommand(n)}
}

func newRunCommand(n *localNode) *cobra.Command {
	var name string
	var mounts []string
	cmd := &cobra.Command{
		Use:   "run JAIL [-u root|nobody] [-- COMMAND [ARGUMENTS]]",
		Short: "Run a command in a jail without Slurm, to have a look around",
		Long: `Builds the same sandbox that a job gets, with its own /tmp and /dev/shm, runs a
command in it, and removes it. Without a command it runs a shell, in the user's
home directory if the jail has it, with a clean environment. gojail exits with
the command's exit code.

The programs are the jail's, and may be written by its users. So the command
runs as the person who logged in and became root, by sudo or su, with a task's
rights and no more: the kernel's login uid says who that is (proc(5)). With
-u root it is root of a user namespace, as tasks with --jail-root=self are: it
has uid 0 and capabilities in there, the person's rights over files, and no
access to munge. With -u nobody, the person is nobody. If root itself logged in,
or no login is behind it, the person is nobody, too, and -u root the default.
Other users are refused: run a job as them.

The command gets pipes and a terminal of its own, from and to which gojail
copies. It gets the keyboard's input if its output goes to the terminal.

The name service of this node resolves the user. The rules about who may use
the jail, and what may be mounted, apply as for a job; nobody may use any jail.`,
		Example: `  gojail run debian
  gojail run debian -- cat /etc/os-release
  gojail run debian -u root --jail-mount=/data:/mnt:ro -- ls -l /mnt`,
		Args:              takeCommand("needs the name of a jail; see: gojail run --help"),
		ValidArgsFunction: n.CompleteJailNames,
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := findRunner(name)
			if err != nil {
				return err
			}
			return RunInNewSandbox(n.Node, args[0], who, strings.Join(mounts, ","), args[1:])
		},
	}
	cmd.Flags().StringVarP(&name, "user", "u", "",
		"root of the sandbox, nobody, or yourself (default: the person who logged in)")
	cmd.Flags().StringArrayVar(&mounts, "jail-mount", nil, "SOURCE:DESTINATION[:ro], as for srun; may be repeated")
	return cmd
}

// loginUID names the kernel's file with the uid of the login that a process descends from.
const loginUID = "/proc/self/loginuid"

// findRunner returns how a command of gojail run runs.
func findRunner(name string) (*Runner, error) {
	if name == nobody.name {
		return &Runner{person: nobody}, nil
	}
	caller, err := findCaller(loginUID)
	if err != nil {
		return nil, err
	}
	if name == "" && caller == nobody {
		return &Runner{person: nobody, ids: rootIDs}, nil
	}
	return chooseRunner(name, caller, true, "-u takes root, nobody, or the person who logged in")
}

// runPatience is the limit for the removal of the sandbox's files before the prompt returns.
const runPatience = 5 * time.Second

// RunInNewSandbox builds a sandbox, runs the command in it and tears it down.
func RunInNewSandbox(node *cmdline.Node, name string, who *Runner, mounts string, command []string) error {
	n := &localNode{node}
	c, j, err := n.LoadJail(name)
	if err != nil {
		return err
	}
	if _, err := config.ParseUserMounts(mounts); err != nil {
		return err
	}
	s, err := state.OpenState(n.State)
	if err != nil {
		return err
	}
	job := fmt.Sprintf("run-%d", os.Getpid())
	signals := make(chan os.Signal, 8) // from here on, no signal keeps the sandbox from being removed
	signal.Notify(signals, passedOnSignals...)
	// One that was killed may have had the number of this process.
	if err := sandbox.Teardown(s, c.Scratch, job, time.Now().Add(runPatience)); err != nil {
		return err
	}
	err = n.buildSandbox(c, j, job, who, mounts)
	code := 0
	var holder state.Record
	if err == nil {
		holder, err = s.Holder(job, "")
	}
	if err == nil {
		code, err = n.runInSandbox(job, holder, who, c.Deadline, command, signals)
		holder.EndInhabitants()
	}
	if e := sandbox.Teardown(s, c.Scratch, job, time.Now().Add(runPatience)); err == nil {
		err = e
	}
	if err == nil && code != 0 {
		err = cmdline.SilentExit(code)
	}
	return err
}

// passedOnSignals are the signals that the command gets in place of this process.
var passedOnSignals = []os.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// runInSandbox runs the command in a sandbox and returns its exit code.
func (n *localNode) runInSandbox(job string, holder state.Record, who *Runner, deadline time.Duration, command []string,
	signals chan os.Signal) (int, error) {
	d, err := openDescriptors(holder, who.uid)
	if err != nil {
		return 0, err
	}
	defer d.close()
	words := append(who.formatArguments(), "job="+job, "sandbox="+holder.Name, "jail="+holder.Jail(),
		d.formatArgument())
	process, err := n.startInSandbox(d, deadline, words, command)
	if err != nil {
		return 0, err
	}
	done, givenUp := make(chan struct{}), make(chan struct{})
	go passOnSignals(signals, process.Pid, done, givenUp)
	if err := d.startCopying(); err != nil {
		process.Kill()
		process.Wait()
		return 0, err
	}
	status, err := process.Wait()
	close(done)
	if e := d.finishCopying(givenUp); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	return exitCodeOf(status), nil
}

// passOnSignals sends the command the signals that this process gets, until done is closed. The next signal then closes
// givenUp.
func passOnSignals(signals chan os.Signal, pid int, done, givenUp chan struct{}) {
	for s := range signals {
		select {
		case <-done: // its number may be another's by now
			close(givenUp)
			return
		default:
		}
		target := pid
		if s == unix.SIGINT || s == unix.SIGQUIT {
			target = -target // to its process group, as a terminal does; it leads a session
		}
		unix.Kill(target, s.(unix.Signal))
	}
}

// exitCodeOf returns the exit code of a command as a shell does: 128 and the signal's number if a signal ended it.
func exitCodeOf(state *os.ProcessState) int {
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// takeCommand returns the check of the arguments OBJECT [-- COMMAND].
func takeCommand(lack string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
			return fmt.Errorf("gojail %s %s", cmd.Name(), lack)
		}
		if len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
			return fmt.Errorf("write -- before the command: gojail %s %s -- %s", cmd.Name(), args[0],
				strings.Join(args[1:], " "))
		}
		return nil
	}
}
