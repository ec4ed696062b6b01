// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
)

// build has gojail-launcher build a sandbox, as slurmstepd does for a job.
func (n *localNode) build(c *config.Config, j *config.Jail, job string, who *person, mounts string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := exec.Command(filepath.Join(n.LibDir, contract.Launcher), "sandbox",
		"state="+n.State, "config="+n.Config, "node="+n.Node.Name, "jail="+j.Name, "job="+job,
		fmt.Sprintf("uid=%d", who.uid), fmt.Sprintf("gid=%d", who.gid), "groups="+who.groupList(),
		"mounts="+mounts, fmt.Sprintf("deadline=%d", c.Deadline.Milliseconds()))
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.ExtraFiles = []*os.File{write} // descriptor 3, gojail.ReplyFD
	cmd.Stderr = os.Stderr
	err = cmd.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("cannot start gojail-launcher; is gojail installed in %s? (--libdir): %w", n.LibDir, reason(err))
	}
	// It keeps the deadline itself; this is for one that hangs.
	patience := c.Deadline + 2*time.Second
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	read.SetReadDeadline(time.Now().Add(patience)) // a process that it left may keep the pipe open
	reply := answer(bufio.NewScanner(read))
	cmd.Wait()
	return reply
}

// answer reads lines up to "ok" or "error TEXT" (include/gojail.h).
func answer(lines *bufio.Scanner) error {
	for lines.Scan() {
		if lines.Text() == "ok" {
			return nil
		}
		if text, is := strings.CutPrefix(lines.Text(), "error "); is {
			return errors.New(text)
		}
	}
	return fmt.Errorf("gojail-launcher ended without an answer, or did not give one by the deadline; see: gojail check")
}
