// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/rootpath"
)

const (
	sshd        = "/usr/sbin/sshd"
	sshdTimeout = 5 * time.Second
)

// readSSHD returns the settings of sshd for a user, in its own words (sshd -T), with keys in lower case as OpenSSH
// before 10.6 prints them; none if there is no sshd.
func readSSHD(user string) (map[string]string, error) {
	settings := map[string]string{}
	if !rootpath.Exists(sshd) {
		return settings, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sshdTimeout)
	defer cancel()
	text, err := command.Run(ctx,
		command.Command{Path: sshd, Args: []string{"-T", "-C", "user=" + user + ",host=localhost,addr=127.0.0.1"}})
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.EqualFold(key, "subsystem") {
			key, value, _ = strings.Cut(value, " ")
		}
		if key = strings.ToLower(key); key == "acceptenv" { // a line for each pattern
			value = strings.TrimSpace(settings[key] + " " + value)
		}
		settings[key] = value
	}
	return settings, err
}

// checkSSHD reports settings of sshd with which a user's program runs on the node, or no session begins.
func (c *checker) checkSSHD(settings map[string]string, forced bool) {
	program := filepath.Join(c.node.LibDir, contract.Session)
	switch {
	case !forced && strings.HasPrefix(settings["sftp"], "internal-sftp"):
		c.fail("sessions", "write to sshd_config: ForceCommand "+program,
			"sshd's internal-sftp reads and writes files of the node, outside the jail")
	case !forced:
		c.warn("sessions", "write to sshd_config: ForceCommand "+program,
			"sshd has no ForceCommand: only users whose login shell is gojail-session enter the jail")
	default:
		c.ok("sessions", "sshd starts %s", settings["forcecommand"])
	}
	for _, setting := range []struct{ name, what string }{
		{"PermitUserRC", "sshd executes ~/.ssh/rc on the node, outside the jail"},
		{"PermitUserEnvironment",
			"sshd gives programs on the node the variables of ~/.ssh/environment, LD_PRELOAD for instance"},
	} {
		if value := settings[strings.ToLower(setting.name)]; value != "" && value != "no" {
			c.fail("sessions", "write to sshd_config: "+setting.name+" no", "%s", setting.what)
		}
	}
	if name := findAccepted(settings, "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV"); name != "" {
		c.fail("sessions", "name only harmless variables in AcceptEnv of sshd_config, such as LANG and LC_*",
			"sshd gives programs on the node the client's %s (AcceptEnv %s)", name, settings["acceptenv"])
	}
	if value := settings["chrootdirectory"]; value != "" && value != "none" {
		c.warn("sessions", "remove ChrootDirectory from sshd_config",
			"sshd changes its root to %s, where it does not find %s: no session begins", value, program)
	}
	if settings["usepam"] == "no" {
		c.warn("sessions", "write to sshd_config: UsePAM yes", "sshd does not use PAM: sessions have neither limits "+
			"nor an audit login uid, and pam_slurm_adopt has no effect")
	}
	if settings["x11forwarding"] == "yes" && settings["xauthlocation"] != program {
		c.warn("sessions", "write to sshd_config: XAuthLocation "+program+", or X11Forwarding no",
			"sshd stores the cookie of ssh -X by xauth on the node, where programs in the jail may not find it")
	}
	if value := settings["allowstreamlocalforwarding"]; value != "" && value != "no" {
		c.warn("sessions", "write to sshd_config: AllowStreamLocalForwarding no",
			"users reach Unix sockets of the node, outside the jail")
	}
}

// checkForwarding reports that users without a job reach the node's network: sshd forwards ports for a connection, with
// or without a session. With pam_slurm_adopt the connection needs a job, and ends with it.
func (c *checker) checkForwarding(settings map[string]string, adopts bool) {
	if value := settings["allowtcpforwarding"]; adopts || value == "" || value == "no" ||
		settings["disableforwarding"] == "yes" {
		return
	}
	c.warn("sessions", "set up pam_slurm_adopt, or write to sshd_config: AllowTcpForwarding no",
		"sshd forwards ports (ssh -N -L) for users without a job, and after its end")
}

// checkChoice reports variables by which users choose a job or a jail, if sshd does not accept them.
func (c *checker) checkChoice(settings map[string]string) {
	missing := slices.DeleteFunc([]string{"SLURM_JOB_ID", "SLURM_JAIL"},
		func(name string) bool { return findAccepted(settings, name) != "" })
	if len(missing) > 0 && len(settings) > 0 {
		c.warn("sessions", "write to sshd_config: AcceptEnv SLURM_JOB_ID SLURM_JAIL",
			"sshd does not accept %s: users cannot choose among their jobs and jails (ssh -o SetEnv)",
			strings.Join(missing, " and "))
	}
}

// findAccepted returns the first of the variables that sshd takes from clients, or "".
func findAccepted(settings map[string]string, names ...string) string {
	for _, name := range names {
		if slices.ContainsFunc(strings.Fields(settings["acceptenv"]), func(pattern string) bool {
			matches, err := path.Match(pattern, name) // sshd's patterns have the same * and ?
			return err == nil && matches
		}) {
			return name
		}
	}
	return ""
}
