// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

// The main thread is kept for main: the thread that enters the jail must be
// another one, for /proc/PID/ns tells the namespaces of the main thread.
func init() { runtime.LockOSThread() }

func runCommand(n *localNode) *cobra.Command {
	var name string
	var mounts []string
	var privileged bool
	cmd := &cobra.Command{
		Use:   "run JAIL [-u USER] [-- COMMAND [ARGUMENTS]]",
		Short: "Run a command in a jail without Slurm, to have a look around",
		Long: `Builds the same sandbox that a job gets, with its own /tmp and /dev/shm, runs a
command in it, and removes it. Without a command: a shell. The command runs as
root unless -u names somebody, in that user's home directory if the jail has it,
with a clean environment. What it was ended with is the exit code.

The programs are the jail's: they get no more capabilities and system calls than
tasks, unless --privileged is given, and a terminal of their own. They have the
keyboard where their output goes to the terminal.

The user is the one of this node's name service; the rules about who may use the
jail and what may be mounted are applied as for a job.`,
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
		ValidArgsFunction: n.jailNames,
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := lookup(name)
			if err != nil {
				return err
			}
			return n.run(args[0], who, strings.Join(mounts, ","), privileged, args[1:])
		},
	}
	cmd.Flags().StringVarP(&name, "user", "u", "root", "run the command as this user, by name or number")
	cmd.Flags().StringArrayVar(&mounts, "jail-mount", nil, "SOURCE:DESTINATION[:ro], as for srun; may be repeated")
	cmd.Flags().BoolVar(&privileged, "privileged", false, privilegedHelp)
	return cmd
}

const privilegedHelp = "with all capabilities and system calls: the jail's programs could take over the node"

// runPatience is how long somebody may wait for the prompt while files are removed.
const runPatience = 5 * time.Second

// run builds a sandbox, runs the command in it and tears it down.
func (n *localNode) run(name string, who *person, mounts string, privileged bool, command []string) error {
	if err := n.apart(); err != nil {
		return err
	}
	c, j, err := n.jail(name)
	if err != nil {
		return err
	}
	if _, err := config.ParseUserMounts(mounts); err != nil {
		return err
	}
	who.jail = plan.Environment(c, j)
	if !privileged {
		who.confined = j
	}
	s, err := state.OpenState(n.State)
	if err != nil {
		return err
	}
	job := fmt.Sprintf("run-%d", os.Getpid())
	signals := make(chan os.Signal, 8) // from here on, the sandbox is removed in any case
	signal.Notify(signals, passedOn...)
	err = n.build(c, j, job, who, mounts)
	code := 0
	var holder state.Record
	if err == nil {
		holder, err = s.Holder(job, "")
	}
	if err == nil {
		code, err = inside(holder, who, command, signals)
		holder.EndInhabitants()
	}
	if e := sandbox.Teardown(s, c.Scratch, job, time.Now().Add(runPatience)); err == nil {
		err = e
	}
	if err == nil && code != 0 {
		err = silent(code)
	}
	return err
}

// passedOn are the signals that the command gets in our place.
var passedOn = []os.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// entered are the namespaces of a task, the jail itself last.
var entered = []struct {
	name string
	flag int
}{
	{"pid", unix.CLONE_NEWPID}, {"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS},
	{"net", unix.CLONE_NEWNET}, {"mnt", unix.CLONE_NEWNS},
}

// inside runs the command in a sandbox and gives its exit code.
func inside(holder state.Record, who *person, command []string, signals chan os.Signal) (int, error) {
	var namespaces []*os.File
	for _, kind := range entered {
		f, err := holder.Namespace(kind.name) // the node's, where the job has none of its own
		if err != nil {
			return 0, err
		}
		defer f.Close()
		namespaces = append(namespaces, f)
	}
	t, err := newTerminal()
	if err != nil {
		return 0, err
	}
	defer t.close()
	type result struct {
		cmd *exec.Cmd
		err error
	}
	started := make(chan result)
	go func() {
		// Only this thread enters the jail. It is never unlocked, so it ends with the goroutine.
		runtime.LockOSThread()
		cmd, err := start(namespaces, who, command, t)
		started <- result{cmd, err}
	}()
	r := <-started
	if r.err != nil {
		return 0, r.err
	}
	done := make(chan struct{})
	go func() {
		for s := range signals {
			select {
			case <-done: // its number may be another's by now
				return
			default:
			}
			target := r.cmd.Process.Pid
			if s == unix.SIGINT || s == unix.SIGQUIT {
				target = -target // as a terminal does: to what it has started, too; it leads a session
			}
			unix.Kill(target, s.(unix.Signal))
		}
	}()
	if err := t.begin(); err != nil {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		return 0, err
	}
	err = r.cmd.Wait()
	close(done)
	t.drain()
	return exitCode(err)
}

// start enters the namespaces with the calling thread and starts the command.
func start(namespaces []*os.File, who *person, command []string, t *terminal) (*exec.Cmd, error) {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return nil, fmt.Errorf("cannot enter the jail: unshare: %w", err)
	}
	for i, kind := range entered {
		if err := unix.Setns(int(namespaces[i].Fd()), kind.flag); err != nil {
			return nil, fmt.Errorf("cannot enter the job's %s namespace: setns: %w", kind.name, err)
		}
	}
	if err := t.open(who.uid); err != nil {
		return nil, err
	}
	if len(command) == 0 {
		command = []string{who.shell(), "-l"}
	}
	os.Setenv("PATH", who.path()) // what the command is looked up with
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = who.environment()
	cmd.Dir = who.directory()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.stdin, t.stdout, t.stderr
	// A descriptor that this process was given could lead out of the jail.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot close the node's descriptors: close_range: %w", err)
	}
	if who.confined != nil {
		if err := mount.Confine(who.confined); err != nil {
			return nil, err
		}
	}
	cmd.SysProcAttr = t.session()
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: who.groups}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: cannot be run in the jail: %w", command[0], reason(err))
	}
	return cmd, nil
}

func reason(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// exitCode is as in a shell: 128 and the signal's number where one ended it.
func exitCode(err error) (int, error) {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return 0, err
	}
	if status := e.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return e.ExitCode(), nil
}
