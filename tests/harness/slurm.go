// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// daemonEnv keeps hwloc from loading its graphics plugins in every slurmstepd:
// they cost more than the rest of a launch and are no part of what is tested.
var daemonEnv = []string{"HWLOC_PLUGINS_PATH=/nonexistent", "LANG=C.UTF-8"}

// startDaemons starts munged, slurmctld and each slurmd, and waits for idle nodes.
func (c *Cluster) startDaemons() error {
	if err := c.startHead(); err != nil {
		return err
	}
	return c.startNodes()
}

// startHead starts munged and slurmctld.
func (c *Cluster) startHead() error {
	if err := c.prepareCgroups(); err != nil {
		return err
	}
	for dir, user := range map[string]string{"/run/munge": "munge", "/run/slurm": "slurm", "/run/gojail": "root"} {
		if r := c.Root("install", "-d", "-o", user, "-g", user, "-m", "755", dir); r.Code != 0 {
			return fmt.Errorf("cluster: %s: %s", dir, r)
		}
	}
	if r := c.Root("setpriv", "--reuid=munge", "--regid=munge", "--init-groups", "/usr/sbin/munged"); r.Code != 0 {
		return fmt.Errorf("cluster: munged: %s", r)
	}
	if err := c.startAccounting(); err != nil {
		return err
	}
	if err := c.startDaemon(Command{Args: []string{"/usr/sbin/slurmctld", "-c", "-f", filepath.Join(c.confDir(), "slurm.conf")}}); err != nil {
		return err
	}
	if !Poll(Timeout, c.listens) {
		return fmt.Errorf("cluster: slurmctld does not listen after %v:\n%s", Timeout, c.logTails())
	}
	return nil
}

// controllerPort is where slurmctld listens (SlurmctldPort).
const controllerPort = 6817

// listens reports whether slurmctld accepts connections. A daemon or a command that comes before tries again only after a second or more.
func (c *Cluster) listens() bool {
	sockets, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", c.Pid)) // proc_pid_net(5): local address, peer, and the state, 0A for one that listens
	return strings.Contains(string(sockets), fmt.Sprintf(":%04X 00000000:0000 0A ", controllerPort))
}

// checkSeveralSlurmd fails if this Slurm was built without --enable-multiple-slurmd: it then takes the credentials that two slurmd
// decode with one munged for replayed ones, and steps fail now and then.
func checkSeveralSlurmd(config string) error {
	for line := range strings.Lines(config) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "MULTIPLE_SLURMD" && strings.EqualFold(strings.TrimSpace(value), "yes") {
			return nil
		}
	}
	return errors.New("cluster: this Slurm was built without --enable-multiple-slurmd (scontrol show config does not say MULTIPLE_SLURMD = Yes), " +
		"which two slurmd on one machine need; build it with that option, or install Debian's")
}

func (c *Cluster) startNodes() error {
	for _, node := range Nodes {
		if err := c.StartSlurmd(node); err != nil {
			return err
		}
	}
	idle := c.WaitIdle()
	if config := c.Root("scontrol", "show", "config"); len(Nodes) > 1 && config.Code == 0 {
		if err := checkSeveralSlurmd(config.Stdout); err != nil {
			return err
		}
	}
	if !idle {
		return fmt.Errorf("cluster: the nodes are not idle after %v:\n%s\n%s", Timeout, c.Root("sinfo", "-N", "-l"), c.logTails())
	}
	return nil
}

// startDaemon starts a program that goes into the background by itself.
func (c *Cluster) startDaemon(command Command) error {
	if c.options.OneCPU {
		defer pinToOneCPU()()
	}
	command.Dir, command.Env = "/", daemonEnv
	if r := c.Do(command); r.Code != 0 {
		return fmt.Errorf("cluster: %s: %s\n%s", strings.Join(command.Args, " "), r, c.logTails())
	}
	return nil
}

// StartSlurmd starts the slurmd of a node, through another command if one is given, for example setpriv(1).
func (c *Cluster) StartSlurmd(node string, by ...string) error {
	command := append(slices.Clone(by), "/usr/sbin/slurmd", "-N", node)
	if c.options.NoConf {
		command = append(command, "--conf-server", fmt.Sprintf("%s:%d", Address, controllerPort))
	}
	if MayLock() {
		command = append([]string{"/usr/bin/prlimit", "--memlock=unlimited"}, command...)
	}
	if !isUnified() {
		return c.startDaemon(Command{Args: command})
	}
	if err := c.startInTopCgroup(command...); err != nil {
		return err
	}
	return c.waitCgroup(node)
}

