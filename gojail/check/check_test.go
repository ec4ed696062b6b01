// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/subids"
	"github.com/gojail/gojail/internal/nstest"
)

// checkedNode is a node on which no check finds anything.
type checkedNode struct {
	Node
	dir, root, conf string
}

func newGoodNode(t *testing.T) *checkedNode {
	t.Helper()
	nstest.NeedRoot(t)
	// Not below /tmp, which is private to each job: the check would say so.
	dir, err := os.MkdirTemp("/var/tmp", "gojail-check-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	n := &checkedNode{dir: dir, root: filepath.Join(dir, "jail"), conf: filepath.Join(dir, "slurm")}
	n.Node = Node{Config: filepath.Join(dir, "gojail.toml"), State: filepath.Join(dir, "state"), Name: "n1", LibDir: filepath.Join(dir, "lib")}
	accounts := site.SystemAccounts()
	n.Accounts = &accounts
	n.passwdIn = filepath.Join(dir, "passwd")
	n.procIn = filepath.Join(dir, "proc") // without processes of users
	n.subIDs = &subids.Source{Etc: "/etc", List: func(context.Context, string, func(string)) error { return nil }}
	for _, sub := range []string{"jail/proc", "jail/sys", "jail/dev", "jail/run", "jail/tmp", "jail/etc", "jail/spool", "jail/bin", "slurm", "lib", "plugins", "state"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for _, name := range []string{"gojail-launcher", "libgojail.so"} {
		require.NoError(t, exec.Command("cp", "/bin/true", filepath.Join(n.LibDir, name)).Run())
	}
	n.writeFile(t, "lib/prolog-1", "", 0o755)
	n.writePlugin(t, "lib/spank_gojail.so", "0x160508")
	n.writePlugin(t, "plugins/auth_munge.so", "0x160509") // another micro release fits
	n.writeFile(t, "plugins/job_submit_gojail.so", "", 0o644)
	n.writeFile(t, "jail/bin/sh", "", 0o755)
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+dir+"/plugins\nJobSubmitPlugins=lua,gojail\nProlog="+n.LibDir+"/prolog-1\n", 0o644)
	n.writeFile(t, "slurm/plugstack.conf", "required "+n.LibDir+"/spank_gojail.so config="+n.Config+" state="+dir+"/state\n", 0o644)
	n.configure(t, "")
	return n
}

func (n *checkedNode) configure(t *testing.T, more string) {
	t.Helper()
	n.writeFile(t, "gojail.toml", "default = \"a\"\nscratch = \""+n.dir+"/scratch\"\n[slurm]\nconf = \""+n.conf+"\"\nspool = \"/spool\"\n"+
		"[jail.a]\nroot = \""+n.root+"\"\nslurm = false\nhost = []\n"+more, 0o644)
}

// writePlugin creates a file that looks like a plugin of that release of Slurm, and like gojail's for that one.
func (n *checkedNode) writePlugin(t *testing.T, name, release string) {
	t.Helper()
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(n.dir, name), "-x", "c", "-")
	cmd.Stdin = strings.NewReader("const unsigned int plugin_version = " + release + ", gojail_releases[] = {" + release + "};\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func (n *checkedNode) writeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, name), []byte(text), mode))
}

func (n *checkedNode) readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	require.NoError(t, err)
	return string(text)
}

// addPluginArgument adds an argument to the line of plugstack.conf.
func (n *checkedNode) addPluginArgument(t *testing.T, argument string) {
	t.Helper()
	n.writeFile(t, "slurm/plugstack.conf", strings.TrimSpace(n.readFile(t, "slurm/plugstack.conf"))+" "+argument+"\n", 0o644)
}

// listFindings returns the lines of the check that are not OK.
func (n *checkedNode) listFindings() string {
	var list []string
	Check(n.Node, func(f Finding) {
		if f.Level != OK && f.Subject != "latency" && f.Subject != "slurmd" { // these depend on the machine
			list = append(list, f.String())
		}
	})
	return strings.Join(list, "\n")
}

// A directory of a group's is for the group, in a jail for all, too.
func TestSourceOfAGroup(t *testing.T) {
	n := newGoodNode(t)
	require.NoError(t, os.Mkdir(n.dir+"/data", 0o700))
	n.configure(t, "[[jail.a.mounts]]\ndestination = \"/etc\"\nsource = \""+n.dir+"/data\"")
	assert.Contains(t, n.listFindings(), "its mode keeps users out")
	require.NoError(t, os.Chown(n.dir+"/data", 0, 5001))
	require.NoError(t, os.Chmod(n.dir+"/data", 0o750))
	assert.Empty(t, n.listFindings())
}

