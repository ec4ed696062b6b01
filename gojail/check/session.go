// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/trusted"
)

const firstUID = 1000 // of people (login.defs(5))

// person is a user in passwd(5) who may log in.
type person struct{ name, shell string }

// checkSessions checks what ssh sessions in jails depend on: the program, sshd, accounts and PAM
// (docs/sessions.md). A node where nothing names gojail-session is not checked, nor one without sshd.
func (c *checker) checkSessions(conf node.SlurmConf) {
	people := c.listPeople()
	user := "nobody" // whose settings of sshd are typical
	if len(people) > 0 {
		user = people[len(people)-1].name
	}
	settings, err := readSSHD(user)
	service := cmp.Or(settings["pamservicename"], "sshd")
	pam := c.readPAM(service)
	login := c.config.Login.Here
	if !c.usesSessions(people) {
		if slices.ContainsFunc(pam, isAdoption) {
			c.warn("sessions", "let them start with gojail-session (docs/sessions.md), or tell users that srun "+
				"--overlap --jobid=JOB --jail=NAME --pty bash "+
				"starts a shell in the jail of their job",
				"pam_slurm_adopt: an ssh session runs in its job's cgroup, but outside the jail")
		}
		return
	}
	c.checkSessionProgram()
	c.checkSessionConfig(conf)
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
	adopts := c.checkStack(conf, service, pam, people)
	c.checkPAMNamespaces(conf, pam)
	c.checkLoginShells(people)
	if err != nil && strings.Contains(err.Error(), "privilege separation directory") { // which its unit makes
		c.warn("sessions", "start sshd, and run gojail check again", "cannot read the settings of sshd: %v", err)
		return
	}
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.Exited()) {
		c.warn("sessions", "run: "+sshd+" -T", "cannot read the settings of sshd: %v", err) // it was slow, or killed
		return
	}
	if err != nil {
		c.fail("sessions", c.describeReload("correct what sshd names", true),
			"sshd does not start, and no session begins: %v", err)
		return
	}
	c.checkSSHD(settings, people)
	if !login {
		c.checkForwarding(settings, adopts)
		c.checkChoice(settings)
	}
}

// usesSessions reports whether anything on the node names gojail-session for sessions.
func (c *checker) usesSessions(people []person) bool {
	if c.config.Session.Configured || c.config.Login.Here || slices.ContainsFunc(people, func(p person) bool {
		return filepath.Base(p.shell) == contract.Session
	}) {
		return true
	}
	for _, pattern := range []string{"ssh/sshd_config", "ssh/sshd_config.d/*.conf", "sssd/sssd.conf",
		"sssd/conf.d/*.conf"} {
		files, _ := filepath.Glob(c.node.path("/etc", pattern))
		for _, file := range files {
			if slices.ContainsFunc(node.ConfLines(file), func(line string) bool {
				return strings.Contains(line, contract.Session)
			}) {
				return true
			}
		}
	}
	return false
}

// summarize names at most three of several users or other things.
func summarize(names []string, things string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more %s", strings.Join(names[:3], ", "), len(names)-3, things)
	}
	return strings.Join(names, ", ")
}

// listPeople returns the users in passwd(5) who may log in. It does not ask a name service for all of its users.
func (c *checker) listPeople() (people []person) {
	for _, line := range node.ConfLines(c.node.passwd()) {
		fields := strings.Split(line, ":")
		if len(fields) < 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		if err != nil || uid < firstUID || uid >= 65534 ||
			slices.Contains([]string{"nologin", "false", "sync"}, filepath.Base(fields[6])) {
			continue
		}
		people = append(people, person{fields[0], fields[6]})
	}
	return people
}

// checkLoginShells reports users with another login shell than gojail-session, and those whom sshd refuses, because
// theirs cannot be executed (allowed_user in auth.c of OpenSSH).
func (c *checker) checkLoginShells(people []person) {
	program := filepath.Join(c.node.LibDir, contract.Session)
	var others, refused []string
	for _, p := range people {
		switch info, err := os.Stat(p.shell); {
		case p.shell == program || isSameFile(p.shell, program):
		case p.shell != "" && (err != nil || info.Mode()&0o111 == 0):
			refused = append(refused, p.name)
		default:
			others = append(others, p.name)
		}
	}
	if len(refused) > 0 {
		c.warn("sessions", describeShells(program, refused),
			"the login shell of %s is no program: sshd refuses these users", summarize(refused, "users"))
	}
	if len(others) > 0 {
		c.warn("sessions", describeShells(program, others),
			"sshd starts the login shell of %s on the node, where it reads their start-up files before they are in "+
				"the jail", summarize(others, "users"))
	}
}

// describeShells returns the commands that give these users of passwd(5) the session program as login shell.
func describeShells(program string, users []string) string {
	if len(users) > 3 {
		return "for each of them, run: usermod -s " + program + " USER"
	}
	var commands []string
	for _, user := range users {
		commands = append(commands, "usermod -s "+program+" "+oneline.ShellWord(user))
	}
	return "run: " + strings.Join(commands, "; ")
}

func isSameFile(one, other string) bool {
	a, err := os.Stat(one)
	b, failed := os.Stat(other)
	return err == nil && failed == nil && os.SameFile(a, b)
}

// checkSessionProgram reports why gojail-session would not run as root, or would refuse to. It asks what place_check
// and find_libdir of spank/session/place.c ask.
func (c *checker) checkSessionProgram() {
	var st unix.Stat_t
	var fs unix.Statfs_t
	path := filepath.Join(c.node.LibDir, contract.Session)
	if err := unix.Stat(path, &st); err != nil {
		c.fail("sessions", "install gojail again", "%s: %v", path, err)
		return
	}
	word := oneline.ShellWord(path)
	switch err := trusted.Parents(path); {
	case st.Uid != 0 || st.Mode&0o022 != 0 || st.Mode&unix.S_ISUID == 0:
		c.fail("sessions", fmt.Sprintf("run: chown root %s; chmod 4755 %s", word, word),
			"%s is not set-user-ID root: every session is refused", path)
	case st.Nlink != 1:
		c.fail("sessions", fmt.Sprintf("run: cp -p %s %[1]s.new; chmod 4755 %[1]s.new; mv %[1]s.new %[1]s", word),
			"%s has %d names (hard links): every session is refused", path, st.Nlink)
	case err != nil:
		c.fail("sessions", "let only root write there", "%v: every session is refused", err)
	case unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOSUID != 0:
		c.fail("sessions", "install it elsewhere, or mount that without nosuid",
			"%s is on a file system with nosuid: every session is refused", path)
	default:
		c.checkProgramForUsers(path)
	}
	if slices.Contains(node.ConfLines(c.node.path("/etc/shells")), path) {
		c.warn("sessions", "remove it from /etc/shells",
			"/etc/shells lists %s: with su -s and chsh users choose another shell on the node", path)
	}
}

// checkProgramForUsers reports what keeps users from executing the program: sshd starts it as the user.
func (c *checker) checkProgramForUsers(path string) {
	top, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(top)
	if list := findClosed(top, path, unix.X_OK); len(list) > 0 {
		report := c.warn
		if admitNobody(list) {
			report = c.fail
		}
		report("sessions", "run: "+describeModes(list, "x"), "users may not execute %s (%s): their sessions end at "+
			"once", path, joinNames(list))
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
