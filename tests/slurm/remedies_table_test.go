// SPDX-License-Identifier: Apache-2.0

package slurm_test

import "testing"

// writeProlog writes a Prolog with a text and a mode, and names it in slurm.conf.
func writeProlog(text, mode string) string {
	return "printf '" + text + "' >/etc/slurm/pro; chmod " + mode + " /etc/slurm/pro; echo Prolog=/etc/slurm/pro >>CONF"
}

// nameTaskProlog names another TaskProlog in slurm.conf, in the jails.
func nameTaskProlog(mode string) string {
	return "for jail in JAIL /srv/jails/other; do printf '#!/bin/sh\\n' >$jail/opt/task; chmod " + mode + " $jail/opt/task; done; sed -i 's|^TaskProlog=.*|TaskProlog=/opt/task|' CONF"
}

const rmTask = "rm -f JAIL/opt/task /srv/jails/other/opt/task"

// TestRemedies is about the root file systems of jails.
func TestRemedies(t *testing.T) {
	requireMended(t, []mistake{
		{name: "a root that only root may enter", command: "chmod 700 JAIL", want: "users may not enter it, only root may"},
		{name: "a root that only a group of root's may enter", command: "chmod 750 JAIL", want: "users may not enter it, only root may"},
		{name: "a shell below a closed directory", command: "chmod 700 JAIL/usr/bin", want: "users may not execute /bin/sh of the jail"},
		{name: "a closed dynamic linker", command: "chmod 700 JAIL/usr/lib64", want: "users may not execute the dynamic linker of the jail"},
		{name: "closed libraries", command: "chmod 700 JAIL/usr/lib/x86_64-linux-gnu", want: "only root may: every batch script of a user fails"},
		{name: "a closed C library", command: "chmod 600 JAIL/usr/lib/x86_64-linux-gnu/libc.so.6", want: "users may not execute the C library of the jail"},
		{name: "a closed /etc", command: "chmod 700 JAIL/etc", want: "users may not read /etc/passwd of the jail"},
		{name: "a closed passwd", command: "chmod 600 JAIL/etc/passwd", want: "users may not read /etc/passwd of the jail", works: true},
		{name: "a closed group", command: "chmod 640 JAIL/etc/group", want: "users may not read /etc/group of the jail", works: true},
		{name: "closed homes", command: "chmod 700 JAIL/home", want: "users may not enter /home of the jail: their jobs start in /tmp", works: true},
		{name: "a missing mount target", command: "rmdir JAIL/proc", want: "mount targets are missing"},
		{name: "init under a narrow umask", command: "mv JAIL/opt JAIL/was; umask 077; gojail --node=n1 --state=/run/gojail/%n init debian; rmdir JAIL/proc", want: "mount targets are missing",
			undo: "rm -rf JAIL/opt; mv JAIL/was JAIL/opt"},
		{name: "a root that others may write", command: "chmod 777 JAIL", want: "users can change the jail: /srv/jails/debian: is writable by others", works: true},
		{name: "no shell", command: "mv JAIL/usr/bin/dash JAIL/usr/bin/was", want: "is a script of /bin/sh, which does not exist: every step fails",
			hand: "mv JAIL/usr/bin/was JAIL/usr/bin/dash"},
		{name: "no SlurmUser", command: "sed -i /^slurm:/d JAIL/etc/passwd", want: "SlurmUser slurm of slurm.conf is not in", works: true},
		{name: "storage with noexec", command: "mount --bind JAIL JAIL; mount -o remount,bind,noexec JAIL", want: "is mounted noexec: no program of the root can be executed", undo: "umount JAIL"},
		{name: "a mount with noexec", command: `printf '[[jail.debian.mounts]]\ndestination = "/usr"\nsource = "/usr"\noptions = ["rbind", "noexec"]\n' >>TOML`,
			want: "FAIL  jail debian: the mount of /usr has noexec"},
		{name: "a mount of nothing", command: `printf '[[jail.debian.mounts]]\ndestination = "/mnt"\nsource = "/sw"\noptions = ["bind"]\n' >>TOML`,
			want: "FAIL  jail debian: /sw (for /mnt) does not exist on this node", undo: "rmdir /sw"},
		{name: "a mount of a closed directory", command: `mkdir -m 700 /sw; printf '[[jail.debian.mounts]]\ndestination = "/mnt"\nsource = "/sw"\noptions = ["bind"]\n' >>TOML`,
			want: "/sw (for /mnt): its mode keeps users out", works: true, undo: "rmdir /sw"},
		{name: "a mount of a closed file", command: `cp /etc/passwd /etc/slurm/pw; chmod 600 /etc/slurm/pw; printf '[[jail.debian.mounts]]\ndestination = "/etc/passwd"\nsource = "/etc/slurm/pw"\noptions = ["bind"]\n' >>TOML`,
			want: "/etc/slurm/pw (for /etc/passwd): its mode keeps users out", works: true},
		{name: "a file of the node that is not there", command: `sed -i '/^.jail.debian/a host = ["/etc/hostname", "/etc/nope"]' TOML`, want: "/etc/nope does not exist on this node and is omitted", works: true},
		{name: "no such root", command: `sed -i 's|/jails/debian"|/jails/debain"|' TOML`, want: "jail root /srv/jails/debain: no such file or directory", hand: "cp -a /var/tmp/etc/gojail/gojail.toml TOML"},
	})
}