func TestCheckFindsNothingOnAGoodNode(t *testing.T) {
	n := newGoodNode(t)
	assert.Empty(t, n.listFindings())
	_, err := os.Stat(filepath.Join(n.dir, "scratch"))
	assert.True(t, os.IsNotExist(err), "a check makes nothing")
	entries, err := os.ReadDir(n.State)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// spoiled nodes, and what a check says about each.
var spoiled = map[string]struct {
	spoil func(t *testing.T, n *checkedNode)
	want  string
}{
	"no configuration":   {func(t *testing.T, n *checkedNode) { os.Remove(n.Config) }, "gojail.toml: cannot read the configuration: no such file or directory; write it, as gojail.toml.example of gojail's sources explains"},
	"open configuration": {func(t *testing.T, n *checkedNode) { os.Chmod(n.Config, 0o666) }, "is writable by others (mode 0666)"},
	"bad configuration":  {func(t *testing.T, n *checkedNode) { n.configure(t, "rot = 1") }, "jail.a.rot: unknown key"},
	"no library":         {func(t *testing.T, n *checkedNode) { os.Remove(n.LibDir + "/libgojail.so") }, "FAIL  installation: "},
	"cut library": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Truncate(n.LibDir+"/libgojail.so", 4096))
	}, "libgojail.so: is damaged or truncated"},
	"empty library": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Truncate(n.LibDir+"/libgojail.so", 0))
	}, "libgojail.so: is damaged or truncated"},
	"open library":   {func(t *testing.T, n *checkedNode) { os.Chmod(n.LibDir, 0o777) }, "FAIL  installation: "},
	"not executable": {func(t *testing.T, n *checkedNode) { os.Chmod(n.LibDir+"/gojail-launcher", 0o644) }, "is not executable"},
	"open state":     {func(t *testing.T, n *checkedNode) { os.Chmod(n.State, 0o777) }, "FAIL  state: "},
	"state a file": {func(t *testing.T, n *checkedNode) {
		os.Remove(n.State)
		n.writeFile(t, "state", "", 0o600)
	}, "not a directory"},
	"no PIDs but from 1": {func(t *testing.T, n *checkedNode) { n.lastPID = n.dir + "/none" },
		"/none: no such file or directory; the PIDs of each job count from 1, "},
	"open scratch": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Mkdir(n.dir+"/scratch", 0o755))
		require.NoError(t, os.Chmod(n.dir+"/scratch", 0o777))
	}, "FAIL  scratch: "},
	"no slurm.conf": {func(t *testing.T, n *checkedNode) { os.Remove(n.conf + "/slurm.conf") }, "slurm.conf does not exist"},
	"nss_slurm": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/slurm.conf", n.readFile(t, "slurm/slurm.conf")+"LaunchParameters=use_interactive_step,enable_nss_slurm\n", 0o644)
	}, "WARN  features: LaunchParameters=enable_nss_slurm has no effect in jails"},
	"no plugin": {func(t *testing.T, n *checkedNode) { n.writeFile(t, "slurm/plugstack.conf", "", 0o644) },
		"FAIL  plugstack: no plugstack.conf of"},
	"unknown argument": {func(t *testing.T, n *checkedNode) { n.addPluginArgument(t, "conf=/etc/x") },
		`line 1: unknown argument "conf=/etc/x" of spank_gojail.so, which takes config=FILE and state=DIR: every job step fails; replace CONF/plugstack.conf line 1 by: required PLUGIN config=`},
	"argument without a value": {func(t *testing.T, n *checkedNode) { n.addPluginArgument(t, "config") }, `unknown argument "config"`},
	"relative argument":        {func(t *testing.T, n *checkedNode) { n.addPluginArgument(t, "state=gojail") }, `FAIL  plugstack: CONF/plugstack.conf line 1: argument "state=gojail" is not an absolute path`},
	"the plugin's configuration missing": {func(t *testing.T, n *checkedNode) { n.addPluginArgument(t, "config=/etc/x/gojail.toml") },
		"FAIL  plugstack: the plugin uses config=/etc/x/gojail.toml, with which every job step fails: /etc/x/gojail.toml: cannot read the configuration: no such file"},
	"the plugin's configuration damaged": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "other.toml", "rot = 1\n", 0o644)
		n.addPluginArgument(t, "config="+n.dir+"/other.toml")
	}, "other.toml: line 1: rot: unknown key"},
	"plugin named twice": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Mkdir(n.conf+"/plugstack.conf.d", 0o755))
		n.writeFile(t, "slurm/plugstack.conf.d/a.conf", "required "+n.LibDir+"/spank_gojail.so\n", 0o644)
		n.writeFile(t, "slurm/plugstack.conf", "# Debian's\ninclude plugstack.conf.d/*.conf\n"+n.readFile(t, "slurm/plugstack.conf"), 0o644)
	}, "FAIL  plugstack: spank_gojail.so is named 2 times (CONF/plugstack.conf.d/a.conf line 1, CONF/plugstack.conf line 3): every job step fails"},
	"plugin by a relative name": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "required spank_gojail.so", 0o644)
	}, "line 1: no directory of PluginDir has spank_gojail.so"},
	"line that Slurm ignores": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "requierd /x.so\n"+n.readFile(t, "slurm/plugstack.conf"), 0o644)
	}, `WARN  plugstack: CONF/plugstack.conf line 1: "requierd /x.so": Slurm ignores this line`},
	"another required plugin missing": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", n.readFile(t, "slurm/plugstack.conf")+"required /opt/none/x.so\n", 0o644)
	}, "line 2: required plugin /opt/none/x.so does not exist: srun, sbatch and slurmd cannot start"},
	"plugstack.conf that is not sent": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\n"+
			"SlurmctldParameters=idle_on_node_suspend,enable_configless\nPlugStackConfig=/nonexistent/plugstack.conf\n", 0o644)
	}, "FAIL  plugstack: PlugStackConfig=/nonexistent/plugstack.conf does not exist on this node: jobs run outside their jail; remove PlugStackConfig from slurm.conf"},
	"plugstack.conf that other nodes lack": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\n"+
			"SlurmctldParameters=enable_configless\nPlugStackConfig="+n.conf+"/plugstack.conf\n", 0o644)
	}, "plugstack.conf with enable_configless: jobs run outside their jail on a node without that file; remove PlugStackConfig from"},
	"optional plugin": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "optional "+n.LibDir+"/spank_gojail.so", 0o644)
	}, "is optional: where it cannot be loaded, jobs run outside their jail"},
	"another release": {func(t *testing.T, n *checkedNode) { n.writePlugin(t, "lib/spank_gojail.so", "0x180b05") },
		"FAIL  plugstack: PLUGIN is for Slurm 24.11 to 24.11, and this node has 22.05.9"},
	"not a Slurm plugin": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, exec.Command("cp", "/bin/true", n.LibDir+"/spank_gojail.so").Run())
	}, "FAIL  plugstack: PLUGIN is not a Slurm plugin"},
	"a plugin before": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "required /lib/other.so\nrequired "+n.LibDir+"/spank_gojail.so config="+n.Config+" state="+n.dir+"/state\n", 0o644)
	}, "WARN  plugstack: /lib/other.so is required and comes before gojail: where it returns a positive number, Slurm 22.05.9 does not call gojail: if it does so in both task_init_privileged and task_init, tasks run outside their jail"},
	"other state": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "required "+n.LibDir+"/spank_gojail.so state=/run/%n config="+n.Config, 0o644)
	}, "the plugin uses state=/run/n1"},
	"login scripts on the node": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nJobSubmitPlugins=lua\n", 0o644)
	}, "WARN  features: sbatch --get-user-env, --export=NONE and scrontab make slurmd run the user's ~/.bash_profile on the node, " +
		"outside the jail and the job's cgroup; set JobSubmitPlugins=gojail in slurm.conf, append :"},
	"other spool": {func(t *testing.T, n *checkedNode) { n.writeFile(t, "slurm/slurm.conf", "", 0o644) },
		"/spool here, but SlurmdSpoolDir is /var/spool/slurmd"},
	"no munge": {func(t *testing.T, n *checkedNode) {
		n.configure(t, "[jail.b]\nroot = \""+n.root+"\"")
		text, err := os.ReadFile(n.Config)
		require.NoError(t, err)
		n.writeFile(t, "gojail.toml", strings.Replace(string(text), "[slurm]", "[slurm]\nmunge = \"/nonexistent\"", 1), 0o644)
	}, "WARN  munge: /nonexistent is not munge's socket"},
	"root gone":  {func(t *testing.T, n *checkedNode) { os.RemoveAll(n.root) }, "FAIL  jail a: jail root"},
	"root empty": {func(t *testing.T, n *checkedNode) { os.RemoveAll(n.root); os.Mkdir(n.root, 0o755) }, "is empty: is its storage mounted?"},
	"no target":  {func(t *testing.T, n *checkedNode) { os.Remove(n.root + "/tmp") }, "mount targets are missing in"},
	"mount below a user's directory": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.MkdirAll(n.dir+"/users/data", 0o755))
		require.NoError(t, os.Chown(n.dir+"/users", 65534, 65534))
		n.configure(t, "[[jail.a.mounts]]\ndestination = \"/etc\"\nsource = \""+n.dir+"/users/data\"")
	}, "/users: belongs to uid 65534 and not to root; run: chown root:root "},
	"no source": {func(t *testing.T, n *checkedNode) {
		n.configure(t, "[[jail.a.mounts]]\ndestination = \"/etc\"\nsource = \"/nonexistent\"")
	}, "/nonexistent (for /etc) does not exist on this node"},
	"unknown user": {func(t *testing.T, n *checkedNode) { n.configure(t, "users = [\"no-such-user\"]") },
		"WARN  configuration: this node has no user no-such-user of jail a"},
	"no device": {func(t *testing.T, n *checkedNode) { n.configure(t, "devices = [\"/dev/no-such*\"]") },
		"WARN  jail a: no device matches /dev/no-such*"},
	"rule": {func(t *testing.T, n *checkedNode) {
		n.configure(t, "[[jail.a.user_mounts]]\nsource = \"/nonexistent\"")
	},
		"WARN  jail a: users may mount /nonexistent"},
	"no shell": {func(t *testing.T, n *checkedNode) { os.Remove(n.root + "/bin/sh") }, "has no /bin/sh"},
	"a shell that leads nowhere": {func(t *testing.T, n *checkedNode) {
		os.Remove(n.root + "/bin/sh")
		require.NoError(t, os.Symlink("/etc/../usr/bin/dash", n.root+"/bin/sh")) // which the node has
	}, "has a /bin/sh that leads to /usr/bin/dash, which is missing"},
	"a shell in a circle": {func(t *testing.T, n *checkedNode) {
		os.Remove(n.root + "/bin/sh")
		require.NoError(t, os.Symlink("sh", n.root+"/bin/sh"))
	}, "has a /bin/sh that cannot be opened: too many levels of symbolic links"},
	"a shell without its dynamic linker": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, exec.Command("cp", "/bin/true", n.root+"/bin/sh").Run())
	}, "has a /bin/sh whose dynamic linker, /lib"},
	"homes that no mount brings": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.MkdirAll(n.root+"/home/there", 0o755))
		n.writeFile(t, "passwd", "root:x:0:0::/root:/bin/sh\nd:x:2:2::/home/d:/bin/sh\nnobody:x:65534:1::/nonexistent:/bin/sh\na:x:1001:1::/home/a:/bin/sh\n"+
			"b:x:1002:1::/home/b:/bin/sh\nc:x:1003:1::/home/c:/usr/sbin/nologin\ne:x:1004:1::/home/there:/bin/sh\nf:x:1005:1::/var/lib/f:/bin/sh\n", 0o644)
	}, "has no /home/a, a user's home directory in the node's passwd, and no mount provides it (2 such below /home): a job submitted from there fails; " +
		`mount it: [[jail.a.mounts]] destination = "/home", source = "/home", options = ["rbind", "nosuid", "nodev"]; then: gojail init a`},
	"a TaskProlog that the jail lacks": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/slurm.conf", n.readFile(t, "slurm/slurm.conf")+"TaskProlog=/etc/slurm/prolog\nTaskEpilog=/etc/slurm/epilog\n", 0o644)
		require.NoError(t, os.MkdirAll(n.root+"/etc/slurm", 0o755))
		n.writeFile(t, "jail/etc/slurm/epilog", "", 0o755)
	}, "FAIL  jail a: TaskProlog of slurm.conf, /etc/slurm/prolog, is missing in "},
	"a TaskProlog that slurmstepd cannot start": {func(t *testing.T, n *checkedNode) {
		for _, name := range []string{"lib/spank_gojail.so", "plugins/auth_munge.so"} {
			n.writePlugin(t, name, "0x180b05")
		}
		n.writeFile(t, "slurm/slurm.conf", n.readFile(t, "slurm/slurm.conf")+"TaskProlog=/etc/slurm/prolog\n", 0o644)
		require.NoError(t, os.MkdirAll(n.root+"/etc/slurm", 0o755))
		n.writeFile(t, "jail/etc/slurm/prolog", "", 0o755)
	}, "FAIL  jail a: Slurm 24.11.5 starts the TaskProlog of slurm.conf through slurmstepd, whose dynamic linker, /lib"},
	"a root that users may not enter": {func(t *testing.T, n *checkedNode) { os.Chmod(n.root, 0o750) },
		"jail has mode 0750: users may not enter it, only root may, and each job of a user fails; run: chmod 755 /"},
	"a root of a group's, in a jail for all": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Chown(n.root, 0, 5001))
		os.Chmod(n.root, 0o750)
	}, "WARN  jail a: "},
	"a root of the group that may use the jail": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Chown(n.root, 0, 5001))
		os.Chmod(n.root, 0o750)
		n.configure(t, "groups = [\"5001\"]")
	}, "jail has mode 0750: each job of a user whom neither the group 5001 nor an ACL admits fails; if all users are to use the jail, run: chmod 755 /"},
	"a shell that users may not execute": {func(t *testing.T, n *checkedNode) { os.Chmod(n.root+"/bin/sh", 0o750) },
		"jail: users may not execute /bin/sh of the jail, only root may: every batch script of a user fails; run: chmod a+rx ROOT/bin/sh"},
	"a shell that a link of the root leads to": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Rename(n.root+"/bin/sh", n.root+"/etc/it's a shell"))
		require.NoError(t, os.Symlink("/etc/it's a shell", n.root+"/bin/sh"))
		os.Chmod(n.root+"/etc/it's a shell", 0o700)
	}, `every batch script of a user fails; run: chmod a+rx 'ROOT/etc/it'\''s a shell'`},
	"a shell of a group's": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Chown(n.root+"/bin/sh", 0, 5001))
		os.Chmod(n.root+"/bin/sh", 0o750)
	}, ": only some users may execute /bin/sh of the jail (/bin/sh): "},
	"a shell below a closed directory": {func(t *testing.T, n *checkedNode) { os.Chmod(n.root+"/bin", 0o700) }, "users may not execute /bin/sh of the jail"},
	"a source that users may not enter": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Mkdir(n.dir+"/data", 0o700))
		n.configure(t, "[[jail.a.mounts]]\ndestination = \"/etc\"\nsource = \""+n.dir+"/data\"")
	}, "/data (for /etc): its mode keeps users out who neither own it nor are in its group; if all users of the jail are to see what is in it: chmod a+x /"},
	"plugstack.conf that users may not read": {func(t *testing.T, n *checkedNode) { os.Chmod(n.conf+"/plugstack.conf", 0o600) },
		"WARN  plugstack: users may not read CONF/plugstack.conf: their srun and sbatch do not start on a host where that is so; run: chmod a+r CONF/plugstack.conf"},
	"plugin that users may not load": {func(t *testing.T, n *checkedNode) { os.Chmod(n.LibDir, 0o700) }, "WARN  plugstack: users may not read PLUGIN: "},
	"job_submit without PluginDir": {func(t *testing.T, n *checkedNode) { os.Remove(n.dir + "/plugins/job_submit_gojail.so") },
		"WARN  features: JobSubmitPlugins of slurm.conf has gojail, but no directory of its PluginDir has job_submit_gojail.so on this host: slurmctld does not start on a host where that is so; append :/"},
	"plugin of another path": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "required /opt/gojail/spank_gojail.so config=/x\n", 0o644)
	}, "line 1: /opt/gojail/spank_gojail.so does not exist: srun, sbatch and slurmd cannot start; replace CONF/plugstack.conf line 1 by: required PLUGIN config=/x"},
	"the package's comment": {func(t *testing.T, n *checkedNode) {
		require.NoError(t, os.Mkdir(n.conf+"/plugstack.conf.d", 0o755))
		n.writeFile(t, "slurm/plugstack.conf.d/gojail.conf", "# gojail\n\n#required "+n.LibDir+"/spank_gojail.so\n", 0o644)
		n.writeFile(t, "slurm/plugstack.conf", "include plugstack.conf.d/*.conf\n", 0o644)
	}, "jobs run outside their jail; remove the # at the beginning of CONF/plugstack.conf.d/gojail.conf line 3"},
	"no line in plugstack.conf": {func(t *testing.T, n *checkedNode) { os.Remove(n.conf + "/plugstack.conf") },
		"jobs run outside their jail; add this line to CONF/plugstack.conf: required PLUGIN"},
	"plugin named twice, once where it is not": {func(t *testing.T, n *checkedNode) {
		n.writeFile(t, "slurm/plugstack.conf", "required /opt/spank_gojail.so\n"+n.readFile(t, "slurm/plugstack.conf"), 0o644)
	}, "every job step fails; keep CONF/plugstack.conf line 2, and remove CONF/plugstack.conf line 1"},
	"root of another": {func(t *testing.T, n *checkedNode) { os.Chown(n.root, 65534, 0) }, "WARN  jail a: "},
}

