// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

func newRunCommand(n *localNode) *cobra.Command {
	var name string
	var mounts []string
	var privileged bool
	cmd := &cobra.Command{
		Use:   "run JAIL [-u USER] [-- COMMAND [ARGUMENTS]]",
		Short: "Run a command in a jail without Slurm, to have a look around",
		Long: `Builds the same sandbox that a job gets, with its own /tmp and /dev/shm, runs a
command in it, and removes it. Without a command it runs a shell. The command
runs as root unless -u names a user, in the user's home directory if the jail
has it, with a clean environment. gojail exits with the command's exit code.

The programs are the jail's: they get no more capabilities and system calls than
tasks, unless --privileged is given, and a terminal of their own. They get the
keyboard's input if their output goes to the terminal.

The name service of this node resolves the user. The rules about who may use
the jail, and what may be mounted, apply as for a job.`,
		Example: `  gojail run debian
  gojail run debian -- cat /etc/os-release
  gojail run debian -u alice --jail-mount=/data:/mnt:ro -- ls -l /mnt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				return fmt.Errorf("gojail run needs the name of a jail; see: gojail run --help")
			}
			if len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
				return fmt.Errorf("write -- before the command: gojail run %s -- %s", args[0], strings.Join(args[1:], " "))
			}
			return nil
		},
		ValidArgsFunction: n.completeJailNames,
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := findPerson(name)
			if err != nil {
				return err
			}
			return n.runInNewSandbox(args[0], who, strings.Join(mounts, ","), privileged, args[1:])
		},
	}
	cmd.Flags().StringVarP(&name, "user", "u", "root", "run the command as this user, by name or number")
	cmd.Flags().StringArrayVar(&mounts, "jail-mount", nil, "SOURCE:DESTINATION[:ro], as for srun; may be repeated")
	cmd.Flags().BoolVar(&privileged, "privileged", false, privilegedHelp)
	return cmd
}

const privilegedHelp = "with all capabilities and system calls: the jail's programs could take over the node"

// runPatience is the limit for the removal of the sandbox's files before the prompt returns.
const runPatience = 5 * time.Second

// runInNewSandbox builds a sandbox, runs the command in it and tears it down.
func (n *localNode) runInNewSandbox(name string, who *person, mounts string, privileged bool, command []string) error {
	c, j, err := n.loadJail(name)
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
		code, err = n.runInSandbox(job, holder, who, privileged, c.Deadline, command, signals)
		holder.EndInhabitants()
	}
	if e := sandbox.Teardown(s, c.Scratch, job, time.Now().Add(runPatience)); err == nil {
		err = e
	}
	if err == nil && code != 0 {
		err = silentExit(code)
	}
	return err
}

// passedOnSignals are the signals that the command gets in place of this process.
var passedOnSignals = []os.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// runInSandbox runs the command in a sandbox and returns its exit code.
func (n *localNode) runInSandbox(job string, holder state.Record, who *person, privileged bool, deadline time.Duration, command []string,
	signals chan os.Signal) (int, error) {
	t, err := newTerminal()
	if err != nil {
		return 0, err
	}
	defer t.close()
	if err := t.open(holder, who.uid); err != nil {
		return 0, err
	}
	words := append(who.formatArguments(), "user="+who.name, "home="+who.home, "job="+job, "sandbox="+holder.Name, "jail="+holder.Jail(), t.formatArgument())
	if privileged {
		words = append(words, "privileged=1")
	}
	process, err := n.startInSandbox(t, deadline, words, command)
	if err != nil {
		return 0, err
	}
	done := make(chan struct{})
	go passOnSignals(signals, process.Pid, done)
	if err := t.startCopying(); err != nil {
		process.Kill()
		process.Wait()
		return 0, err
	}
	status, err := process.Wait()
	close(done)
	t.drainOutput()
	if err != nil {
		return 0, err
	}
	return exitCodeOf(status), nil
}

// passOnSignals sends the command the signals that this process gets, until done is closed.
func passOnSignals(signals chan os.Signal, pid int, done chan struct{}) {
	for s := range signals {
		select {
		case <-done: // its number may be another's by now
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
