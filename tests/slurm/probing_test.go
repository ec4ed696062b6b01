// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/tests/harness"
)

// newTreesCluster starts a cluster whose jail "debian" has its root at /srv/versions/current, and trees beside that for it: v1
// and v2, each with its name as the marker.
func newTreesCluster(t *testing.T, deadline time.Duration) *harness.Cluster {
	t.Helper()
	options := jailed
	options.SlurmConf = nil // a task epilog has no deadline of Slurm's while it waits for the storage
	c := harness.Start(t, options)
	c.ShowLogs(t)
	for _, tree := range []string{"v1", "v2"} {
		runAsRoot(t, c, fmt.Sprintf("mkdir -p /srv/versions && cp -al /srv/jails/debian /srv/versions/%s && rm /srv/versions/%[1]s%s && echo %[1]s >/srv/versions/%[1]s%s",
			tree, marker, marker))
	}
	runAsRoot(t, c, "ln -s v1 /srv/versions/current")
	config := strings.Replace(harness.DefaultConfig, `root = "/srv/jails/debian"`, `root = "/srv/versions/current"`, 1)
	require.NoError(t, c.WriteConfig(strings.Replace(config, (5*time.Second*harness.Slow).String(), deadline.String(), 1)))
	return c
}

// runAsRoot runs a script as root on the machine.
func runAsRoot(t *testing.T, c *harness.Cluster, script string) string {
	t.Helper()
	r := c.Root("sh", "-c", script)
	require.Zero(t, r.Code, r)
	return strings.TrimSpace(r.Stdout)
}

// readTree returns which tree a new job on n1 has, or why it has none.
func readTree(c *harness.Cluster) string {
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)
	if r.Code != 0 {
		return findGojailLine(r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

// waitForTree waits until new jobs have a tree. An answer of the storage is good for a second.
func waitForTree(t *testing.T, c *harness.Cluster, want string) {
	t.Helper()
	var has string
	require.True(t, harness.Poll(harness.Timeout, func() bool { has = readTree(c); return has == want || strings.Contains(has, "gojail: ") }), has)
	require.Equal(t, want, has)
}

// startJob starts a job in its jail, and returns a function that runs a further step of it.
func startJob(t *testing.T, c *harness.Cluster) func(script string) harness.Result {
	t.Helper()
	step, _ := allocate(t, c)
	require.Zero(t, step("true").Code)
	return step
}

// TestSwitchedRoot: the next job has what the path of the root leads to now, without a word to the node; a job that runs keeps its tree.
func TestSwitchedRoot(t *testing.T) {
	c := newTreesCluster(t, 5*time.Second*harness.Slow)
	waitForTree(t, c, "v1")
	step := startJob(t, c)

	t.Run("link", func(t *testing.T) {
		assert.Regexp(t, `debian .* current +ok`, c.Gojail("n1", "ls").Stdout)
		runAsRoot(t, c, "cd /srv/versions; ln -s v2 new; mv -T new current")
		waitForExpiry()
		assert.Regexp(t, `debian .* current +switched`, c.Gojail("n1", "ls").Stdout)
		waitForTree(t, c, "v2")
		requireOutput(t, "v1", step("cat "+marker))
	})
	t.Run("tree replaced", func(t *testing.T) {
		runAsRoot(t, c, "cd /srv/versions; cp -al v2 v3; rm v3"+marker+"; echo v3 >v3"+marker+"; mv v2 aside; mv v3 v2")
		waitForTree(t, c, "v3")
		requireOutput(t, "v1", step("cat "+marker))
	})
	t.Run("version file", func(t *testing.T) {
		zygote := readRecordPid(t, c, "jails/debian/zygote")
		runAsRoot(t, c, "cd /srv/versions/v2; echo 4 >.new; mv .new .gojail.version")
		require.True(t, harness.Poll(harness.Timeout, func() bool { return readTree(c) == "v3" && readRecordPid(t, c, "jails/debian/zygote") != zygote }))
		assert.Contains(t, readFile(c, "/run/gojail/n1/jails/debian/identity"), " version ")
	})
	t.Run("a user's version file", func(t *testing.T) {
		runAsRoot(t, c, "rm /srv/versions/v2/.gojail.version")
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			return readTree(c) == "v3" && !strings.Contains(readFile(c, "/run/gojail/n1/jails/debian/identity"), " version ")
		}))
		zygote := readRecordPid(t, c, "jails/debian/zygote")
		runAsRoot(t, c, "cd /srv/versions/v2; echo 5 >.gojail.version; chown alice .gojail.version")
		waitForExpiry()
		require.Equal(t, "v3", readTree(c), "it has looked again")
		assert.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))
	})
	t.Run("gone", func(t *testing.T) {
		runAsRoot(t, c, "mv /srv/versions/current /srv/versions/away")
		assert.True(t, harness.Poll(harness.Timeout, func() bool {
			return strings.Contains(readTree(c), "its root /srv/versions/current cannot be opened: No such file or directory")
		}))
		requireOutput(t, "v1", step("cat "+marker))
		runAsRoot(t, c, "mv /srv/versions/away /srv/versions/current")
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return readTree(c) == "v3" }))
	})
	requireOneZygote(t, c, "n1")
}

