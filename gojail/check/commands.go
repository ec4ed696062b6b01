// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/command"
)

// commandTimeout is the limit of a command of Slurm's. srun retries to read a missing file for a minute.
const commandTimeout = 5 * time.Second

// checkCommands runs commands of Slurm with the rights of a user who owns nothing, as users run them on a submit host
// and in the jails. They read all files of Slurm's configuration, load what these name, and ask slurmctld: a fault that
// no other check knows of shows there. Faults that were reported already are not repeated.
func (c *checker) checkCommands() {
	commands, dir := node.FindCommands(c.config)
	known := c.faults["plugstack"] || c.faults["slurm"] || c.faults["capabilities"] // by which root cannot be another
	if c.watch || known || len(commands) == 0 || !c.hasSlurmJail() || os.Geteuid() != 0 {
		return
	}
	text, err := c.runForUsers(filepath.Join(dir, "srun"), "--help")
	switch {
	case err != nil && text == "":
		c.warn("commands", "mend the storage or host that it waits for: slurm.conf and plugstack.conf name it",
			"users' srun and sbatch do not start on this host: %v", err)
		return
	case err != nil:
		c.warn("commands", "correct what it names", "users' srun and sbatch do not start on this host: %v", err)
		return
	case !strings.Contains(text, "--jail="):
		c.warn("commands", "make /etc/slurm and what plugstack.conf includes readable for users",
			"users' srun on this host has no option --jail: it finds no gojail in plugstack.conf")
		return
	case c.faults["munge"]:
		return
	}
	text, err = c.runForUsers(filepath.Join(dir, "scontrol"), "ping")
	if strings.Contains(text, " is UP") {
		c.ok("commands", "srun and scontrol work for users on this host")
		return
	}
	if err != nil && text != "" && !strings.Contains(text, " is DOWN") {
		c.warn("commands", "correct what it names", "users' commands of Slurm fail on this host: %v", err)
		return
	}
	if text = strings.TrimSpace(text); err != nil && text == "" {
		text = err.Error()
	}
	c.warn("commands", "run on its host: systemctl start slurmctld; or check the network to it",
		"slurmctld does not answer users' commands on this host (%s): no job starts", text)
}

// runForUsers runs a program of Slurm's with the rights of a user who owns nothing, and returns its output and errors.
// Slurm's programs try for a minute to read a file: timeout(1) ends them, and what they said by then is the error.
func (c *checker) runForUsers(path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*commandTimeout)
	defer cancel()
	seconds := strconv.Itoa(int(commandTimeout.Seconds()))
	text, err := command.Run(ctx, command.Command{Path: "/bin/sh",
		Args:       append([]string{"-c", `exec timeout "$@" 2>&1`, "sh", seconds, path}, args...),
		Env:        []string{"SLURM_CONF=" + filepath.Join(c.config.Slurm.Conf, "slurm.conf")},
		Credential: &syscall.Credential{Uid: lastUserID, Gid: lastUserID}})
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); err != nil && line != "" {
		return text, fmt.Errorf("%s: %.200s", path, line)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 124 {
		return "", fmt.Errorf("%s does not answer within %v", path, commandTimeout)
	}
	return text, err
}
