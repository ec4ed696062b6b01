// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	jailcheck "github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/nstest"
)

func TestJail(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	expect(t, once(h, jails, s), check.NotApplicable, "")
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "")
	put(t, h.Roots.Etc+"/slurm/plugstack.conf", "required /lib/gojail/spank_gojail.so config="+h.Roots.Etc+"/none.toml\n")
	expect(t, once(h, jails, s), check.Fail, "") // every step fails without that file
	put(t, h.Roots.Etc+"/slurm/plugstack.conf", "")
	expect(t, once(h, jails, s), check.NotApplicable, "")
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "Prolog=/lib/gojail/prolog-1\n")
	expect(t, once(h, jails, s), check.Fail, "") // each job that starts here fails
	put(t, s.Jail.Config, "rot = 1\n")
	expect(t, once(h, jails, s), check.Fail, "")
	var p problems
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.OK, Subject: "kernel", Found: "good"})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Warn, Subject: "latency", Found: "slow", Remedy: "x"})
	expect(t, p.buildFinding("good"), check.OK, "good")
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail a", Found: "jail root /x: stale file handle", Remedy: "mount its storage"})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail b", Found: "jail root /y: stale file handle", Remedy: "mount its storage"})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail c", Found: "bad"})
	f := p.buildFinding("good")
	expect(t, f, check.Fail, "jail a: jail root /x: stale file handle; jail b: jail root /y: stale file handle; jail c: bad")
	assert.Equal(t, "latency: slow; mount its storage", f.Detail, "each remedy once")
}

// TestJailWithSilentStorage: the finding says so only where all faults are that.
func TestJailWithSilentStorage(t *testing.T) {
	var p problems
	assert.False(t, p.buildFinding("good").Silent)
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail a", Found: "does not answer", Silent: true})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail b", Found: "users' files", Content: true})
	assert.True(t, p.buildFinding("good").Silent)
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail c", Found: "bad"})
	assert.False(t, p.buildFinding("good").Silent)
}

// A fault that users can cause on every node drains no node.
func TestJailWithUsersContent(t *testing.T) {
	var p problems
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail a", Found: "mount targets are missing", Remedy: "make them", Content: true})
	f := p.buildFinding("good")
	expect(t, f, check.Warn, "jail a: mount targets are missing")
	assert.Equal(t, "make them", f.Detail)
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail b", Found: "bad"})
	expect(t, p.buildFinding("good"), check.Fail, "jail b: bad")

	// A node without any part of gojail, but with two jails that lack everything.
	if !nstest.IsRoot() {
		t.Skip("needs root: a tree of a user")
	}
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	put(t, h.Roots.Run+"/ours/x", "")
	put(t, h.Roots.Run+"/theirs/x", "")
	require.NoError(t, os.Chown(h.Roots.Run+"/theirs", 65534, 65534))
	put(t, s.Jail.Config, fmt.Sprintf("default = \"ours\"\n[jail.ours]\nroot = %q\n[jail.theirs]\nroot = %q\n", h.Roots.Run+"/ours", h.Roots.Run+"/theirs"))
	p = problems{}
	jailcheck.Check(newJailNode(h, s), func(f jailcheck.Finding) { judgeJail(&p, f) })
	assert.Contains(t, fmt.Sprint(p.fail), "jail ours: mount targets are missing")
	assert.NotContains(t, fmt.Sprint(p.fail), "jail theirs")
	assert.Contains(t, fmt.Sprint(p.warn), "jail theirs: mount targets are missing")
}

// Storage that is too slow for the check makes a node neither bad nor good; a template of another tree, which
// the next job makes anew, is a warning.
func TestJailFindingsThatDoNotDrain(t *testing.T) {
	var p problems
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Warn, Subject: "jail a", Found: "has another root", Remedy: "reload", Alert: true})
	expect(t, p.buildFinding("good"), check.Warn, "jail a: has another root")
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Warn, Subject: "jail b", Found: "answers, but", Unfinished: true})
	expect(t, p.buildFinding("good"), check.Unknown, "jail b: answers, but")
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail c", Found: "/c: its storage s (nfs4) does not answer", Silent: true})
	expect(t, p.buildFinding("good"), check.Fail, "jail c: /c: its storage s (nfs4) does not answer")
}