// waitForSettled waits until a later change of a tree has another time than the last one: templates that are made earlier do not record it.
func waitForSettled(t *testing.T, c *harness.Cluster, tree string) {
	t.Helper()
	changed, err := strconv.ParseInt(runAsRoot(t, c, "stat -c %Z /srv/versions/"+tree), 10, 64)
	require.NoError(t, err)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return time.Now().Unix() > changed+2 }))
}

// TestLinkOnRemoteStorage: a local tree is not taken for the present one by the node's caches where a link on remote storage leads to it, in one of the
// places where a path can have such a link.
func TestLinkOnRemoteStorage(t *testing.T) {
	c := newFUSECluster(t, 5*time.Second*harness.Slow) // current is remote
	waitForSettled(t, c, "v2")
	runAsRoot(t, c, `cd /srv/versions; ln -s v2 local; ln -s ../versions/local/../local/. twisted; ln -s /srv/versions/v2 v1/last; ln -s ../.. v1/first; ln -s current/last over`)
	for root, recorded := range map[string]bool{
		"/srv/versions/v2":                          true,
		"/srv/versions/local":                       true,
		"/srv/versions/twisted":                     true,
		"/srv/versions/current/last":                false,
		"/srv/versions/over":                        false,
		"/srv/versions/current/first/versions/v2":   false,
		"/srv/versions/current/first/versions/over": false,
	} {
		t.Run(root, func(t *testing.T) {
			runAsRoot(t, c, "sed -i 's|^root = \"/srv/versions.*|root = \""+root+"\"|' "+harness.ConfigPath)
			waitForTree(t, c, "v2")
			assert.Equal(t, recorded, strings.Contains(readFile(c, "/run/gojail/n1/jails/debian/identity"), "\nchanged "))
		})
	}
}

// TestInterruptedReplacement: whatever a launcher has given its name of a new template when it ends, the next job has the tree of the path by then.
func TestInterruptedReplacement(t *testing.T) {
	c := newTreesCluster(t, 5*time.Second*harness.Slow)
	waitForSettled(t, c, "v2")
	for _, name := range []string{"storage.sock", "socket", "identity", "storage", "zygote"} {
		t.Run(name, func(t *testing.T) {
			runAsRoot(t, c, "ln -sfn v1 /srv/versions/current")
			require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
			waitForTree(t, c, "v1")
			waitForExpiry()
			// A directory takes no other file's name (rename(2)).
			runAsRoot(t, c, fmt.Sprintf("cd /run/gojail/n1/jails/debian && mv %s kept && mkdir %[1]s && ln -sfn v2 /srv/versions/current", name))
			assert.Contains(t, readTree(c), name+" in the state directory: Is a directory")
			runAsRoot(t, c, fmt.Sprintf("cd /run/gojail/n1/jails/debian && rmdir %s && mv kept %[1]s", name))
			assert.Equal(t, "v2", readTree(c))
		})
	}
}

// countProbes returns how often the storage of debian on n1 was asked since its template was made.
func countProbes(t *testing.T, c *harness.Cluster) int {
	t.Helper()
	words := strings.Fields(readFile(c, "/run/gojail/n1/jails/debian/storage"))
	if len(words) == 0 {
		return 0 // as the launcher makes it
	}
	count, err := strconv.Atoi(words[0])
	require.NoError(t, err)
	return count
}

// TestLocalStorageIsNotAsked: no process asks storage that is always there; TestSwitchedRoot shows that its root may lead elsewhere.
func TestLocalStorageIsNotAsked(t *testing.T) {
	c := newTreesCluster(t, 5*time.Second*harness.Slow)
	waitForSettled(t, c, "v1")
	waitForTree(t, c, "v1")
	step := startJob(t, c)
	waitForExpiry()
	assert.Equal(t, "v1", readTree(c))
	requireOutput(t, "v1", step("cat "+marker))
	assert.Zero(t, countProbes(t, c))
	assert.Empty(t, findNamed(c, "gojail-prober"))
}