func TestReleasesThatStartTaskPrologByStepd(t *testing.T) {
	for release, want := range map[slurmVersion]bool{
		0x160508: false, 0x180508: false, 0x180b00: true, 0x180b06: true, 0x180b07: false,
		0x190500: true, 0x190501: true, 0x190502: false, 0x190b00: false, 0x1a0505: false, 0: false,
	} {
		assert.Equal(t, want, startsTaskPrologByStepd(release), release)
	}
}

func TestCheckFinds(t *testing.T) {
	for name, test := range spoiled {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			test.spoil(t, n)
			assert.Contains(t, strings.NewReplacer(n.LibDir+"/spank_gojail.so", "PLUGIN", n.conf+"/", "CONF/", n.root+"/", "ROOT/").
				Replace(n.listFindings()), test.want)
		})
	}
}

func TestCheckOfLoginScripts(t *testing.T) {
	n := newGoodNode(t)
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\n", 0o644)
	assert.Contains(t, n.listFindings(), "~/.bash_profile")
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nProlog="+n.LibDir+"/prolog-1\nJobSubmitPlugins=job_submit/gojail\n", 0o644)
	assert.Empty(t, n.listFindings())
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\n", 0o644)
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nProlog="+n.LibDir+"/prolog-1\nGetEnvTimeout=0\n", 0o644)
	assert.Empty(t, n.listFindings())
	n.writePlugin(t, "lib/spank_gojail.so", "0x190500")
	n.writePlugin(t, "plugins/auth_munge.so", "0x190500")
	assert.Contains(t, n.listFindings(), "~/.bash_profile", "Slurm 25.05 ignores GetEnvTimeout")
	n.writeFile(t, "gojail.toml", "allow_none = true\n"+n.readFile(t, "gojail.toml"), 0o644)
	assert.Empty(t, n.listFindings(), "users may run outside of jails anyhow")
}

