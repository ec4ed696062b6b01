// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"os"
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

// usersMax is the limit of users whose ForceCommand sshd is asked for.
const usersMax = 8

// describeReload returns a change of sshd_config, which has no effect before sshd reads it.
func (c *checker) describeReload(edit string, start bool) string {
	unit, verb := "sshd", "reload" // Red Hat's and SUSE's
	if rootpath.Exists(c.node.path("/etc/debian_version")) {
		unit = "ssh"
	}
	if start {
		verb = "restart"
	}
	return edit + "; then run: sshd -t && systemctl " + verb + " " + unit
}

// describeSetting returns how a setting of sshd is made for all users: sshd takes the first value, and refuses most
// keywords below a Match line (sshd_config(5)).
func (c *checker) describeSetting(line string) string {
	keyword, _, _ := strings.Cut(line, " ")
	return c.describeReload("write to /etc/ssh/sshd_config, above any Match and in place of other lines of "+keyword+
		": "+line, false)
}

// checkForceCommand reports users for whom sshd starts another command than gojail-session. The settings are the last
// one's.
func (c *checker) checkForceCommand(settings map[string]string, people []person) {
	program := filepath.Join(c.node.LibDir, contract.Session)
	last := settings["forcecommand"]
	users, count, asked := map[string][]string{last: nil}, 0, usersMax
	if c.watch {
		asked = 1 // twice a minute sshd is not started for each user
	}
	for i := max(0, len(people)-asked); i < len(people); i++ {
		command := last
		if i < len(people)-1 {
			own, err := readSSHD(people[i].name)
			if err != nil {
				continue
			}
			command = own["forcecommand"]
		}
		users[command] = append(users[command], people[i].name)
		count++
	}
	remedy := c.describeReload("write at the end of /etc/ssh/sshd_config, in place of other lines of ForceCommand: "+
		"Match User *,!root, and below it: ForceCommand "+program, false)
	for _, command := range slices.Sorted(maps.Keys(users)) {
		whom, report := "", c.fail
		if named := users[command]; len(named) < count {
			whom, report = " for "+summarize(named, "users"), c.warn
		}
		switch {
		case filepath.Base(command) == contract.Session && isSameFile(command, program):
			c.ok("sessions", "sshd starts %s%s", command, whom)
		case c.isWrapper(command):
			c.warn("sessions", remedy, "sshd starts %s%s: sessions are in a jail only if that starts %s", command,
				whom, program)
		case command != "" && command != "none":
			report("sessions", remedy, "sshd starts %s%s, which is not %s: a session fails, or is outside the jail",
				command, whom, program)
		case strings.HasPrefix(settings["sftp"], "internal-sftp"):
			c.fail("sessions", remedy, "sshd has no ForceCommand%s: its internal-sftp reads and writes files of the "+
				"node, outside the jail", whom)
		default:
			c.warn("sessions", remedy,
				"sshd has no ForceCommand%s: only users whose login shell is gojail-session enter the jail", whom)
		}
	}
}

// isWrapper reports whether a command of sshd's is a program, which may be one that starts gojail-session.
func (c *checker) isWrapper(command string) bool {
	words := strings.Fields(command)
	if len(words) == 0 || !filepath.IsAbs(words[0]) || filepath.Base(words[0]) == contract.Session {
		return false
	}
	info, err := os.Stat(c.node.path(words[0]))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// checkSSHD reports settings of sshd with which a user's program runs on the node, or no session begins.
func (c *checker) checkSSHD(settings map[string]string, people []person) {
	program := filepath.Join(c.node.LibDir, contract.Session)
	c.checkForceCommand(settings, people)
	for _, setting := range []struct{ name, what string }{
		{"PermitUserRC", "sshd executes ~/.ssh/rc on the node, outside the jail"},
		{"PermitUserEnvironment",
			"sshd gives programs on the node the variables of ~/.ssh/environment, LD_PRELOAD for instance"},
	} {
		if value := settings[strings.ToLower(setting.name)]; value != "" && value != "no" {
			c.fail("sessions", c.describeSetting(setting.name+" no"), "%s", setting.what)
		}
	}
	if name := findAccepted(settings, "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV"); name != "" {
		c.fail("sessions", c.describeReload("name only harmless variables in AcceptEnv of sshd_config, such as LANG "+
			"and LC_*", false),
			"sshd gives programs on the node the client's %s (AcceptEnv %s)", name, settings["acceptenv"])
	}
	if value := settings["chrootdirectory"]; value != "" && value != "none" {
		c.fail("sessions", c.describeReload("remove ChrootDirectory from sshd_config", false),
			"sshd changes its root to %s, where it does not find %s: no session begins", value, program)
	}
	if settings["usepam"] == "no" {
		c.warn("sessions", c.describeSetting("UsePAM yes"), "sshd does not use PAM: sessions have neither limits "+
			"nor an audit login uid, and pam_slurm_adopt has no effect")
	}
	if settings["x11forwarding"] == "yes" && settings["xauthlocation"] != program {
		c.warn("sessions", c.describeSetting("XAuthLocation "+program),
			"sshd stores the cookie of ssh -X by xauth on the node, where programs in the jail may not find it")
	}
	if value := settings["allowstreamlocalforwarding"]; value != "" && value != "no" {
		c.warn("sessions", c.describeSetting("AllowStreamLocalForwarding no"),
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
	c.warn("sessions", "set up pam_slurm_adopt (account required), or "+c.describeSetting("AllowTcpForwarding no"),
		"sshd forwards ports (ssh -N -L) for users without a job, and after its end")
}

// checkChoice reports variables by which users choose a job or a jail, if sshd does not accept them.
func (c *checker) checkChoice(settings map[string]string) {
	missing := slices.DeleteFunc([]string{"SLURM_JOB_ID", "SLURM_JAIL"},
		func(name string) bool { return findAccepted(settings, name) != "" })
	if len(missing) > 0 && len(settings) > 0 {
		c.warn("sessions", c.describeReload("add this line to /etc/ssh/sshd_config, above any Match: AcceptEnv "+
			"SLURM_JOB_ID SLURM_JAIL", false),
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