// TestRemediesOfPlugstack is about plugstack.conf, the plugin's files and who may read them.
func TestRemediesOfPlugstack(t *testing.T) {
	const names = "no plugstack.conf of /etc/slurm names spank_gojail.so"
	requireMended(t, []mistake{
		{name: "a plugin of another path", command: "sed -i 's|/[^ ]*/spank_gojail.so|/opt/gojail/spank_gojail.so|' STACK", want: "does not exist: srun, sbatch and slurmd cannot start"},
		{name: "an optional plugin", command: "sed -i 's/^required/optional/' STACK", want: "is optional", works: true},
		{name: "the line as a comment", command: "sed -i 's/^required/#required/' STACK", want: "jobs run outside their jail"},
		{name: "the line a second time", command: "grep ^required STACK >/tmp/again; cat /tmp/again >>STACK; rm /tmp/again", want: "is named 2 times"},
		{name: "a line with a capital", command: "sed -i 's/^required/Required/' STACK", want: names},
		{name: "a path in quotes", command: `sed -i 's|^required \([^ ]*\)|required "\1"|' STACK`, want: names},
		{name: "an unknown argument", command: "sed -i '/^required/s/$/ conf=\\/etc\\/x/' STACK", want: `unknown argument "conf=/etc/x"`},
		{name: "a relative argument", command: "sed -i '/^required/s/$/ config=gojail.toml/' STACK", want: "is not an absolute path: every job step fails"},
		{name: "another required plugin", command: "echo required /usr/lib/nope.so >>STACK", want: "required plugin /usr/lib/nope.so does not exist"},
		{name: "another required plugin by name", command: "echo required nope.so >>STACK", want: "required plugin nope.so does not exist"},
		{name: "a line that Slurm ignores", command: "echo need /usr/lib/nope.so >>STACK", want: "Slurm ignores this line", works: true},
		{name: "no plugstack.conf", command: "rm STACK", want: names, hand: "cp -a /var/tmp/etc/slurm/plugstack.conf STACK"},
		{name: "a plugstack.conf that users may not read", command: "chmod 600 STACK", want: "users may not read /etc/slurm/plugstack.conf"},
		{name: "an included directory that users may not read", command: "mkdir -m 700 /etc/slurm/d; grep ^required STACK >/etc/slurm/d/g.conf; sed -i 's|^required.*|include /etc/slurm/d/*.conf|' STACK",
			want: "users may not read /etc/slurm/d/g.conf"},
		{name: "a plugin that users may not read", command: "chmod 600 LIB/spank_gojail.so", want: "users may not read /opt/gojail/lib/gojail/spank_gojail.so", undo: "chmod 644 LIB/spank_gojail.so"},
		{name: "a closed directory of the plugin", command: "chmod 700 LIB", want: "users may not read /opt/gojail/lib/gojail/spank_gojail.so"},
		{name: "a closed /opt", command: "chmod 700 /opt", want: "users may not read /opt/gojail/lib/gojail/spank_gojail.so"},
		{name: "a launcher that is not executable", command: "chmod 644 LIB/gojail-launcher", want: "gojail-launcher: is not executable"},
		{name: "no launcher", command: "mv LIB/gojail-launcher LIB/was", want: "gojail-launcher: no such file", undo: "rm -f LIB/was"},
		{name: "a launcher of a user's", command: "chown alice LIB/gojail-launcher", want: "gojail-launcher: belongs to uid 5001"},
		{name: "a damaged library", command: "truncate -s 1000000 LIB/libgojail.so", want: "libgojail.so: is damaged or truncated"},
		{name: "a library that others may write", command: "chmod 666 LIB/libgojail.so", want: "libgojail.so: is writable by others"},
		{name: "a directory that others may write", command: "chmod 777 LIB", want: "FAIL  installation: /opt/gojail/lib/gojail: is writable by others", works: true},
	})
}