func TestForAdministrator(t *testing.T) {
	for text, want := range map[string]string{
		"x; ask your administrator to run: gojail sweep":                       "x; run: gojail sweep",
		"no step is started without it: ask your administrator":                "no step is started without it",
		"x; ask your administrator to mount A, or to close B: chmod":           "x; mount A, or to close B: chmod",
		"x; ask your administrator for a line such as a:1:2":                   "x; write a line such as a:1:2",
		"use --jail-root=self, or ask your administrator for ext4 there":       "use --jail-root=self, or use ext4 there",
		"no rails; leave the option out, or ask your administrator":            "no rails; leave the option out",
		"cannot create the state directory /x: denied; ask your administrator": "cannot create the state directory /x: denied",
	} {
		assert.Equal(t, want, ForAdministrator(text))
	}
	f := Finding{Found: "open; ask your administrator to close it: chmod 700 /srv", Remedy: "chmod 700 /srv"}.forAdministrator()
	assert.Equal(t, Finding{Found: "open; close it: chmod 700 /srv"}, f, "a remedy once")
}

// A directory service that hangs is none of the health check's, which would drain the node.
func TestCheckAsksNoNameServiceUnbidden(t *testing.T) {
	n := newGoodNode(t)
	n.configure(t, "users = [\"no-such-user\"]")
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nSlurmUser=daemon\n", 0o644)
	n.writeFile(t, "gojail.toml", strings.Replace(n.readFile(t, "gojail.toml"), "slurm = false\n", "", 1), 0o644)
	assert.Contains(t, n.listFindings(), "no-such-user")
	assert.NotContains(t, n.listFindings(), "UID:GID")
	n.Accounts = nil
	assert.NotContains(t, n.listFindings(), "no-such-user")
	assert.Contains(t, n.listFindings(), "daemon:x:UID:GID::/nonexistent:/usr/sbin/nologin with the numbers of the node")
}

