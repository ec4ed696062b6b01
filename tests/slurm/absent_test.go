// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// prolog is the line of slurm.conf that lets no job start on a node without the plugin.
var prolog = map[string]string{"Prolog": lib + "prolog-1"}

// ownConf gives the node a copy of Slurm's configuration.
const ownConf = "cp -a /etc/slurm /run/own; mount --bind /run/own /etc/slurm; "

// What the health check says of plugstack.conf.
var (
	noPlugstack    = "plugstack: no plugstack.conf of /etc/slurm names spank_gojail.so: jobs run outside their jail"
	optionalPlugin = pluginLine + lib + "spank_gojail.so is optional: where it can"
)

// pluginLine names the line of plugstack.conf that is about the plugin: the harness replaces the section of plugstack.conf.example by it.
var pluginLine = func() string {
	text, err := os.ReadFile("../../plugstack.conf.example")
	if err != nil {
		panic(err)
	}
	before, _, _ := strings.Cut(string(text), "\n# ---- this site")
	return fmt.Sprintf("plugstack: /etc/slurm/plugstack.conf line %d: ", strings.Count(before, "\n")+2)
}()

// absences are the ways in which slurmd runs without gojail's plugin, or with another than the cluster needs. Each is
// shell that makes it so in the mount namespace of n2's slurmd.
var absences = []struct {
	name, breaks string
	log          string // in slurmd's log
	health       string // the beginning of the reason with which the health check drains the node
	open         bool   // without the Prolog the job runs on the node itself
}{
	{name: "plugstack.conf missing", breaks: ownConf + "rm /etc/slurm/plugstack.conf",
		health: noPlugstack, log: "/etc/slurm/plugstack.conf does not name " + lib + "spank_gojail.so", open: true},
	{name: "without our line", breaks: ownConf + "echo 'optional /nonexistent/other.so' >/etc/slurm/plugstack.conf",
		health: noPlugstack, log: "/etc/slurm/plugstack.conf does not name " + lib + "spank_gojail.so", open: true},
	{name: "an include that is not there", breaks: ownConf + "echo 'include plugstack.conf.d/*' >/etc/slurm/plugstack.conf",
		health: noPlugstack, log: "/etc/slurm/plugstack.conf does not name " + lib + "spank_gojail.so", open: true},
	{name: "optional", breaks: ownConf + "sed -i s/^required/optional/ /etc/slurm/plugstack.conf",
		health: optionalPlugin, log: "spank_gojail.so is optional there"},
	{name: "optional and of another release", breaks: ownConf + "sed -i s/^required/optional/ /etc/slurm/plugstack.conf; " + ownLib +
		otherPlugin + lib + "spank_gojail.so", health: optionalPlugin, log: "spank_gojail.so is optional there", open: true},
	{name: "another copy of the plugin", breaks: ownConf + "mkdir /etc/slurm/old; cp " + lib + "* /etc/slurm/old; sed -i s,/opt/gojail/lib/gojail,/etc/slurm/old, /etc/slurm/plugstack.conf",
		health: pluginLine + "/etc/slurm/old/spank_gojail.so is not the plugin in ", log: "names another plugin, /etc/slurm/old/spank_gojail.so"},
	{name: "gojail's package missing", breaks: ownConf + "rm /etc/slurm/plugstack.conf; mount -t tmpfs none " + lib, health: "installation: " + lib + "gojail-launcher: no such file or directory", log: "Unable to create list of paths", open: true},
	{name: "the plugin's package missing", breaks: ownConf + "rm /etc/slurm/plugstack.conf; " + ownLib + "rm " + lib + "spank_gojail.so",
		health: "installation: " + lib + "spank_gojail.so: no such file or directory", log: "install gojail's plugin for this release of Slurm", open: true},
	{name: "an older gojail", breaks: ownConf + ownLib + "rm " + lib + "prolog-1", health: "prolog: Prolog=" + lib + "prolog-1 does not exist: every job fails and drains this node", log: "Unable to create list of paths"},
}