// TestManyStepsAskOnce: the storage is asked at most once a second, by one process.
func TestManyStepsAskOnce(t *testing.T) {
	c := newFUSECluster(t, 10*time.Second*harness.Slow)
	waitForTree(t, c, "v1")
	waitForExpiry()
	before, start := countProbes(t, c), time.Now()
	var wait sync.WaitGroup
	for range 24 {
		wait.Go(func() { assert.Equal(t, "v1", readTree(c)) })
	}
	wait.Wait()
	for range 8 {
		assert.Equal(t, "v1", readTree(c))
	}
	asked := countProbes(t, c) - before
	assert.LessOrEqual(t, asked, int(time.Since(start)/time.Second)+1)
	assert.Positive(t, asked)
	assert.Len(t, findNamed(c, "gojail-prober"), 1, "it stays for the next question")
}

// newFUSECluster is newTreesCluster with a root that a FUSE daemon serves.
func newFUSECluster(t *testing.T, deadline time.Duration) *harness.Cluster {
	t.Helper()
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs bindfs: make deps")
	}
	c := newTreesCluster(t, deadline)
	runAsRoot(t, c, "cd /srv/versions; rm current; mkdir current")
	runAsRoot(t, c, "bindfs /srv/versions/v1 /srv/versions/current -o subtype=bindfs")
	return c
}

// findDaemon returns the process of bindfs.
func findDaemon(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	found := c.Find("bindfs /srv/versions")
	require.Len(t, found, 1)
	return strconv.Itoa(found[0].Pid)
}

// TestStaleTemplate: storage that is lost and mounted anew is in use again with the next job, without a word to the node.
func TestStaleTemplate(t *testing.T) {
	c := newFUSECluster(t, 5*time.Second*harness.Slow)
	waitForTree(t, c, "v1")
	before := readRecordPid(t, c, "jails/debian/zygote")
	for _, how := range []string{"-KILL", "-TERM"} {
		runAsRoot(t, c, "kill "+how+" "+findDaemon(t, c))
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("bindfs /srv/versions")) == 0 }))
		c.Root("umount", "-l", "/srv/versions/current")
		runAsRoot(t, c, "bindfs /srv/versions/v2 /srv/versions/current -o subtype=bindfs")
		waitForExpiry()
		assert.Equal(t, "v2", readTree(c), "within the same launch")
		after := readRecordPid(t, c, "jails/debian/zygote")
		assert.NotEqual(t, before, after)
		before = after
	}
	requireOneZygote(t, c, "n1")
}

// waitForExpiry waits until the last answer of the storage is no longer good.
func waitForExpiry() { time.Sleep(1100 * time.Millisecond) } // it is good for a second

// silence is what a step says of storage that does not answer.
const silence = `jail "debian" (root /srv/versions/current): the storage /srv/versions/v1 (fuse.bindfs) at `

// TestSilentStorage: no step of any kind hangs, each says which storage it is, the node stays as it is, and all is well when the storage is back.
func TestSilentStorage(t *testing.T) {
	const deadline = 3 * time.Second
	for _, node := range []string{"warm", "cold"} {
		t.Run(node, func(t *testing.T) {
			c := newFUSECluster(t, deadline)
			var step func(string) harness.Result
			if node == "warm" {
				waitForTree(t, c, "v1")
				step = startJob(t, c)
			}
			waitForExpiry()
			pid := findDaemon(t, c)
			runAsRoot(t, c, "kill -STOP "+pid)
			defer c.Root("kill", "-CONT", pid)

			for _, launch := range []string{"srun", "later step", "sbatch"} {
				if launch == "later step" && step == nil {
					continue
				}
				t.Run(launch, func(t *testing.T) {
					start := time.Now()
					var said string
					switch launch {
					case "srun":
						said = readTree(c)
					case "later step":
						said = findGojailLine(step("cat " + marker).Stderr)
					case "sbatch":
						job := c.Batch(harness.Alice, "cat "+marker, "-wn1", "--jail=debian", "--output=/tmp/%j.out")
						assert.Equal(t, "FAILED", job.State, job)
						said = findGojailLine(job.Output)
					}
					assert.Contains(t, said, silence)
					assert.Contains(t, said, " does not answer; ")
					assert.Less(t, time.Since(start), deadline+harness.Late)
				})
			}
			job := c.Batch(harness.Alice, "cat "+marker, "-wn1", "--jail=debian")
			assert.Equal(t, "FAILED", job.State, job)
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("slurmstepd: [")) == 0 }), "no slurmstepd hangs")
			assert.NotContains(t, c.NodeState("n1"), "drain", c.Drained())
			if node == "cold" { // else it is the zygote
				assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("gojail-launcher")) == 0 }))
			}

			runAsRoot(t, c, "kill -CONT "+pid)
			waitForTree(t, c, "v1")
			if step != nil {
				requireOutput(t, "v1", step("cat "+marker))
			}
			requireOneZygote(t, c, "n1")
		})
	}
}