func TestCheckOfMunge(t *testing.T) {
	n := newGoodNode(t)
	path := "/nonexistent"
	munge := func(lines string) (found []string) {
		n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\n"+lines, 0o644)
		c, err := config.ParseConfig("default = \"a\"\n[slurm]\nconf = \""+n.conf+"\"\nmunge = \""+path+"\"\n[jail.a]\nroot = \""+n.root+"\"", "n1")
		require.NoError(t, err)
		(&checker{node: n.Node, config: c, report: func(f Finding) { found = append(found, f.String()) }}).checkMunge(node.ReadSlurmConf(c))
		return found
	}
	missing := []string{"WARN  munge: /nonexistent is not munge's socket: srun inside a jail fails; " +
		"run: systemctl restart munge; or correct munge = in [slurm], or write slurm = false in the jails"}
	assert.Equal(t, missing, munge(""))
	assert.Equal(t, missing, munge("AuthType=auth/munge\n"))
	withoutSack := func() string {
		return "WARN  munge: AuthType=auth/slurm, and " + path + " is not slurmd's socket: srun and other commands of Slurm do not work inside a jail; " +
			"write munge = \"/run/slurm/sack.socket\" in [slurm], or slurm = false in the jails"
	}
	assert.Equal(t, []string{withoutSack()}, munge("AuthType=auth/slurm\n"))
	assert.Empty(t, munge("AuthType=auth/none\n"), "it has no munge at all")

	dir, err := os.MkdirTemp("", "munge") // a socket's path has at most 107 bytes (unix(7))
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"munge.socket.2", "sack.socket"} {
		path = filepath.Join(dir, name)
		socket, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer socket.Close()
		assert.Equal(t, []string{"WARN  munge: users may not connect to " + path + ": srun and other commands of Slurm fail for them; run: chmod a+rw " + path},
			munge("AuthType=auth/"+map[string]string{"munge.socket.2": "munge", "sack.socket": "slurm"}[name]+"\n"))
		require.NoError(t, os.Chmod(path, 0o777))
		exists := []string{"OK    munge: " + path + " exists, and users can connect to it"}
		assert.Equal(t, exists, munge("AuthType=auth/munge\n"))
		if name == "sack.socket" {
			assert.Equal(t, exists, munge("AuthType=auth/slurm\n"))
		} else {
			assert.Equal(t, []string{withoutSack()}, munge("AuthType=auth/slurm\n"))
		}
	}
}