// ownLib gives the node a copy of gojail.
const ownLib = "cp -a " + lib + " /run/lib; mount --bind /run/lib " + lib + "; "

// otherPlugin compiles a plugin of Slurm 21.08; the name of the file comes next.
const otherPlugin = `echo 'const unsigned plugin_version = 0x150800; const char plugin_name[] = "x", plugin_type[] = "spank";' | gcc -shared -fPIC -xc - -o `

// startApart starts the slurmd of n2 in a mount namespace in which a script has run.
func startApart(t *testing.T, c *harness.Cluster, script string) {
	t.Helper()
	require.NoError(t, c.StopSlurmd("n2"))
	require.NoError(t, c.StartSlurmd("n2", "/usr/bin/unshare", "--mount", "--propagation=private", "/bin/sh", "-ec",
		"rm -rf /run/own /run/lib; "+script+"; exec \"$@\"", "sh"))
}

// defaultJail puts jobs that name no jail into one.
var defaultJail = strings.Replace(harness.DefaultConfig, `default    = "none"`, `default    = "debian"`, 1)

// TestNodeWithoutPlugin: a job that asks for a jail, or gets the site's default, never runs on a node that does not load the
// plugin: srun fails, a batch job waits, and the node is drained. Other nodes go on.
func TestNodeWithoutPlugin(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, SlurmConf: prolog, Config: defaultJail})
	for _, a := range absences {
		t.Run(a.name, func(t *testing.T) {
			c.ShowLogs(t)
			startApart(t, c, a.breaks)
			seen := len(c.Log("n2"))
			r := c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "sh", "-c", task)
			assert.NotZero(t, r.Code, r)
			assert.NotContains(t, r.Stdout, "ran in", r)
			waitForDrain(t, c)
			assert.Contains(t, c.Log("n2")[seen:], a.log)

			c.Resume("n2")
			job := submitToN2(t, c)
			waitForDrain(t, c)
			fields := c.JobFields(job)
			assert.Equal(t, "PENDING", fields["JobState"], fields)
			text, _ := c.ReadAnywhere(fields["StdOut"])
			assert.NotContains(t, text, "ran in")
			require.Zero(t, c.Root("scancel", job).Code)

			require.NoError(t, c.RestartSlurmd("n2"))
			c.Resume("n2")
			require.True(t, c.WaitIdle(), c.Drained())
			requireOutput(t, "debian\ndebian", c.Run(harness.Alice, "srun", "-N2", "--jail=debian", "cat", marker))
		})
	}
}

// submitToN2 submits a batch job to n2, for the default jail, and returns its number.
func submitToN2(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	r := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\n" + task + "\n", Args: []string{"sbatch", "--parsable", "-wn2"}})
	require.Zero(t, r.Code, r)
	return strings.TrimSpace(r.Stdout)
}

// waitForDrain waits until n2 takes no jobs and has none.
func waitForDrain(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n2") == "drained" }), c.Root("sinfo", "-N").Stdout)
	assert.Contains(t, c.Drained(), "Prolog error")
}

// TestNodeWithoutPrologRunsOutside: what the Prolog is for. Without it Slurm ignores --jail on such a node, and nobody knows of
// the default jail.
func TestNodeWithoutPrologRunsOutside(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: defaultJail})
	for _, a := range absences {
		t.Run(a.name, func(t *testing.T) {
			startApart(t, c, a.breaks)
			for _, jail := range [][]string{{"--jail=debian"}, nil} {
				r := c.Run(harness.Alice, slices.Concat([]string{"srun", "-wn2"}, jail, []string{"sh", "-c", task})...)
				assert.Equal(t, a.open, r.Code == 0 && !strings.Contains(r.Stdout, "debian"), r)
			}
		})
	}
}

