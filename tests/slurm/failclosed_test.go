// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// fault is one thing that goes wrong on the node, or in what the user asks.
type fault struct {
	name     string
	breaks   string                             // shell, as root in the machine
	mends    string                             // shell, takes the cause away
	prepare  func(c *harness.Cluster) func()    // for what shell cannot do
	user     string                             // default alice
	options  []string                           // default --jail=debian
	reason   string                             // in the line that the user sees
	possible bool                               // the launch may also succeed, in the jail
	within   time.Duration                      // the deadline that ends it; 0: it ends at once
	config   func(config string) (other string) // another gojail.toml
}

const (
	jailRoot = "/srv/jails/debian"
	lib      = harness.Prefix + "/lib/gojail/"
	aside    = "mv " + jailRoot + " /srv/jails/aside; "
	back     = "rm -rf --one-file-system " + jailRoot + "; mv /srv/jails/aside " + jailRoot
	saveLib  = "cp -a " + lib + "libgojail.so /root/saved; "
	mendLib  = "rm -f " + lib + "libgojail.so; mv /root/saved " + lib + "libgojail.so"
	saveExe  = "mv " + lib + "gojail-launcher " + lib + "saved; "
	mendExe  = "rm -f " + lib + "gojail-launcher; mv " + lib + "saved " + lib + "gojail-launcher"
	saveToml = "cp -a " + harness.ConfigPath + " /root/saved; "
	mendToml = "rm -f " + harness.ConfigPath + "; mv /root/saved " + harness.ConfigPath
)

// replaceLauncher returns the commands that put a script in the launcher's place; $real is the launcher
// itself.
func replaceLauncher(script string) string {
	return saveExe + "printf '#!/bin/bash\\nreal=" + lib + "saved\\n%s\\n' '" + script + "' >" + lib + "gojail-launcher; chmod 755 " + lib + "gojail-launcher"
}

