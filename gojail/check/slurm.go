// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// checkSlurm checks the settings that gojail and Slurm must agree on.
func (c *checker) checkSlurm() {
	cfg := c.config
	slurmds := c.findSlurmds()
	if path := filepath.Join(cfg.Slurm.Conf, "slurm.conf"); !rootpath.Exists(path) {
		remedy := "correct the directory of slurm.conf, conf = in [slurm]; if slurmctld sends the file, start slurmd " +
			"first"
		for _, pid := range slurmds {
			if used := c.findSlurmdsFile(pid); rootpath.Exists(used) {
				remedy = c.describeConfEdit(used)
			}
		}
		c.fail("slurm", remedy, "%s does not exist", path)
		return
	}
	conf := c.readSlurmdsConf()
	if c.checkConfigless(conf) {
		c.checkPlugstack(conf)
	}
	c.checkPluginDirs(conf)
	c.checkSpool(conf)
	if c.hasSlurmJail() {
		c.checkMunge(conf)
		if commands, dir := node.FindCommands(cfg); len(commands) == 0 {
			c.warn("slurm",
				`install them, or add their directory to host = in [slurm] ("/opt/slurm" for /opt/slurm/bin)`,
				"no srun on this node: jails will have no Slurm commands")
		} else {
			c.ok("slurm", "%d Slurm commands in %s", len(commands), dir)
		}
	}
	c.checkProlog(conf)
	c.checkEpilog(conf)
	c.checkFeatures(conf)
	c.checkLaunch(conf)
	c.checkConstraints(conf)
	c.checkIMEX(conf)
	c.checkHealthProgram(conf)
	c.checkSessions(conf)
	c.checkWhichSlurm(conf, slurmds)
	c.checkStart(conf, len(slurmds) > 0)
	c.checkSlurmd(slurmds)
	c.checkCommands()
	c.checkLatency(conf, slurmds)
}

// checkPluginDirs reports a PluginDir of slurm.conf with which no part of Slurm starts: a directory that does not exist
// (_validate_plugin_dir in read_config.c), or none with Slurm's own plugins, whose directory it replaces.
func (c *checker) checkPluginDirs(conf node.SlurmConf) {
	value := conf.Values["plugindir"]
	good := slices.DeleteFunc(slices.Clone(conf.Plugins), func(dir string) bool { return !rootpath.Exists(dir) })
	var missing []string
	for _, dir := range conf.Plugins {
		if !slices.Contains(good, dir) {
			missing = append(missing, dir+" does not exist")
		}
	}
	if path, _ := findNodesRelease(good); value != "" && path == "" {
		if path, _ = findNodesRelease(node.ReadSlurm(c.config).Dirs); path != "" {
			good = append([]string{filepath.Dir(path)}, good...)
			missing = append(missing, "none has Slurm's own plugins")
		}
	}
	if len(missing) > 0 {
		if c.mustSubmit(conf) && !slices.Contains(good, c.node.LibDir) {
			good = append(good, c.node.LibDir)
		}
		c.fail("slurm", describeEdit(conf, "replace PluginDir="+value+" by PluginDir="+strings.Join(good, ":")),
			"PluginDir=%s: %s: no daemon and no command of Slurm starts", value, strings.Join(missing, ", and "))
	}
}

// hasSlurmJail reports whether any jail has Slurm's commands.
func (c *checker) hasSlurmJail() bool {
	for _, j := range c.config.Jails {
		if j.Slurm {
			return true
		}
	}
	return false
}

// checkSpool compares the spool directory with slurm.conf: gojail looks for batch scripts there.
func (c *checker) checkSpool(conf node.SlurmConf) {
	given := conf.Values["slurmdspooldir"]
	if given == "" {
		given = config.StandardSpool
	}
	host := node.HostName()
	want := filepath.Clean(strings.NewReplacer("%n", c.config.Node, "%h", host).Replace(given))
	if want != c.config.Slurm.Spool {
		c.fail("spool",
			fmt.Sprintf("write spool = %q in [slurm] of %s, or correct SlurmdSpoolDir", given, c.config.Path),
			"%s here, but SlurmdSpoolDir is %s: batch jobs fail", c.config.Slurm.Spool, want)
		return
	}
	// SlurmUser tells slurmd what to run as which user, so owning the directory gives it no more rights.
	if err := trusted.ParentsOf(want, c.findSlurmUID(conf)); err != nil {
		c.warn("spool", "", "a user who can replace SlurmdSpoolDir chooses the scripts that root's batch jobs run: %v",
			err)
		return
	}
	c.ok("spool", "%s, as in slurm.conf", want)
}

// findSlurmUID returns SlurmUser's number, or root's if it cannot be found without a name service.
func (c *checker) findSlurmUID(conf node.SlurmConf) uint32 {
	name := conf.Values["slurmuser"]
	if uid, err := config.ParseID(name); err == nil {
		return uid
	}
	uid, _ := findPasswdUID(c.node.passwd(), name)
	return uid
}

// findPasswdUID returns the number of a user in a passwd(5) file.
func findPasswdUID(path, name string) (uint32, bool) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); len(fields) >= 3 && fields[0] == name && name != "" {
			uid, err := config.ParseID(fields[2])
			return uid, err == nil
		}
	}
	return 0, false
}

