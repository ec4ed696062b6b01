// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/trusted"
)

const firstUID = 1000 // of people (login.defs(5))

// checkSessions checks what ssh sessions in jails depend on: the program, sshd, accounts and PAM
// (docs/sessions.md). A node where nothing names gojail-session is not checked, nor one without sshd.
func (c *checker) checkSessions(conf node.SlurmConf) {
	user, others := c.findLoginShells()
	settings, err := readSSHD(user)
	forced := strings.Contains(settings["forcecommand"], contract.Session)
	service := cmp.Or(settings["pamservicename"], "sshd")
	pam := append(c.readPAM(service), c.readPAM("ssh")...)
	adopts := slices.ContainsFunc(pam, func(r pamRule) bool { return r.module == adoption })
	login := c.config.Login.Here
	if !forced && !c.config.Session.Configured && !login {
		if adopts {
			c.warn("sessions", "let them start with gojail-session (docs/sessions.md), or tell users that srun "+
				"--overlap --jobid=JOB --jail=NAME --pty bash "+
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
			"PAM gives sshd's programs on the node the variables of ~/.pam_environment, LD_PRELOAD for xauth of ssh "+
				"-X for instance")
	}
	if !login {
		c.checkAdoption(conf, pam)
		if !adopts { // otherwise checkAdoption asks for Contain, which implies it
			c.checkBegin(conf)
		}
	}
	c.checkPAMNamespaces(conf, pam)
	if err != nil {
		c.warn("sessions", "run: "+sshd+" -T", "cannot read the settings of sshd: %v", err)
		return
	}
	c.checkSSHD(settings, forced)
	if !login {
		c.checkForwarding(settings, adopts)
		c.checkChoice(settings)
	}
	if len(others) > 0 {
		c.warn("sessions", "make "+filepath.Join(c.node.LibDir, contract.Session)+" their login shell on this node",
			"sshd starts the login shell of %s on the node, where it reads their start-up files before they are in "+
				"the jail", summarize(others, "users"))
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
		if err != nil || uid < firstUID || uid >= 65534 || slices.Contains([]string{"nologin", "false", "sync"},
			shell) {
			continue
		}
		user = fields[0]
		if shell != contract.Session {
			others = append(others, fields[0])
		}
	}
	return user, others
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
		c.fail("sessions", fmt.Sprintf("run: chown root %s; chmod 4755 %s", path, path),
			"%s is not set-user-ID root: every session is refused", path)
	case err != nil:
		c.fail("sessions", "let only root write there", "%v: every session is refused", err)
	case unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOSUID != 0:
		c.fail("sessions", "install it elsewhere, or mount that without nosuid",
			"%s is on a file system with nosuid: every session is refused", path)
	}
	if slices.Contains(node.ConfLines(c.node.path("/etc/shells")), path) {
		c.warn("sessions", "remove it from /etc/shells",
			"/etc/shells lists %s: with su -s and chsh users choose another shell on the node", path)
	}
	if info, err := os.Lstat(contract.SessionConfig); err == nil &&
		(!info.Mode().IsRegular() || trusted.Parents(contract.SessionConfig) != nil) {
		c.fail("sessions", "replace it by a regular file of root, mode 0644",
			"%s is not a file that only root can change: every session is refused", contract.SessionConfig)
	}
}

// checkLogin reports in which jails sessions on a login node are, and those in which Slurm's commands are missing.
func (c *checker) checkLogin() {
	var names []string
	for _, rule := range c.config.Login.Rules {
		if !slices.Contains(names, rule.Jail) {
			names = append(names, rule.Jail)
		}
	}
	c.ok("sessions", "a login node: sessions are in %s", strings.Join(names, ", "))
	for _, name := range names {
		if j := c.config.Jails[name]; j != nil && !j.Slurm {
			c.warn("sessions", fmt.Sprintf("write slurm = true in [jail.%s]", name),
				"jail %s: users cannot start jobs from sessions on this login node", name)
		}
	}
}
