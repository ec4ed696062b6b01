// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/oneline"
)

// runLauncher runs gojail-launcher with the verb and words, and waits for its answer. It returns the process that the
// launcher leaves for this process to wait for, or nil. adjust changes the launcher's command before it is started.
func (n *localNode) runLauncher(verb string, deadline time.Duration, words []string,
	adjust func(*exec.Cmd)) (process *os.Process, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command(filepath.Join(n.LibDir, contract.Launcher),
		append([]string{verb, "state=" + n.State, "config=" + n.Config,
			"node=" + n.Node.Name, fmt.Sprintf("deadline=%d", deadline.Milliseconds())}, words...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.ExtraFiles = []*os.File{write} // descriptor 3, GOJAIL_REPLY_FD of gojail.h
	cmd.Stderr = os.Stderr
	adjust(cmd)
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot start gojail-launcher; is gojail installed in %s? (--libdir): %w", n.LibDir,
			oneline.Cause(err))
	}
	// The launcher keeps the deadline itself, unless it hangs, or a child of it holds the pipe open.
	read.SetReadDeadline(time.Now().Add(deadline + launcherPatience))
	process, err = readAnswer(read)
	if errors.Is(err, errUnanswered) {
		cmd.Process.Kill()
	}
	waitBriefly(cmd.Wait)
	return process, err
}

// launcherPatience is the time after the deadline for the launcher to answer or to end.
const launcherPatience = 2 * time.Second

// waitBriefly waits for the end of a process, but not for one that hangs in storage.
func waitBriefly(wait func() error) {
	deadline.CallFor(launcherPatience, wait)
}

// buildSandbox starts gojail-launcher to build a sandbox, as slurmstepd does for a job.
func (n *localNode) buildSandbox(c *config.Config, j *config.Jail, job string, who *Runner, mounts string) error {
	words := append(who.person.formatArguments(), "jail="+j.Name, "job="+job, "mounts="+mounts)
	words = append(words, "sockets="+who.sockets())
	if who.person == nobody { // root asks, who may use any
		words = append(words, "any=1")
	}
	if who.isMapped() {
		words = append(words, "root=range", fmt.Sprintf("ids=%d", who.ids))
	}
	_, err := n.runLauncher("sandbox", c.Deadline, words, func(*exec.Cmd) {})
	return err
}

// startInSandbox starts gojail-launcher to run the command in a sandbox. The command keeps no privilege that tasks give
// up.
func (n *localNode) startInSandbox(d *descriptors, deadline time.Duration, words, command []string) (*os.Process,
	error) {
	for _, name := range []string{"TERM", "LANG", "TZ"} {
		words = append(words, name+"="+os.Getenv(name))
	}
	words = append(append(words, "--"), command...)
	process, err := n.runLauncher("enter", deadline, words, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = d.of[0], d.of[1], d.of[2]
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C does not end the launcher half-way
	})
	if err == nil && process == nil {
		err = errUnanswered
	}
	if err != nil && process != nil {
		process.Kill()
		waitBriefly(func() error { _, err := process.Wait(); return err })
	}
	return process, err
}

var errUnanswered = errors.New("gojail-launcher ended without an answer, or did not give one by the deadline; " +
	"see: gojail check")

// readAnswer reads lines up to "ok" or "error TEXT" (include/gojail.h).
func readAnswer(reply io.Reader) (process *os.Process, err error) {
	lines := bufio.NewScanner(reply)
	for lines.Scan() {
		word, text, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "ok":
			return process, nil
		case "error":
			return process, errors.New(text)
		case "pid":
			if pid, err := strconv.Atoi(text); err == nil {
				process, _ = os.FindProcess(pid)
			}
		}
	}
	return process, errUnanswered
}
