// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

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
	c := sharedCluster(t)
	for _, file := range []string{"usr/lib/x86_64-linux-gnu/libc.so.6", "etc/passwd", "etc/group"} { // the jails of all clusters are links to the same files
		runAsRoot(t, c, "cd /srv/jails/debian; cp -a "+file+" own; mv own "+file)
	}
	requireMended(t, c, []mistake{
		{name: "a root that only root may enter", command: "chmod 700 JAIL", want: "users may not enter it, only root may"},
		{name: "a root that only a group of root's may enter", command: "chmod 750 JAIL", want: "users may not enter it, only root may"},
		{name: "a shell below a closed directory", command: "chmod 700 JAIL/usr/bin", want: "users may not execute /bin/sh of the jail"},
		{name: "a closed dynamic linker", command: "chmod 700 JAIL/usr/lib64", want: "users may not execute the dynamic linker of the jail"},
		{name: "closed libraries", command: "chmod 700 JAIL" + harness.LibraryDir, want: "only root may: every batch script of a user fails"},
		{name: "a closed C library", command: "chmod 600 JAIL" + harness.LibraryDir + "/libc.so.6", want: "users may not execute the C library of the jail"},
		{name: "a closed C library beside an open one", command: "install -m 600 JAIL" + harness.LibraryDir + "/libc.so.6 JAIL/usr/lib/libc.so.6", works: true, undo: "rm JAIL/usr/lib/libc.so.6"},
		{name: "a closed C library of other programs", command: "chmod 600 JAIL" + harness.LibraryDir + "/libc.so.6; install -m 644 JAIL" + harness.LibraryDir + "/libc.so.6 JAIL/usr/lib/libc.so.6; " +
			"printf '\\001' | dd of=JAIL/usr/lib/libc.so.6 bs=1 seek=4 conv=notrunc status=none", want: "users may not execute the C library of the jail", undo: "rm JAIL/usr/lib/libc.so.6"},
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
	requireMended(t, sharedCluster(t), []mistake{
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
	requireMended(t, sharedCluster(t), []mistake{
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
		{name: "a directory of plugins that is not there", command: "echo PluginDir=" + harness.LibraryDir + "/slurm-wlm:/usr/lib/gojial >>CONF", want: "/usr/lib/gojial does not exist: no daemon and no command of Slurm starts"},
		{name: "a slurm.conf that users may not read", command: "chmod 600 CONF", want: "users may not read /etc/slurm/slurm.conf"},
		{name: "a closed /etc/slurm", command: "chmod 700 /etc/slurm", want: "users may not read /etc/slurm/slurm.conf, /etc/slurm/plugstack.conf"},
		{name: "a key that Slurm does not know", command: "echo Prologg=/x >>CONF", want: "users' srun and sbatch do not start on this host: ", hand: "sed -i /Prologg/d CONF"},
		{name: "another spool directory", command: `sed -i 's|^spool = .*|spool = "/var/spool/slurm/%n"|' TOML`, want: "/var/spool/slurm/n1 here, but SlurmdSpoolDir is /var/spool/slurmd/n1: batch jobs fail"},
	})
}

// TestRemediesOfTheNode is about gojail.toml, directories, mounts and daemons of the node.
func TestRemediesOfTheNode(t *testing.T) {
	const again = "cp -a /var/tmp/etc/gojail/gojail.toml TOML"
	requireMended(t, sharedCluster(t), []mistake{
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
		{name: "a slurmd of another host's container", command: "cp /bin/sleep /var/tmp/slurmd; unshare --uts sh -c 'hostname other; setpriv --bounding-set -sys_admin /var/tmp/slurmd 1000 >/dev/null 2>&1 & echo $! >/var/tmp/pid'; " +
			"while [ $(cat /proc/$(cat /var/tmp/pid)/comm) != slurmd ]; do sleep 0.1; done", works: true, undo: "kill $(cat /var/tmp/pid); rm /var/tmp/slurmd /var/tmp/pid"},
		{name: "a slurmd with mounts of its own", command: "pid=$(cat /run/slurm/slurmd-n1.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done; unshare -m sh -c 'mount -t tmpfs x /srv; HWLOC_PLUGINS_PATH=/nonexistent slurmd -N n1'",
			want: "has mounts of its own, in which /srv/jails/debian is missing or another directory"},
	})
}

// TestRemediesOfSlurmd is about gres.conf and cgroup.conf, for which slurmd does not start, or slurmctld gives the node no job.
func TestRemediesOfSlurmd(t *testing.T) {
	if harness.Version() != "22.05" {
		t.Skip("needs Slurm 22.05: a later one tries to end a job on a stopped slurmd again after a minute only, and starts slurmctld anew by scontrol reconfigure")
	}
	const stop = "; pid=$(cat /run/slurm/slurmd-n1.pid); kill -KILL $pid; while [ -e /proc/$pid ]; do sleep 0.1; done"
	const start = stop + "; HWLOC_PLUGINS_PATH=/nonexistent slurmd -N n1"
	const restore = "cp -a /var/tmp/etc/slurm/gres.conf GRES"
	options := jailed
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	options.SlurmConf["GresTypes"] = "gpu,nic"
	node := " NodeAddr=" + harness.Address + " CPUs=16 State=UNKNOWN Gres=nic:1 Port="
	options.SlurmConf["NodeName"] = "n1" + node + "6818\nNodeName=n2" + node + "6819"
	options.Files = maps.Clone(jailed.Files)
	options.Files["/etc/slurm/gres.conf"] = "NodeName=n[1-2] Name=nic File=/dev/null\n"
	const missing = "gres.conf names /dev/nope, which does not exist"
	mistakes := []mistake{
		{name: "a device that is not there", command: "sed -i s:/dev/null:/dev/nope: GRES" + stop, want: "FAIL  slurmd: slurmd cannot start: " + missing, hand: restore},
		{name: "a device that has gone", command: "sed -i s:/dev/null:/dev/nope: GRES", want: "WARN  slurmd: slurmd runs, but cannot start again: " + missing, hand: restore, works: true},
		{name: "a VF that no policy makes", command: "sed -i s:/dev/null:/dev/gojail/ib0: GRES" + stop, want: "compare /etc/slurm/gres.conf with what this prints: gojail gres", hand: restore},
		{name: "an unknown key in gres.conf", command: "sed -i s/File=/Fil=/ GRES" + stop, want: "slurmd cannot start: Parse error in file /etc/slurm/gres.conf line 1", hand: restore},
		{name: "a name that GresTypes lacks", command: "echo Name=fpga File=/dev/zero >>GRES", want: "WARN  slurmd: slurmd says: Ignoring gres.conf record, invalid name: fpga", hand: restore, works: true},
		{name: "GPUs that slurmd cannot find", command: "sed -i 's/^NodeName=n1 \\(.*\\)Gres=nic:1/NodeName=n1 \\1Gres=nic:1,gpu:2/' CONF; echo AutoDetect=nvml >>GRES" + start,
			want: "slurm.conf gives this node 2 of gpu, but slurmd finds 0 with gres.conf: slurmctld gives the node no job", hand: restore + "; cp -a /var/tmp/etc/slurm/slurm.conf CONF; scontrol reconfigure" + start},
		{name: "an unknown key in cgroup.conf", command: "echo CgroupPlugn=x >CGROUP" + stop, want: "unrecognized key: CgroupPlugn", hand: "rm CGROUP"},
		{name: "a word that is no boolean", command: "echo ConstrainDevices=maybe >CGROUP" + stop, want: `"maybe" is not a valid option for "ConstrainDevices"`, hand: "rm CGROUP"},
		{name: "a plugin for cgroups that is not there", command: "echo CgroupPlugin=cgroup/v3 >CGROUP" + stop, want: "CgroupPlugin=cgroup/v3 of cgroup.conf is no plugin of Slurm"},
	}
	for i := range mistakes {
		if strings.Contains(mistakes[i].command, stop) {
			mistakes[i].stopped = strings.HasSuffix(mistakes[i].command, stop)
			mistakes[i].undo = "[ -e /proc/$(cat /run/slurm/slurmd-n1.pid) ] || HWLOC_PLUGINS_PATH=/nonexistent slurmd -N n1"
		}
	}
	requireMended(t, harness.Start(t, options), mistakes)
}

// TestRemediesOfNetworks is about network.toml. Without a card, a private cluster has networks of other nodes.
func TestRemediesOfNetworks(t *testing.T) {
	const again = "cp -a /var/tmp/etc/gojail/network.toml NETWORK"
	c := sharedCluster(t)
	path := c.Path("/etc/gojail/network.toml")
	t.Cleanup(func() { os.Remove(path) })
	require.NoError(t, os.WriteFile(path, []byte(`[[policy]]
name = "p"
nodes = "n[8-9]"
nic = { pf = ["ens1f0"] }
vfs = 4
[[pool]]
name = "a"
subnet = "10.1.0.0/24"
nodes = "n[1-9]"
per_node = 4
[[pool]]
name = "c"
subnet = "10.9.0.0/24"
nodes = "n[1-9]"
per_node = 4
[[rail]]
name = "r"
policy = "p"
pools = ["a"]
[control]
pool = "c"
interface = "eth0"
`), 0o644))
	const line = "FAIL  network: no step in a jail starts: /etc/gojail/network.toml: line "
	requireMended(t, c, []mistake{
		{name: "a policy without its card", command: "sed -i 's/n.8-9./n[1-9]/' NETWORK", want: `FAIL  network: policies: /etc/gojail/network.toml:1: policy "p" matches no network card of n1`,
			hand: again, works: true},
		{name: "networks that overlap", command: "sed -i s:10.9.0.0/24:10.1.0.0/16: NETWORK", want: line + "13: pool 2: subnet: 10.1.0.0/16 and 10.1.0.0/24 of the pool \"a\" of line 6 overlap", hand: again},
		{name: "a pool that is too small", command: "sed -i 's/per_node = 4/per_node = 100/' NETWORK", want: line + "10: pool 1: per_node: 9 nodes with 100 addresses each need 900, but the pool has 254", hand: again},
		{name: "a name for two pools", command: `sed -i 's/"c"/"a"/' NETWORK`, want: line + `12: pool 2: name: duplicate name "a"`, hand: again},
		{name: "an unknown policy", command: `sed -i 's/policy = "p"/policy = "q"/' NETWORK`, want: line + `18: rail 1: policy: unknown policy "q"; known ones: p`, hand: again},
		{name: "an address that is none", command: "sed -i s/10.1.0.0/10.1.0.300/ NETWORK", want: line + `8: pool 1: subnet: "10.1.0.300/24": write a network and its length`, hand: again},
		{name: "a number as a text", command: `sed -i 's/per_node = 4/per_node = "4"/' NETWORK`, want: line + "10: pool.per_node: is a text; write a whole number", hand: again},
		{name: "a time without a unit", command: `sed -i '1i [probe]\ncarrier = 5' NETWORK`, want: line + "2: probe.carrier: is a number; write a text in quotes", hand: again},
		{name: "a unit that is none", command: `sed -i '1i [probe]\ncarrier = "5 sec"' NETWORK`, want: line + `2: probe.carrier: "5 sec": write a time from "0s" to "5m0s"`, hand: again},
		{name: "a label for no network", command: `sed -i 's/^pools.*/&\nlabels = ["none"]/' NETWORK`, want: line + `20: rail 1: labels: "none" means no network and cannot be a label`, hand: again},
		{name: "a network that others may write", command: "chmod 666 NETWORK", want: "FAIL  network: no step in a jail starts: /etc/gojail/network.toml: is writable by others"},
	})
}
