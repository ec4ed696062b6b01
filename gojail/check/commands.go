// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
	if exit := (*command.ExitError)(nil); errors.As(err, &exit) && exit.Stderr != "" {
		c.warn("commands", "correct what it names", "users' commands of Slurm fail on this host: %v", err)
		return
	}
	if text = strings.TrimSpace(text); err != nil && text == "" {
		text = err.Error()
	}
	c.warn("commands", "run on its host: systemctl start slurmctld; or check the network to it",
		"slurmctld does not answer users' commands on this host (%s): no job starts", text)
}

// runForUsers runs a command of Slurm with the rights of a user who owns nothing, and returns its output.
func (c *checker) runForUsers(path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	return command.Run(ctx, command.Command{Path: path, Args: args,
		Env:        []string{"SLURM_CONF=" + filepath.Join(c.config.Slurm.Conf, "slurm.conf")},
		Credential: &syscall.Credential{Uid: lastUserID, Gid: lastUserID}})
}