// A check that is killed leaves nothing: what it writes has no name.
func TestCheckWritesWithoutAName(t *testing.T) {
	dir := t.TempDir()
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		t.Skipf("the file system of %s: %v", dir, err)
	}
	f.Close()
	long := time.Unix(1, 0)
	require.NoError(t, os.Chtimes(dir, long, long))
	require.NoError(t, checkWritable(dir))
	st, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, long, st.ModTime(), "no entry was made")
	assert.ErrorContains(t, checkWritable("/proc"), "cannot write to /proc: ")
	assert.ErrorContains(t, checkWritable("/nonexistent"), "cannot write to /nonexistent: no such file or directory")
}

func TestCheckTellsWhatCostsTime(t *testing.T) {
	n := newGoodNode(t)
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPrologFlags=Alloc,Contain\n", 0o644)
	var found []string
	Check(n.Node, func(f Finding) {
		if f.Subject == "latency" {
			found = append(found, f.String())
		}
	})
	assert.Contains(t, strings.Join(found, "\n"), "WARN  latency: PrologFlags=Alloc,Contain costs each job about 100 ms")
}

// listMissing returns what a check reports that the jail's root lacks.
func (n *checkedNode) listMissing(t *testing.T, mounts ...specs.Mount) string {
	t.Helper()
	var found []string
	cfg, err := config.ParseConfig("default = \"a\"\n[slurm]\nconf = \""+n.conf+"\"\nspool = \"/spool/%n\"\n[jail.a]\nroot = \""+n.root+"\"", "n1")
	require.NoError(t, err)
	c := newChecker(n.Node, func(f Finding) { found = append(found, f.String()) })
	c.config = cfg
	root, err := node.OpenJail(cfg.Jails["a"])
	require.NoError(t, err)
	defer unix.Close(root)
	c.checkInside(cfg.Jails["a"], &plan.View{Spec: &specs.Spec{Mounts: mounts}}, root)
	return strings.Join(found, "\n")
}