// TestRemediesOfSlurm is about slurm.conf, and what it names.
func TestRemediesOfSlurm(t *testing.T) {
	requireMended(t, []mistake{
		{name: "a Prolog that is not there", command: "echo Prolog=LIB/prolog-2 >>CONF", want: "prolog-2 does not exist: every job fails and drains this node"},
		{name: "a Prolog of another name", command: "echo Prolog=/etc/slurm/prolg >>CONF", want: "Prolog=/etc/slurm/prolg does not exist"},
		{name: "a Prolog that is not executable", command: writeProlog(`#!/bin/sh\n`, "644"), want: "Prolog=/etc/slurm/pro is not executable"},
		{name: "a Prolog from Windows", command: writeProlog(`#!/bin/sh\r\n`, "755"), want: "has lines that end with a carriage return"},
		{name: "a Prolog without its shell", command: writeProlog(`#!/bin/bsh\n`, "755"), want: "is a script of /bin/bsh, which does not exist", hand: "sed -i 's/bsh/sh/' /etc/slurm/pro"},
		{name: "a directory as Prolog", command: "echo Prolog=/etc/gojail >>CONF", want: "Prolog=/etc/gojail is not a regular file"},
		{name: "an Epilog that is not there", command: "echo Epilog=/etc/slurm/epi >>CONF", want: "FAIL  epilog: Epilog=/etc/slurm/epi does not exist", works: true},
		{name: "a TaskProlog that is not there", command: "sed -i 's|^TaskProlog=.*|TaskProlog=/etc/slurm/task|' CONF", want: "TaskProlog of slurm.conf, /etc/slurm/task, is missing on this node: every step fails"},
		{name: "a TaskProlog that users may not execute", command: nameTaskProlog("700"), want: "/opt/task, cannot be executed by users in /srv/jails/debian: every step fails", undo: rmTask},
		{name: "a TaskProlog that is not executable", command: nameTaskProlog("644"), want: "/opt/task, is not executable in /srv/jails/debian: every step fails", undo: rmTask},
		{name: "gojail's plugins without Slurm's", command: "echo PluginDir=LIB >>CONF", want: "FAIL  slurm: PluginDir=/opt/gojail/lib/gojail: none has Slurm's own plugins"},
		{name: "a directory of plugins that is not there", command: "echo PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:/usr/lib/gojial >>CONF", want: "/usr/lib/gojial does not exist: no daemon and no command of Slurm starts"},
		{name: "a slurm.conf that users may not read", command: "chmod 600 CONF", want: "users may not read /etc/slurm/slurm.conf"},
		{name: "a closed /etc/slurm", command: "chmod 700 /etc/slurm", want: "users may not read /etc/slurm/slurm.conf, /etc/slurm/plugstack.conf"},
		{name: "a key that Slurm does not know", command: "echo Prologg=/x >>CONF", want: "users' srun and sbatch do not start on this host: ", hand: "sed -i /Prologg/d CONF"},
		{name: "another spool directory", command: `sed -i 's|^spool = .*|spool = "/var/spool/slurm/%n"|' TOML`, want: "/var/spool/slurm/n1 here, but SlurmdSpoolDir is /var/spool/slurmd/n1: batch jobs fail"},
	})
}