// TestPluginReplacedUnderSlurmd: slurmstepd refuses a required plugin of another release. The Prolog need not know it.
func TestPluginReplacedUnderSlurmd(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, SlurmConf: prolog})
	startApart(t, c, ownLib+"true")
	requireOutput(t, "ran in debian", c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "sh", "-c", task))
	r := c.Root("sh", "-c", "rm /run/lib/spank_gojail.so; "+otherPlugin+"/run/lib/spank_gojail.so")
	require.Zero(t, r.Code, r)
	r = c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "sh", "-c", task)
	assert.NotContains(t, r.Stdout, "ran in", r) // srun of 22.05 ends with 0 all the same
}

// TestConfiglessNodeWithoutPlugin: slurmctld sends no file that plugstack.conf includes. The submit host has it, the node
// does not.
func TestConfiglessNodeWithoutPlugin(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, NoConf: true, SlurmConf: prolog})
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "cat", marker))
	const sent = "/srv/slurmctld/plugstack.conf"
	require.Zero(t, c.Root("mkdir", "-p", "/etc/slurm/plugstack.conf.d").Code)
	replaceFile(t, c.Path("/etc/slurm/slurm.conf"), readFile(c, "/srv/slurmctld/slurm.conf"))
	replaceFile(t, c.Path("/etc/slurm/plugstack.conf.d/gojail.conf"), readFile(c, sent))
	for _, file := range []string{sent, "/etc/slurm/plugstack.conf"} {
		replaceFile(t, c.Path(file), "include plugstack.conf.d/*.conf\n")
	}
	reconfigure(t, c, "plugstack.conf", "include plugstack.conf.d/*.conf\n")
	r := c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "sh", "-c", task)
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "ran in", r)
	waitForDrain(t, c)
	assert.Contains(t, c.Log("n2"), "/plugstack.conf does not name "+lib+"spank_gojail.so, nor does a file that it includes")
}

// TestHealthCheckDrainsNodeWithoutPlugin: before a job comes, where slurmd runs the health check. The reason names what is wrong.
func TestHealthCheckDrainsNodeWithoutPlugin(t *testing.T) {
	conf := maps.Clone(prolog)
	maps.Copy(conf, map[string]string{"HealthCheckProgram": harness.Prefix + "/sbin/gojail-healthcheck", "HealthCheckInterval": "2", "HealthCheckNodeState": "ANY"})
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, SlurmConf: conf})
	config := "run = \"/run/health/%n\"\nstate = \"/var/lib/health/%n\"\nsyslog = false\n"
	replaceFile(t, c.Path("/etc/gojail/health.toml"), config+turnOffChecksBut(c, "jail"))
	waitFor := func(state string) {
		t.Helper()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n2") == state }), "not %s: %s", state, c.Drained())
	}
	for _, a := range absences {
		t.Run(a.name, func(t *testing.T) {
			startApart(t, c, a.breaks)
			waitFor("drained")
			assert.Contains(t, c.Drained(), "n2 drain jail: "+a.health)
			assert.Equal(t, "idle", c.NodeState("n1"))
			require.NoError(t, c.RestartSlurmd("n2"))
			waitFor("idle") // the health check resumes what it has drained
		})
	}
}

// TestSlurmdRefusesPluginOfAnotherRelease: a required one. No job runs on such a node, with the Prolog or without.
func TestSlurmdRefusesPluginOfAnotherRelease(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}})
	require.NoError(t, c.StopSlurmd("n2"))
	c.StartSlurmd("n2", "/usr/bin/unshare", "--mount", "--propagation=private", "/bin/sh", "-ec",
		"rm -rf /run/lib; "+ownLib+otherPlugin+lib+"spank_gojail.so; exec \"$@\"", "sh")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return strings.Contains(c.Log("n2"), "spank_gojail.so: Incompatible plugin version") && len(c.Find("/usr/sbin/slurmd -N n2")) == 0
	}), c.Log("n2"))
}