// findNamed returns the processes of that name.
func findNamed(c *harness.Cluster, name string) (found []harness.Process) {
	for _, p := range c.Processes() {
		if p.Status["Name"] == name {
			found = append(found, p)
		}
	}
	return found
}

// TestProberKilled: whichever of the processes is killed, the next step works.
func TestProberKilled(t *testing.T) {
	c := newFUSECluster(t, 10*time.Second*harness.Slow)
	waitForTree(t, c, "v1")
	step := startJob(t, c)
	named := func(name string) []harness.Process { return findNamed(c, name) }
	kill := func(name string) {
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			for _, p := range named(name) {
				c.Root("kill", "-KILL", strconv.Itoa(p.Pid))
				return true
			}
			return false
		}), name)
	}
	for _, name := range []string{"gojail-prober", "gojail-zygote"} {
		waitForExpiry()
		assert.Equal(t, "v1", readTree(c), "it asks")
		kill(name)
		waitForExpiry()
		assert.Equal(t, "v1", readTree(c), name)
		kill(name)
		waitForExpiry()
		requireOutput(t, "v1", step("cat "+marker))
		assert.Equal(t, "v1", readTree(c), name)
	}
	for _, name := range []string{"gojail-prober", "gojail-zygote"} { // while a step waits
		pid := findDaemon(t, c)
		waitForExpiry()
		runAsRoot(t, c, "kill -STOP "+pid)
		got := make(chan string)
		go func() { got <- readTree(c) }()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(named("gojail-prober")) == 1 }))
		kill(name)
		runAsRoot(t, c, "kill -CONT "+pid)
		assert.Equal(t, "v1", <-got, name)
	}
	assert.LessOrEqual(t, len(named("gojail-prober")), 1)
	requireOneZygote(t, c, "n1")
}

// TestStoppedProber: on a node where some step always waits for the storage, a prober that is stopped is replaced as
// well.
func TestStoppedProber(t *testing.T) {
	c := newFUSECluster(t, 5*time.Second*harness.Slow)
	waitForTree(t, c, "v1")
	waitForExpiry()
	daemon := findDaemon(t, c)
	runAsRoot(t, c, "kill -STOP "+daemon)
	waits := requestAnswer(t, c)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(findNamed(c, "gojail-prober")) == 1 }))
	prober := findNamed(c, "gojail-prober")[0].Pid
	runAsRoot(t, c, fmt.Sprintf("kill -STOP %d; kill -CONT %s", prober, daemon))
	var has string
	assert.True(t, harness.Poll(harness.Timeout, func() bool { has = readTree(c); return has == "v1" }), has)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(prober); return err != nil }), "it lives on")
	answer := make([]byte, 4096)
	_, err := waits.Read(answer)
	assert.NoError(t, err)
}

// requestAnswer asks the zygote of debian on n1 whether its storage answers, and waits ten minutes for that.
func requestAnswer(t *testing.T, c *harness.Cluster) net.Conn {
	t.Helper()
	dir, err := os.Open(c.Path("/run/gojail/n1/jails/debian"))
	require.NoError(t, err)
	defer dir.Close()
	waits, err := net.Dial("unixpacket", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/storage.sock")
	require.NoError(t, err)
	t.Cleanup(func() { waits.Close() })
	tenMinutes := struct{ Version, Flags, Patience uint32 }{contract.Version, 0, 600000}
	request, err := binary.Append(nil, binary.NativeEndian, tenMinutes)
	require.NoError(t, err)
	_, err = waits.Write(request)
	require.NoError(t, err)
	return waits
}

// TestManyStepsWait: a zygote whose storage hundreds of steps wait for, as on a node with as many CPUs, is not taken for a stuck one.
func TestManyStepsWait(t *testing.T) {
	c := newFUSECluster(t, 10*time.Second*harness.Slow)
	waitForTree(t, c, "v1")
	waitForExpiry()
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	goOn := stopProcess(t, c, findDaemon(t, c))
	for range 500 {
		requestAnswer(t, c)
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(findNamed(c, "gojail-prober")) == 1 }))
	got := make(chan string)
	go func() { got <- readTree(c) }()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("slurmstepd: [")) > 0 }))
	select {
	case has := <-got:
		assert.Fail(t, "it does not wait", has)
	case <-time.After(2 * time.Second): // a zygote that has not read the request by then counts as stuck
		goOn()
		assert.Equal(t, "v1", <-got)
	}
	assert.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))
}