func TestCheckOfHomesThatAMountBrings(t *testing.T) {
	n := newGoodNode(t)
	n.writeFile(t, "passwd", "a:x:1001:1::/home/a:/bin/sh\n", 0o644)
	assert.Contains(t, n.listMissing(t), "has no /home/a")
	assert.NotContains(t, n.listMissing(t, specs.Mount{Destination: "/home"}), "has no /home/a")
}

// addLinker creates the dynamic linker of the node's Slurm in the jail.
func (n *checkedNode) addLinker(t *testing.T) {
	t.Helper()
	commands, _ := node.FindCommands(&config.Config{})
	if len(commands) == 0 {
		return
	}
	f, err := os.Open(commands[0])
	require.NoError(t, err)
	defer f.Close()
	linker := readInterpreter(f)
	require.NoError(t, os.MkdirAll(filepath.Join(n.root, filepath.Dir(linker)), 0o755))
	n.writeFile(t, "jail"+linker, "", 0o755)
}

// A jail without glibc, where Slurm's commands are to work.
func TestCheckOfGlibc(t *testing.T) {
	n := newGoodNode(t)
	commands, _ := node.FindCommands(&config.Config{})
	if len(commands) == 0 {
		t.Skip("Slurm is not installed")
	}
	f, err := os.Open(commands[0])
	require.NoError(t, err)
	defer f.Close()
	linker := readInterpreter(f)
	require.NotEmpty(t, linker)
	want := n.root + " has no " + linker + ", the dynamic linker of the node's Slurm: its commands and libraries cannot run in the jail; install glibc there, or write slurm = false"
	assert.Contains(t, n.listMissing(t), want)
	assert.Contains(t, n.listMissing(t, specs.Mount{Destination: "/usr"}), want)
	link := n.root + filepath.Dir(linker)
	require.NoError(t, os.Symlink("usr"+filepath.Dir(linker), link))
	assert.NotContains(t, n.listMissing(t, specs.Mount{Destination: "/usr"}), want)
	require.NoError(t, os.Remove(link))
	n.addLinker(t)
	assert.NotContains(t, n.listMissing(t), want)
}