// sackSocket is the name of the socket with which slurmd serves Slurm's commands where AuthType is auth/slurm
// (sackd(8)).
const sackSocket = "sack.socket"

// checkMunge warns if users do not reach munge's socket, or slurmd's in its place, which does not fail a launch
// (spank/common/job_mounts.c).
func (c *checker) checkMunge(conf node.SlurmConf) {
	var st unix.Stat_t
	path := c.config.Slurm.Munge
	err := unix.Stat(path, &st)
	missing := err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK
	switch auth := conf.Values["authtype"]; {
	case auth == "auth/slurm" && (missing || filepath.Base(path) != sackSocket):
		c.warn("munge", "write munge = \"/run/slurm/"+sackSocket+"\" in [slurm], or slurm = false in the jails",
			"AuthType=auth/slurm, and %s is not slurmd's socket: srun and other commands of Slurm do not work inside "+
				"a jail", path)
	case auth != "" && auth != "auth/munge" && auth != "auth/slurm":
	case missing:
		c.warn("munge",
			"run: systemctl restart munge; or correct munge = in [slurm], or write slurm = false in the jails",
			"%s is not munge's socket: srun inside a jail fails", path)
	case c.watch: // munged logs each connection without a request; the health check has one of its own
		c.ok("munge", "%s exists", path)
	default:
		c.checkSocket(path)
	}
}

// checkSocket reports a socket to which users cannot connect: nobody serves it any more, or modes keep them out.
func (c *checker) checkSocket(path string) {
	err := asUser(func() error { return connect(path) })
	switch {
	case err == nil:
		c.ok("munge", "%s exists, and users can connect to it", path)
	case errors.Is(err, unix.EACCES):
		remedy := "see /etc/munge and the modes of the directories above"
		if top, failed := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0); failed == nil {
			defer unix.Close(top)
			list := findClosed(top, path, unix.W_OK|unix.R_OK)
			var commands []string
			for _, one := range list {
				right := "x"
				if one == list[len(list)-1] && one.path == resolveInRoot(top, path) {
					right = "rw"
				}
				commands = append(commands, "chmod a+"+right+" "+oneline.ShellWord(one.path))
			}
			if len(commands) > 0 {
				remedy = "run: " + strings.Join(commands, " && ")
			}
		}
		c.warn("munge", remedy, "users may not connect to %s: srun and other commands of Slurm fail for them", path)
	default:
		c.warn("munge", "run: systemctl restart munge",
			"nobody serves %s (%v): Slurm's commands fail, and no job starts", path, oneline.Errno(err))
	}
}

// connect connects to a Unix socket, and ends the connection.
func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != unix.EAGAIN {
		return err // a full queue is somebody's who serves it
	}
	return nil
}

// checkLatency warns about settings outside gojail that delay each launch.
func (c *checker) checkLatency(conf node.SlurmConf, slurmds []int) {
	if hasExternStep(conf) {
		c.warn("latency", "remove it from slurm.conf if you need neither pam_slurm_adopt nor X11",
			"PrologFlags=%s costs each job about 100 ms", conf.Values["prologflags"])
	}
	plugins, _ := filepath.Glob("/usr/lib*/*/hwloc/hwloc_*.so")
	more, _ := filepath.Glob("/usr/lib*/hwloc/hwloc_*.so")
	if plugins = append(plugins, more...); len(plugins) == 0 {
		return
	}
	if len(slurmds) == 0 || slices.ContainsFunc(slurmds, hasHwlocPath) {
		return
	}
	c.warn("latency", "set HWLOC_PLUGINS_PATH=/nonexistent in slurmd's environment, or remove the package (Debian: "+
		"libhwloc-plugins)",
		"slurmstepd loads the hwloc plugins of %s in each launch, which takes about 3.5 ms", filepath.Dir(plugins[0]))
}

// hasExternStep reports whether each job has the step into which pam_slurm_adopt puts sessions (PrologFlags of
// slurm.conf(5)).
func hasExternStep(conf node.SlurmConf) bool {
	flags := conf.Values["prologflags"]
	return hasWord(flags, "contain") || hasWord(flags, "x11") // which implies the other
}

// hasHwlocPath reports whether a process has HWLOC_PLUGINS_PATH in its environment.
func hasHwlocPath(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return bytes.HasPrefix(text, []byte("HWLOC_PLUGINS_PATH=")) ||
		bytes.Contains(text, []byte("\x00HWLOC_PLUGINS_PATH="))
}

// findProcesses returns the pids of root's processes with that name (/proc/PID/comm), without those of containers,
// which have a PID namespace of their own. A user's process may have any name, and its memory may lie on a file system
// that never answers, so that reading its environment hangs.
func findProcesses(name string) []int {
	own, err := procfs.ReadNamespace(os.Getpid(), "pid")
	pids, _ := procfs.ListNumbers("/proc")
	return slices.DeleteFunc(pids, func(pid int) bool {
		if procfs.ReadName("/proc", pid) != name || !procfs.IsRoots(pid) {
			return true
		}
		its, failed := procfs.ReadNamespace(pid, "pid")
		return err == nil && failed == nil && its != own
	})
}