var faults = []fault{
	{name: "jail root missing", breaks: aside, mends: back, reason: jailRoot},
	{name: "jail root not a directory", breaks: aside + "touch " + jailRoot, mends: back, reason: jailRoot},
	{name: "jail root empty", breaks: aside + "mkdir " + jailRoot, mends: back, reason: jailRoot},
	{name: "jail storage hangs", prepare: hangDirectory(jailRoot), reason: "at /srv/jails/debian does not answer", within: 2 * time.Second},
	{name: "library missing", breaks: saveLib + "rm " + lib + "libgojail.so", mends: mendLib, reason: "libgojail.so"},
	{name: "library truncated", breaks: saveLib + "rm " + lib + "libgojail.so; head -c 1000 /root/saved >" + lib + "libgojail.so", mends: mendLib, reason: "libgojail.so"},
	{name: "library writable by others", breaks: "chmod 666 " + lib + "libgojail.so", mends: "chmod 755 " + lib + "libgojail.so", reason: "chmod go-w"},
	{name: "launcher of somebody else", breaks: "chown alice " + lib + "gojail-launcher", mends: "chown root " + lib + "gojail-launcher", reason: "chown root"},
	{name: "configuration missing", breaks: saveToml + "rm " + harness.ConfigPath, mends: mendToml, reason: "gojail.toml"},
	{name: "configuration malformed", breaks: saveToml + "echo nonsense >>" + harness.ConfigPath, mends: mendToml, reason: "line "},
	{name: "configuration with an unknown key", breaks: saveToml + "sed -i '1i colour = 1' " + harness.ConfigPath, mends: mendToml, reason: "colour"},
	{name: "configuration writable by others", breaks: saveToml + "chmod 666 " + harness.ConfigPath, mends: mendToml, reason: "chmod"},
	{name: "directory of the configuration writable by others", breaks: "chmod 777 /etc/gojail", mends: "chmod 755 /etc/gojail", reason: "chmod"},
	{name: "state directory full", breaks: "mount -t tmpfs -o size=4k full /run/gojail && head -c 4096 /dev/zero >/run/gojail/fill",
		mends: "umount -l /run/gojail", reason: "/run/gojail/n1"},
	{name: "state directory without inodes", breaks: "mount -t tmpfs -o nr_inodes=2 full /run/gojail && mkdir /run/gojail/n1",
		mends: "umount -l /run/gojail", reason: "/run/gojail/n1"},
	{name: "state directory read-only", breaks: "mount -t tmpfs -o ro readonly /run/gojail", mends: "umount -l /run/gojail", reason: "/run/gojail"},
	{name: "state directory of somebody else", breaks: "mkdir -p /run/gojail/n1; chown alice /run/gojail/n1", mends: "chown root /run/gojail/n1", reason: "/run/gojail/n1"},
	{name: "launcher missing", breaks: saveExe, mends: mendExe, reason: "gojail-launcher"},
	{name: "launcher killed at once", breaks: replaceLauncher("kill -KILL $$"), mends: mendExe, reason: "launcher"},
	{name: "launcher stopped", breaks: replaceLauncher("kill -STOP $$"), mends: mendExe, reason: "deadline", within: 10 * time.Second}, // nothing has told this node the site's deadline yet
	{name: "site file locked by another process", breaks: "mkdir -p -m 700 /run/gojail/n1; flock --no-fork /run/gojail/n1/site.lock sleep 1000 >/root/log 2>&1 & echo $! >/root/holder",
		mends: "kill $(cat /root/holder); rm /root/holder /root/log", reason: "(sleep) held the lock until the deadline", within: 10 * time.Second},
	{name: "unknown jail", options: []string{"--jail=nowhere"}, reason: `jail "nowhere"`},
	{name: "jail of another user", config: onlyFor("bob"), reason: "may not use jail"},
	{name: "jail of no group of the user", config: onlyFor("root"), user: harness.Bob, reason: "may not use jail"},
	{name: "refused mount", options: []string{"--jail=debian", "--jail-mount=/etc:/mnt"}, reason: "/etc"},
	{name: "mount source missing", options: []string{"--jail=debian", "--jail-mount=/data/nothing:/mnt"}, reason: "/data/nothing"},
	{name: "mount destination missing", options: []string{"--jail=debian", "--jail-mount=/data:/mnt/nothing"}, reason: "/mnt/nothing"},
	{name: "mount without a jail", options: []string{"--jail=none", "--jail-mount=/data:/mnt"}, reason: "--jail-mount"},
	{name: "mount destination is a link out of the jail", breaks: "ln -s ../../../../../../opt/absent " + jailRoot + "/home/alice/out",
		mends: "rm " + jailRoot + "/home/alice/out", options: []string{"--jail=debian", "--jail-mount=/data:/home/alice/out"}, reason: "/home/alice/out"},
	{name: "configured destination is missing", config: addMount("/nothing/here"), reason: "gojail init debian"},
	{name: "configured source is missing", config: addMount("/mnt"), breaks: "mv /data/shared /data/moved", mends: "mv /data/moved /data/shared", reason: "/data/shared"},
	{name: "scratch is not a directory", breaks: "mv /var/lib/gojail /var/lib/moved; touch /var/lib/gojail",
		mends: "rm -f /var/lib/gojail; mv /var/lib/moved /var/lib/gojail", reason: "/var/lib/gojail"},
}

func init() {
	for _, ms := range []int{1, 3, 6, 12, 25} { // an assembly takes about 20 ms
		faults = append(faults, fault{name: fmt.Sprintf("launcher killed after %d ms", ms), possible: true, mends: mendExe, reason: "launcher",
			breaks: replaceLauncher(fmt.Sprintf(`(sleep 0.%03d; kill -KILL $$) & exec -a gojail-launcher $real "$@"`, ms))})
	}
}

// hangDirectory returns the preparation of a fault: a file system that never answers is mounted on the
// directory.
func hangDirectory(dir string) func(c *harness.Cluster) func() {
	return func(c *harness.Cluster) func() {
		stop, err := c.Hang(dir)
		if err != nil {
			return nil
		}
		return stop
	}
}

// onlyFor returns a change of gojail.toml that admits one user.
func onlyFor(user string) func(string) string {
	return func(config string) string {
		return strings.Replace(config, `root = "`+jailRoot+`"`, `root = "`+jailRoot+"\"\nusers = [\""+user+`"]`, 1)
	}
}

// addMount returns a change of gojail.toml that mounts a directory there.
func addMount(destination string) func(string) string {
	return func(config string) string {
		return config + "\n[[jail.debian.mounts]]\ntype = \"bind\"\nsource = \"/data/shared\"\ndestination = \"" + destination + "\"\n"
	}
}

