// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

const (
	sshd        = "/usr/sbin/sshd"
	sshdTimeout = 5 * time.Second
	firstUID    = 1000 // of people (login.defs(5))
)

// checkSessions checks what ssh sessions in jails depend on: the program, sshd, accounts and PAM
// (docs/sessions.md). A node where nothing names gojail-session is not checked, nor one without sshd.
func (c *checker) checkSessions() {
	user, others := c.findLoginShells()
	settings, err := readSSHD(user)
	forced := strings.Contains(settings["forcecommand"], contract.Session)
	service := cmp.Or(settings["pamservicename"], "sshd")
	pam := append(c.readPAM(service), c.readPAM("ssh")...)
	adopts := slices.ContainsFunc(pam, func(r pamRule) bool { return r.module == "pam_slurm_adopt.so" })
	login := c.config.Login.Here
	if !forced && !c.config.Session.Configured && !login {
		if adopts {
			c.warn("sessions", "let them start with gojail-session (docs/sessions.md), or tell users that srun --overlap --jobid=JOB --jail=NAME --pty bash "+
				"starts a shell in the jail of their job",
				"pam_slurm_adopt: an ssh session runs in its job's cgroup, but outside the jail")
		}
		return
	}
	c.checkSessionProgram()
	if login {
		c.checkLogin()
	}
	c.checkUserManager(append([]string{service}, loginServices...))
	c.checkSchedulers()
	if i := slices.IndexFunc(pam, func(r pamRule) bool { return strings.Contains(r.args, "user_readenv=1") }); i >= 0 {
		c.fail("sessions", "remove user_readenv=1 from "+pam[i].file,
			"PAM gives sshd's programs on the node the variables of ~/.pam_environment, LD_PRELOAD for xauth of ssh -X for instance")
	}
	if !adopts && !login {
		c.warn("sessions", "add pam_slurm_adopt to the account lines of /etc/pam.d/sshd, with join_container=false",
			"no pam_slurm_adopt: ssh sessions are not in their job's cgroup, and use CPUs, memory and GPUs that are not the job's")
	}
	if err != nil {
		c.warn("sessions", "run: "+sshd+" -T", "cannot read the settings of sshd: %v", err)
		return
	}
	c.checkSSHD(settings, forced)
	if len(others) > 0 {
		c.warn("sessions", "make "+filepath.Join(c.node.LibDir, contract.Session)+" their login shell on this node",
			"sshd starts the login shell of %s on the node, where it reads their start-up files before they are in the jail", summarize(others, "users"))
	}
}

// summarize names at most three of several users or other things.
func summarize(names []string, things string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more %s", strings.Join(names[:3], ", "), len(names)-3, things)
	}
	return strings.Join(names, ", ")
}

// findLoginShells returns a user whose settings of sshd are typical, and those in passwd(5) that have a
// login shell other than gojail-session. It does not ask a name service for all of its users.
func (c *checker) findLoginShells() (user string, others []string) {
	user = "nobody"
	for _, line := range node.ConfLines(c.node.passwd()) {
		fields := strings.Split(line, ":")
		if len(fields) < 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		shell := filepath.Base(fields[6])
		if err != nil || uid < firstUID || uid >= 65534 || slices.Contains([]string{"nologin", "false", "sync"}, shell) {
			continue
		}
		user = fields[0]
		if shell != contract.Session {
			others = append(others, fields[0])
		}
	}
	return user, others
}

// readSSHD returns the settings of sshd for a user, in its own words (sshd -T), with keys in lower case as OpenSSH before 10.6 prints
// them; none where there is no sshd.
func readSSHD(user string) (map[string]string, error) {
	settings := map[string]string{}
	if !rootpath.Exists(sshd) {
		return settings, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sshdTimeout)
	defer cancel()
	text, err := command.Run(ctx, command.Command{Path: sshd, Args: []string{"-T", "-C", "user=" + user + ",host=localhost,addr=127.0.0.1"}})
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.EqualFold(key, "subsystem") {
			key, value, _ = strings.Cut(value, " ")
		}
		settings[strings.ToLower(key)] = value
	}
	return settings, err
}

// checkSSHD reports settings of sshd with which a user's program runs on the node.
func (c *checker) checkSSHD(settings map[string]string, forced bool) {
	program := filepath.Join(c.node.LibDir, contract.Session)
	switch {
	case !forced && strings.HasPrefix(settings["sftp"], "internal-sftp"):
		c.fail("sessions", "write to sshd_config: ForceCommand "+program, "sshd's internal-sftp reads and writes files of the node, outside the jail")
	case !forced:
		c.warn("sessions", "write to sshd_config: ForceCommand "+program, "sshd has no ForceCommand: only users whose login shell is gojail-session enter the jail")
	default:
		c.ok("sessions", "sshd starts %s", settings["forcecommand"])
	}
	for _, setting := range []struct{ name, what string }{
		{"PermitUserRC", "sshd executes ~/.ssh/rc on the node, outside the jail"},
		{"PermitUserEnvironment", "sshd gives programs on the node the variables of ~/.ssh/environment, LD_PRELOAD for instance"},
	} {
		if value := settings[strings.ToLower(setting.name)]; value != "" && value != "no" {
			c.fail("sessions", "write to sshd_config: "+setting.name+" no", "%s", setting.what)
		}
	}
	if settings["x11forwarding"] == "yes" && settings["xauthlocation"] != program {
		c.warn("sessions", "write to sshd_config: XAuthLocation "+program+", or X11Forwarding no",
			"sshd stores the cookie of ssh -X by xauth on the node, where programs in the jail may not find it")
	}
	if value := settings["allowstreamlocalforwarding"]; value != "" && value != "no" {
		c.warn("sessions", "write to sshd_config: AllowStreamLocalForwarding no", "users reach Unix sockets of the node, outside the jail")
	}
}

// checkSessionProgram reports why gojail-session would not run as root, or would refuse to.
func (c *checker) checkSessionProgram() {
	var st unix.Stat_t
	var fs unix.Statfs_t
	path := filepath.Join(c.node.LibDir, contract.Session)
	if err := unix.Stat(path, &st); err != nil {
		c.fail("sessions", "install gojail again", "%s: %v", path, err)
		return
	}
	switch err := trusted.Parents(path); {
	case st.Uid != 0 || st.Mode&0o022 != 0 || st.Mode&unix.S_ISUID == 0:
		c.fail("sessions", fmt.Sprintf("run: chown root %s; chmod 4755 %s", path, path), "%s is not set-user-ID root: every session is refused", path)
	case err != nil:
		c.fail("sessions", "let only root write there", "%v: every session is refused", err)
	case unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOSUID != 0:
		c.fail("sessions", "install it elsewhere, or mount that without nosuid", "%s is on a file system with nosuid: every session is refused", path)
	}
	if slices.Contains(node.ConfLines(c.node.path("/etc/shells")), path) {
		c.warn("sessions", "remove it from /etc/shells", "/etc/shells lists %s: with su -s and chsh users choose another shell on the node", path)
	}
	if info, err := os.Lstat(contract.SessionConfig); err == nil && (!info.Mode().IsRegular() || trusted.Parents(contract.SessionConfig) != nil) {
		c.fail("sessions", "replace it by a regular file of root, mode 0644", "%s is not a file that only root can change: every session is refused", contract.SessionConfig)
	}
}