// MayLock reports whether slurmd can have the limit of locked memory that slurmd.service sets. Below it, a
// slurmstepd that has locked its memory runs out of it: at once on 26.05, on a busy machine on each release ("eio_handle_mainloop: malloc failed").
func MayLock() bool {
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit)
	return limit.Max == unix.RLIM_INFINITY || unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit.Cur, Max: unix.RLIM_INFINITY}) == nil
}

// Gojail runs the gojail command on a node, as root.
func (c *Cluster) Gojail(node string, args ...string) Result {
	return c.Root(append([]string{"gojail", "--node=" + node, "--state=/run/gojail/%n"}, args...)...)
}

// StopSlurmd ends the slurmd of a node; running steps continue.
func (c *Cluster) StopSlurmd(node string) error {
	pidFile := "/run/slurm/slurmd-" + node + ".pid"
	text, err := os.ReadFile(c.Path(pidFile))
	if err != nil {
		return fmt.Errorf("cluster: slurmd of %s is not running: %w", node, err)
	}
	pid := strings.TrimSpace(string(text))
	if r := c.Root("kill", pid); r.Code != 0 {
		return fmt.Errorf("cluster: end slurmd of %s: %s", node, r)
	}
	if !Poll(Timeout, func() bool { _, err := os.Stat(c.Path("/proc/" + pid)); return err != nil }) {
		return fmt.Errorf("cluster: slurmd of %s (pid %s) does not end", node, pid)
	}
	return nil
}

// RestartSlurmd stops and starts the slurmd of a node.
func (c *Cluster) RestartSlurmd(node string) error {
	if err := c.StopSlurmd(node); err != nil {
		return err
	}
	return c.StartSlurmd(node)
}

// NodeState returns the state of a node as sinfo prints it, for example "idle". A planned node is idle: backfill keeps it for a job that
// waits, and says so up to its next cycle, also when that job is gone.
func (c *Cluster) NodeState(node string) string {
	return strings.Join(c.listStates("-n", node), "\n")
}

// listStates returns the states of these nodes.
func (c *Cluster) listStates(which ...string) []string {
	states := strings.Fields(c.Root(append([]string{"sinfo", "-h", "-o", "%T"}, which...)...).Stdout)
	for i, state := range states {
		if state == "planned" {
			states[i] = "idle"
		}
	}
	return states
}

// Drained lists every node that is drained or down, with Slurm's reason.
func (c *Cluster) Drained() string {
	return strings.TrimSpace(c.Root("sinfo", "-h", "-R", "-o", "%n %t %E").Stdout)
}

// WaitIdle waits until no node has a job and both accept one; false after Timeout.
func (c *Cluster) WaitIdle() bool {
	return Poll(Timeout, func() bool {
		states := c.listStates("-N")
		for _, state := range states {
			if state != "idle" {
				return false
			}
		}
		return len(states) == len(Nodes)
	})
}

// Resume resumes a drained node, for the test after the one that drained it.
func (c *Cluster) Resume(node string) { c.Root("scontrol", "update", "nodename="+node, "state=resume") }

// Log returns the log of "n1", "n2" or "slurmctld" so far.
func (c *Cluster) Log(of string) string {
	if of != "slurmctld" {
		of = "slurmd-" + of
	}
	text, _ := os.ReadFile(filepath.Join(c.root, "var/log/slurm", of+".log"))
	return string(text)
}

// logTails returns the end of every daemon's log.
func (c *Cluster) logTails() string {
	var b strings.Builder
	for _, of := range append([]string{"slurmctld"}, Nodes...) {
		writeTail(&b, of, c.Log(of))
	}
	if text, err := os.ReadFile(c.Path(slurmdOutput)); err == nil {
		writeTail(&b, slurmdOutput, string(text))
	}
	return b.String()
}

func writeTail(b *strings.Builder, of, text string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	fmt.Fprintf(b, "---- %s ----\n%s\n", of, strings.Join(lines[max(0, len(lines)-25):], "\n"))
}

// WriteConfig replaces gojail.toml; nodes notice it at the next step.
func (c *Cluster) WriteConfig(text string) error {
	return replaceFile(filepath.Join(c.root, ConfigPath), text, 0o644)
}