// TestStoreThatDoesNotAnswer: another process has the lock of the lease for ever, as one that waits for the storage.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	nstest.NeedRoot(t)
	h, dir := testHost(t), t.TempDir()
	n := jailcheck.Node{Config: dir + "/gojail.toml", State: dir + "/state", Name: h.Node}
	require.NoError(t, os.MkdirAll(dir+"/store", 0o755))
	require.NoError(t, os.Mkdir(n.State, 0o755))
	put(t, n.Config, "store = \""+dir+"/store\"\ndefault = \"a\"\n[jail.a]\nroot = \"store:debian\"\nslurm = false\n")
	lock, err := filelock.Try(n.State + "/lease.lock")
	require.NoError(t, err)
	defer lock.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	before := time.Now()
	tellStore(ctx, h, n, map[string]bool{"jail b": true})
	require.NoError(t, ctx.Err(), "there is time for an answer")
	assert.GreaterOrEqual(t, time.Since(before), leaseTimeout, "it waits for the lock")
	require.NoError(t, lock.Close())
	tellStore(t.Context(), h, n, map[string]bool{"jail a": true})
	assert.NoDirExists(t, dir+"/store/.nodes", "its storage is silent")
	tellStore(t.Context(), h, n, nil)
	assert.DirExists(t, dir+"/store/.nodes")
	for left, want := range map[time.Duration]time.Duration{time.Hour: leaseTimeout, 2 * leaseTimeout: leaseTimeout, leaseTimeout: leaseTimeout / 2, -1: 0} {
		assert.Equal(t, want, limitLease(left), "%v are left", left)
	}
}

// TestJailThatHangsIsNamedAgain: a process of an earlier run that hangs in the storage answers nothing more.
func TestJailThatHangsIsNamedAgain(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	put(t, s.Jail.Config, "default = \"a\"\n[jail.a]\nroot = \"/nonexistent\"\nslurm = false\n")
	f := once(h, jails, s)
	require.Equal(t, check.Fail, f.Verdict)
	h.State = f.State
	assert.Equal(t, f.Text, recallJails(h))
	h.State = nil
	assert.Empty(t, recallJails(h))
}

// The plugin is searched below the PREFIX of this program, where make install puts it.
func TestLibDirOfThisProgram(t *testing.T) {
	if os.Getenv("GOJAIL_TEST_LIBDIR") != "" {
		fmt.Println("libdir " + newJailNode(testHost(t), config.DefaultSettings()).LibDir)
		return
	}
	prefix := t.TempDir() + "/usr"
	require.NoError(t, os.MkdirAll(prefix+"/sbin", 0o755))
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(prefix+"/sbin/gojail-healthcheck", self, 0o755))
	cmd := exec.Command(prefix+"/sbin/gojail-healthcheck", "-test.run=^TestLibDirOfThisProgram$")
	cmd.Env = append(os.Environ(), "GOJAIL_TEST_LIBDIR=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "libdir "+prefix+"/lib/gojail\n")

	s := config.DefaultSettings()
	s.Jail.LibDir = "/opt/gojail"
	assert.Equal(t, "/opt/gojail", newJailNode(testHost(t), s).LibDir)
}

func TestJailLeftovers(t *testing.T) {
	nstest.NeedRoot(t)
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	expect(t, once(h, leftovers, s), check.NotApplicable, "")
	put(t, s.Jail.Config, "")
	expect(t, once(h, leftovers, s), check.OK, "")
	require.NoError(t, os.MkdirAll(s.Jail.State+"/jobs/17", 0o700)) // an allocation between two steps
	require.NoError(t, os.Chmod(s.Jail.State, 0o700))
	f := once(h, leftovers, s)
	f = again(h, leftovers, s, f)
	expect(t, f, check.OK, "")
	put(t, s.Jail.State+"/ended/18", "")
	put(t, s.Jail.State+"/ended/.tried", "\n")
	f = again(h, leftovers, s, f)
	expect(t, f, check.OK, "") // it may be made up for just now
	f = again(h, leftovers, s, f)
	expect(t, f, check.Warn, "gojail still holds resources of ended jobs")
	assert.Equal(t, "job 18", f.Detail)
}