// dropTemplates ends all zygotes and empties n1's state directory, as a reboot does.
func dropTemplates(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.True(t, c.WaitIdle())
	for _, p := range c.Find("gojail-launcher") {
		c.Root("kill", "-KILL", formatNumber(uint64(p.Pid)))
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("gojail-launcher")) == 0 }))
	require.Zero(t, c.Root("sh", "-c", "rm -rf /run/gojail/*").Code)
}

// TestFailClosed: whatever is broken, no task runs outside its jail, the user
// reads why in one line, the node stays up, and all is well once the cause is gone.
func TestFailClosed(t *testing.T) {
	c := harness.Start(t, jailed)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			c.ShowLogs(t)
			t.Run("srun", func(t *testing.T) { f.launchWithFault(t, c, f.launchStep) })
			t.Run("sbatch", func(t *testing.T) { f.launchWithFault(t, c, f.launchBatch) })
		})
	}
}

// launchWithFault causes the fault, launches, removes the fault, and launches again.
func (f fault) launchWithFault(t *testing.T, c *harness.Cluster, launch func(t *testing.T, c *harness.Cluster)) {
	dropTemplates(t, c)
	config := strings.Replace(harness.DefaultConfig, `"5s"`, `"2s"`, 1)
	if f.config != nil {
		config = f.config(config)
	}
	require.NoError(t, c.WriteConfig(config))
	func() {
		defer f.removeFault(t, c, f.causeFault(t, c))
		launch(t, c)
	}()
	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	for _, node := range harness.Nodes {
		if !assert.Equal(t, "idle", waitForState(c, node), c.Drained()) {
			c.Resume(node)
		}
	}
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
}

// causeFault causes the fault, and returns the function that ends what it started.
func (f fault) causeFault(t *testing.T, c *harness.Cluster) (stop func()) {
	t.Helper()
	if f.breaks != "" {
		r := c.Root("sh", "-c", f.breaks)
		assert.Zero(t, r.Code, "the fault could not be made: %s", r)
	}
	if f.prepare == nil {
		return func() {}
	}
	stop = f.prepare(c)
	require.NotNil(t, stop, "the fault could not be made")
	return stop
}

// removeFault removes the fault, with the function that causeFault returned.
func (f fault) removeFault(t *testing.T, c *harness.Cluster, stop func()) {
	t.Helper()
	stop()
	if f.mends != "" {
		r := c.Root("sh", "-c", f.mends)
		assert.Zero(t, r.Code, r)
	}
}

// task leaves a trace wherever it runs.
const task = "echo ran in $(" + where + ")"

// planLaunch returns the user and the options of the launch.
func (f fault) planLaunch() (user string, options []string) {
	user, options = f.user, f.options
	if user == "" {
		user = harness.Alice
	}
	if options == nil {
		options = []string{"--jail=debian"}
	}
	return user, append([]string{"-wn1"}, options...)
}

// launchStep launches a step, which fails with the fault's text.
func (f fault) launchStep(t *testing.T, c *harness.Cluster) {
	user, options := f.planLaunch()
	r := c.Run(user, append(append([]string{"srun"}, options...), "sh", "-c", task)...)
	if f.possible && r.Code == 0 {
		assert.Equal(t, "ran in debian\n", r.Stdout, r)
		return
	}
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "ran in", r)
	assert.Contains(t, findGojailLine(r.Stderr), f.reason, r)
	assert.Less(t, r.Duration, f.within+harness.Late)
}

// launchBatch launches a batch job, which fails with the fault's text.
func (f fault) launchBatch(t *testing.T, c *harness.Cluster) {
	user, options := f.planLaunch()
	start := time.Now()
	job := c.Batch(user, task, options...)
	defer os.Remove(c.Path(job.Seen))
	if f.possible && job.State == "COMPLETED" {
		assert.Equal(t, "ran in debian\n", job.Output, job)
		return
	}
	assert.NotContains(t, job.Output, "ran in", job)
	if job.Submit.Code != 0 { // refused on the submit host
		assert.Contains(t, findGojailLine(job.Submit.Stderr), f.reason, job)
		return
	}
	assert.Equal(t, "FAILED", job.State, job)
	assert.Contains(t, findGojailLine(job.Output), f.reason, job)
	assert.Less(t, time.Since(start), f.within+harness.Late)
}
