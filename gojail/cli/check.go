// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/cli/network"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

func newCheckCommand(n *localNode) *cobra.Command {
	var quiet, child bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find what would make a job fail on this node before a job runs into it",
		Long: `Checks the configuration and this node: who can write the configuration, the
kernel, the installed files, the state and scratch directories, what slurm.conf
and plugstack.conf say, whether slurmd starts with its files (slurmd -G), and
for each jail its mount targets, mounts and storage: type and options, root
squashed or not, id maps, attributes, latency.
With a network.toml: the file itself, the cards, drivers and VFs that it asks
for, the source of addresses, and quarantined VFs. Nothing is changed.

What users need is tried with the rights of a user who owns nothing: entering
the jails, their shell, the files of Slurm, munge's socket, srun and scontrol.

Each line has a level, what was found, and what to do about it. OK: nothing to
do. WARN: costs time, or may be unexpected. FAIL: launches fail. The exit code
is 1 if any line is FAIL.`,
		Example: `  gojail check
  gojail check --quiet`,
		Args: cmdline.TakeNoArgument("it checks all jails"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := listNodeFlags(cmd)
			print := func(f check.Finding) {
				f.Remedy = addFlags(f.Remedy, flags)
				if !quiet || f.Level != check.OK {
					fmt.Fprintln(cmd.OutOrStdout(), f)
				}
			}
			if child {
				return n.checkAll(json.NewEncoder(cmd.OutOrStdout()).Encode)
			}
			failed := false
			report := func(f check.Finding) {
				failed = failed || f.Level == check.Fail
				print(f)
			}
			err := n.checkInChild(report)
			network.Check(&n.Node, report)
			if err == nil && failed {
				err = cmdline.SilentExit(1)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&child, "child", false, "")
	cmd.Flags().MarkHidden("child")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "omit the lines that are OK")
	return cmd
}

// ownCommand is a command of gojail's about the node in a remedy.
var ownCommand = regexp.MustCompile(`\bgojail (?:init|jail|ls|pool|reload|run|sweep|vf)\b`)

// addFlags adds the flags to gojail's commands in a remedy.
func addFlags(remedy, flags string) string {
	return ownCommand.ReplaceAllStringFunc(remedy, func(command string) string {
		return "gojail " + flags + strings.TrimPrefix(command, "gojail ")
	})
}

// listNodeFlags returns the flags that said which node is checked, as the commands of remedies need them, with a blank
// after each.
func listNodeFlags(cmd *cobra.Command) (flags string) {
	for _, name := range []string{"config", "state", "node"} {
		if f := cmd.Flag(name); f != nil && f.Changed {
			flags += oneline.ShellWord("--"+name+"="+f.Value.String()) + " "
		}
	}
	return flags
}

// checkAll is the process that checks node and jails: it passes on each finding, and at the end an empty one.
func (n *localNode) checkAll(pass func(any) error) error {
	_ = procfs.SetName("gojail-check") // for those who look at processes
	var failed error
	report := func(f check.Finding) { failed = errors.Join(failed, pass(f)) }
	accounts := site.SystemAccounts()
	n.Accounts = &accounts
	check.Check(n.Node.Node, report)
	report(check.Finding{})
	return failed
}

// checkSilence is how long that process may report nothing. Silent storage of jails takes less.
const checkSilence = 45 * time.Second

// checkEnd is how long the end of that process is waited for: it may hang in storage.
const checkEnd = 2 * time.Second

// checkInChild checks node and jails in a process of their own, which may never end if it waits for
// storage. This process goes on when the last finding is there.
func (n *localNode) checkInChild(report func(check.Finding)) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := exec.Command("/proc/self/exe", "check", "--child", "--config="+n.Config, "--network="+n.Network,
		"--state="+n.State,
		"--node="+n.Name, "--libdir="+n.LibDir)
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the process ends, prctl(2)
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("cannot start a process for the checks: %w", err)
	}
	defer deadline.CallFor(checkEnd, cmd.Wait)
	defer cmd.Process.Kill()
	findings := json.NewDecoder(read)
	for {
		var f check.Finding
		read.SetReadDeadline(time.Now().Add(checkSilence))
		switch err := findings.Decode(&f); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the checks made no progress for %v: does the storage of slurm.conf, of the state "+
				"directory or of scratch hang?", checkSilence)
		case err != nil:
			return fmt.Errorf("the process of the checks ended before its last finding: %w", err)
		case f == check.Finding{}:
			return nil
		}
		report(f)
	}
}
