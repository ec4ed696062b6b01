// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Timeout of one command; a command that takes longer is killed.
const Timeout = 60 * time.Second

// Late is how much later than its deadline a busy machine may end what must end by it.
var Late = 30 * time.Second * Slow

// Slow is how many times longer things may take here than on a machine whose processors are not emulated.
var Slow = findSlowness()

// findSlowness returns how many times longer things may take here than on a machine whose processors are not
// emulated.
func findSlowness() time.Duration {
	if os.Getenv("GOJAIL_GUEST") != "" { // every processor of the guest of tests/vm is emulated
		return 10
	}
	return 1
}

// Result of one command. Code is its exit status, 128+N for signal N, and -1
// for a command that met the timeout.
type Result struct {
	Stdout, Stderr string
	Code           int
	Duration       time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("exit %d after %v\nstdout: %s\nstderr: %s", r.Code, r.Duration.Round(time.Millisecond), r.Stdout, r.Stderr)
}

// Command is what Do runs inside the machine.
type Command struct {
	User  string   // default root
	Dir   string   // default /root or /home/USER
	Env   []string // added to PATH, HOME, USER and SHELL
	Stdin string
	Args  []string

	ownCgroup bool // stay in the cgroup namespace of the tests
}

// Run runs a command as a user in that user's home.
func (c *Cluster) Run(user string, args ...string) Result {
	return c.Do(Command{User: user, Args: args})
}

// Root runs a command as root.
func (c *Cluster) Root(args ...string) Result { return c.Run("root", args...) }

// Do runs a command to its end.
func (c *Cluster) Do(command Command) Result {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	cmd := c.Exec(ctx, command)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(command.Stdin), &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Duration: time.Since(start), Code: -1}
	switch state := cmd.ProcessState; {
	case state == nil:
		r.Stderr += err.Error()
	case ctx.Err() != nil:
		r.Stderr += "\nkilled by the test after " + Timeout.String()
	case state.Exited():
		r.Code = state.ExitCode()
	default:
		r.Code = 128 + int(state.Sys().(syscall.WaitStatus).Signal())
	}
	return r
}

// Exec prepares a command for the machine, for callers that start and end it themselves.
// Ending ctx kills it.
func (c *Cluster) Exec(ctx context.Context, command Command) *exec.Cmd {
	c.requireNodes(append(command.Args, command.Stdin)...)
	user, dir := command.User, command.Dir
	if user == "" {
		user = "root"
	}
	home := "/home/" + user
	if user == "root" {
		home = "/root"
	}
	if dir == "" {
		dir = home
	}
	args := append(c.enterArguments(!command.ownCgroup), "/usr/bin/env", "-i", "-C", dir,
		"PATH="+Prefix+"/sbin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"HOME="+home, "USER="+user, "LOGNAME="+user, "SHELL=/bin/bash")
	args = append(args, command.Env...)
	if user != "root" {
		id := strconv.Itoa(uids[user])
		args = append(args, "/usr/bin/setpriv", "--reuid="+id, "--regid="+id, "--init-groups")
	}
	cmd := exec.CommandContext(ctx, "/usr/bin/nsenter", append(args, command.Args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// enterArguments returns the arguments of nsenter(1) that enter the machine, its cgroup namespace only if cgroup is set.
func (c *Cluster) enterArguments(cgroup bool) []string {
	args := []string{"--target", strconv.Itoa(c.Pid), "--mount", "--uts", "--ipc", "--net", "--pid"}
	if cgroup && (isUnified() || c.options.Constrain) { // which have a part of the tree to themselves
		args = append(args, "--cgroup")
	}
	return append(args, "--")
}

// Path returns the path on this machine of a file of the cluster.
func (c *Cluster) Path(path string) string {
	return filepath.Join("/proc", strconv.Itoa(c.Pid), "root", path)
}