// TestRemediesOfTheNode is about gojail.toml, directories, mounts and daemons of the node.
func TestRemediesOfTheNode(t *testing.T) {
	const again = "cp -a /var/tmp/etc/gojail/gojail.toml TOML"
	requireMended(t, []mistake{
		{name: "a configuration that others may write", command: "chmod 666 TOML", want: "is writable by others"},
		{name: "a user's configuration", command: "chown alice TOML", want: "belongs to uid 5001, a user"},
		{name: "a directory of the configuration that others may write", command: "chmod 777 /etc/gojail", want: "/etc/gojail: is writable by others", undo: "chmod 755 /etc/gojail"},
		{name: "a line without a value", command: "echo 'x = ' >>TOML", want: "FAIL  configuration: /etc/gojail/gojail.toml: line ", hand: again},
		{name: "an unknown key", command: `echo 'roott = "/"' >>TOML`, want: "jail.other.roott: unknown key; did you mean root?", hand: again},
		{name: "an unknown default", command: `sed -i 's/^default .*/default = "debain"/' TOML`, want: "there is no [jail.debain]", hand: again},
		{name: "scratch that others may write", command: "chmod 777 /var/lib/gojail", want: "every job's /tmp lies there: /var/lib/gojail: is writable by others", works: true},
		{name: "scratch with noexec", command: "mkdir -p /var/lib/gojail/n1; mount -t tmpfs -o noexec,mode=711 x /var/lib/gojail/n1", want: "is mounted noexec: jobs cannot execute programs in their /tmp", works: true,
			undo: "umount /var/lib/gojail/n1"},
		{name: "a state directory that others may write", command: "chmod 777 /run/gojail/n1", want: "jobs' records lie there: /run/gojail/n1: is writable by others"},
		{name: "a directory above the state that others may write", command: "chmod 777 /run/gojail", want: "jobs' records lie there: /run/gojail: is writable by others", works: true},
		{name: "no place for the state", command: "mount -t tmpfs -o ro x /run/gojail", want: "FAIL  state: /run/gojail/n1 does not exist, and cannot be created", hand: "umount /run/gojail"},
		{name: "a closed directory of munge", command: "chmod 700 /run/munge", want: "users may not connect to /run/munge/munge.socket.2"},
		{name: "a closed socket of munge", command: "chmod 700 /run/munge/munge.socket.2", want: "users may not connect to /run/munge/munge.socket.2"},
		{name: "munged killed", command: "kill -9 $(cat /run/munge/munged.pid)", want: "nobody serves /run/munge/munge.socket.2 (connection refused)"},
		{name: "no slurmctld", command: "kill $(cat /run/slurm/slurmctld.pid); while pidof slurmctld >/dev/null; do sleep 0.1; done", want: "slurmctld does not answer users' commands on this host"},
		{name: "no slurmd", command: "pid=$(cat /run/slurm/slurmd-n1.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done", want: "WARN  slurmd: no slurmd runs on this node"},
		{name: "a slurmd without capabilities", command: "pid=$(cat /run/slurm/slurmd-n1.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done; HWLOC_PLUGINS_PATH=/nonexistent setpriv --bounding-set -sys_admin slurmd -N n1",
			want: "lacks CAP_SYS_ADMIN: every step in a jail fails", hand: "systemctl restart slurmd"},
		{name: "a slurmd with mounts of its own", command: "pid=$(cat /run/slurm/slurmd-n1.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done; unshare -m sh -c 'mount -t tmpfs x /srv; HWLOC_PLUGINS_PATH=/nonexistent slurmd -N n1'",
			want: "has mounts of its own, in which /srv/jails/debian is missing or another directory"},
	})
}