func TestCheckOfSlurmUser(t *testing.T) {
	n := newGoodNode(t)
	n.addLinker(t)
	warning := func(user, remedy string) string {
		return "WARN  jail a: SlurmUser " + user + " of slurm.conf is not in " + n.root + "/etc/passwd: " +
			`srun inside the jail fails with "Invalid user for SlurmUser"; append this line to the file: ` + remedy
	}
	n.writeFile(t, "jail/etc/passwd", "root:x:0:0::/root:/bin/sh\nd:x:1\n\n", 0o644)
	assert.Empty(t, n.listMissing(t), "SlurmUser is root if slurm.conf names none")
	n.writeFile(t, "slurm/slurm.conf", "SlurmUser=daemon\n", 0o644)
	u, err := user.Lookup("daemon")
	require.NoError(t, err)
	assert.Equal(t, warning("daemon", "daemon:x:"+u.Uid+":"+u.Gid+"::/nonexistent:/usr/sbin/nologin"), n.listMissing(t))
	n.writeFile(t, "slurm/slurm.conf", "SlurmUser=1\n", 0o644)
	assert.Empty(t, n.listMissing(t), "a number is one that passwd has")
	n.writeFile(t, "slurm/slurm.conf", "SlurmUser=nobody-here\n", 0o644)
	assert.Equal(t, warning("nobody-here", "nobody-here:x:UID:GID::/nonexistent:/usr/sbin/nologin with the numbers of the node"), n.listMissing(t))
	assert.Empty(t, n.listMissing(t, specs.Mount{Destination: "/etc/passwd"}), "a mount brings another file")
}

// The file belongs to the jail: nothing of the node is read in its place, and nothing hangs.
func TestCheckReadsPasswdInsideTheJail(t *testing.T) {
	n := newGoodNode(t)
	passwd := filepath.Join(n.root, "etc/passwd")
	n.writeFile(t, "slurm/slurm.conf", "SlurmUser=daemon\n", 0o644)
	assert.Contains(t, n.listMissing(t), "is not in "+passwd, "no file at all")
	require.NoError(t, os.Symlink("/proc/self/root/etc/passwd", passwd))
	assert.Contains(t, n.listMissing(t), "is not in "+passwd)
	require.NoError(t, os.Remove(passwd))
	require.NoError(t, os.Symlink(strings.Repeat("../", 20)+"etc/passwd", passwd))
	assert.Contains(t, n.listMissing(t), passwd+" cannot be read: too many levels of symbolic links", "it leads to itself, not out of the jail")
	require.NoError(t, os.Remove(passwd))
	require.NoError(t, unix.Mkfifo(passwd, 0o644))
	assert.Contains(t, n.listMissing(t), passwd+" cannot be read: not a regular file")
}

func TestCheckOfWhatTheSpoolCovers(t *testing.T) {
	n := newGoodNode(t)
	n.addLinker(t)
	n.writeFile(t, "jail/etc/passwd", "root:x:0:0::/root:/bin/sh\n", 0o644)
	n.writeFile(t, "slurm/slurm.conf", "", 0o644)
	require.NoError(t, os.Mkdir(n.root+"/spool/n1", 0o755))
	assert.Empty(t, n.listMissing(t), "mount targets of an earlier time")
	require.NoError(t, os.Mkdir(n.root+"/spool/cron", 0o755))
	n.writeFile(t, "jail/spool/cron/tab", "", 0o644)
	assert.Contains(t, n.listMissing(t), "WARN  jail a: /spool of the jail, which has cron, is covered")
}
