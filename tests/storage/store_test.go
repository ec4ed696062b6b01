// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// storeConfig has a jail whose root is the current version of small in a store on the server.
var storeConfig = "store = \"/nfs/more/store\"\n" + config + "\n[jail.stored]\nroot = \"store:small\"\n"

// makeStore makes a store in the tree more, which it exports to the nodes with these options, for the rest of the test.
// The host admin may write to it, and the nodes' clients cache as nfs(5) has it without options.
func (b *testBed) makeStore(t *testing.T, options string, fsid int) {
	t.Helper()
	t.Cleanup(func() { os.RemoveAll(b.serverPath("more")) })
	require.NoError(t, os.MkdirAll(b.serverPath("more/store"), 0o755))
	b.exportMore(t, "/export/more", options, fsid, nfs.AllClients)
	b.exportMore(t, "/export/more", "rw,no_root_squash", fsid, b.hosts["admin"].client.Address)
	b.mountMore(t, "/export/more")
	b.configure(t, storeConfig)
}

// runJail runs gojail jail on a host, which must succeed, and returns what it prints. The host admin is no node; it
// plans as n1 does.
func (h *host) runJail(t *testing.T, args ...string) string {
	t.Helper()
	r := h.tryJail(args...)
	require.Zero(t, r.Code, r)
	return r.Stdout
}

func (h *host) tryJail(args ...string) harness.Result {
	node := h.name
	if node == "admin" {
		node = "n1"
	}
	return h.runGojailOf(node, append([]string{"jail"}, args...)...)
}

// buildVersion builds a version of small on a host and returns its name.
func (b *testBed) buildVersion(t *testing.T, h *host, version string) string {
	t.Helper()
	staging := b.makeStaging(t, version)
	for _, node := range harness.Nodes { // the build makes the targets of its own node only
		require.NoError(t, os.MkdirAll(b.serverPath("open", staging, "var/spool/slurmd", node), 0o755))
	}
	var record struct{ Version string }
	out := h.runJail(t, "build", "small", "--json", "--from", "dir:/nfs/open/"+staging)
	require.NoError(t, json.Unmarshal([]byte(out), &record), out)
	return record.Version
}

// switchMargin is what a node may remember beyond its caches: the last answer of its storage.
const switchMargin = 2 * time.Second

// requireSwitch expects that each job of a node that begins later than the attribute cache lasts after a switch has
// the new version.
func (b *testBed) requireSwitch(t *testing.T, node, want string, switched time.Time, cache time.Duration) {
	t.Helper()
	for tries := 1; ; tries++ {
		began := time.Since(switched)
		r := b.catVersion("stored", node)()
		require.Zero(t, r.Code, r)
		if strings.TrimSpace(r.Stdout) == want {
			t.Logf("%s: job %d after the switch has it, which began after %v", node, tries, began)
			return
		}
		require.Less(t, began, cache+switchMargin, "%s does not see the switch: %v", node, r)
	}
}

// TestVersionsOnNFS: one node builds and switches, and the next job on each node has the new version within the time
// that nfs(5) keeps attributes of directories (acdirmax), without a word to the node; a running job keeps its own.
func TestVersionsOnNFS(t *testing.T) {
	b := sharedBed(t)
	b.makeStore(t, "rw,no_root_squash", 10)
	n1, n2 := b.hosts["n1"], b.hosts["n2"]
	first := b.buildVersion(t, n1, "one")
	assert.Equal(t, "jail small: version "+first+" is current\n", n1.runJail(t, "switch", "small"))
	for _, node := range harness.Nodes {
		requireOutput(t, "one", b.catVersion("stored", node)())
	}
	old := b.startStep(t, "stored")
	second := b.buildVersion(t, n1, "two")
	requireOutput(t, "one", b.catVersion("stored", "n2")())
	assert.Contains(t, n1.runJail(t, "switch", "small"), "jail small: version "+second+" is current, it was "+first+"\n")
	switched := time.Now()
	for _, node := range []string{"n2", "n1"} {
		b.requireSwitch(t, node, "two", switched, 60*time.Second)
	}
	old.tell("cat /etc/gojail-jail")
	old.waitForLine(t, "one")
	assert.Equal(t, "version "+second+" of jail small is as it was built\n", n2.runJail(t, "verify", "small"))
	// A change knows what another node has changed just now: it does not wait for the caches of its own node.
	assert.Contains(t, n2.runJail(t, "rollback", "small"), "jail small: version "+first+" is current, it was "+second+"\n")
	assert.Contains(t, n1.runJail(t, "switch", "small"), "jail small: version "+second+" is current, it was "+first+"\n")
	assert.Contains(t, n2.runJail(t, "rollback", "small"), "jail small: version "+first+" is current, it was "+second+"\n")
	switched = time.Now()
	for _, node := range harness.Nodes {
		b.requireSwitch(t, node, "one", switched, 60*time.Second)
	}
}

// stampLeases sets the time in the lease of each node, as a node whose clock differs from the server's writes it.
func (b *testBed) stampLeases(t *testing.T, at time.Time) {
	t.Helper()
	files, err := filepath.Glob(b.serverPath("more/store/.nodes/*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(harness.Nodes))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var lease map[string]any
		require.NoError(t, json.Unmarshal(text, &lease))
		lease["asked"] = at
		text, err = json.Marshal(lease)
		require.NoError(t, err)
		require.NoError(t, errors.Join(os.WriteFile(file+".new", text, 0o644), os.Rename(file+".new", file)))
	}
}

// sweepNodes lets each node write its lease.
func (b *testBed) sweepNodes(t *testing.T) {
	t.Helper()
	for _, node := range harness.Nodes {
		r := b.hosts[node].runGojail("sweep")
		require.Zero(t, r.Code, r)
	}
}

// TestCollectionOnNFS: a version that another node has for a job, by its lease, is not removed, though the nodes' root is
// nobody on the storage; nor is one that a node may have, whose clock differs from the server's by up to 5 minutes.
func TestCollectionOnNFS(t *testing.T) {
	b := sharedBed(t)
	b.makeStore(t, "rw,root_squash", 11)
	admin := b.hosts["admin"]
	nodes := b.serverPath("more/store/.nodes")
	require.NoError(t, errors.Join(os.Mkdir(nodes, 0o755), os.Chown(nodes, 65534, 65534))) // as docs/jails.md has it
	first := b.buildVersion(t, admin, "one")
	admin.runJail(t, "switch", "small")
	for _, node := range harness.Nodes {
		waitForOutput(t, "one", b.catVersion("stored", node))
	}
	old := b.startStep(t, "stored")
	id := strings.TrimSpace(b.cluster.Root("squeue", "-h", "-o", "%i").Stdout)
	b.buildVersion(t, admin, "two")
	assert.Contains(t, admin.runJail(t, "switch", "small"), "still has "+first+": n1 (job "+id+", template of jail stored), as of ")
	switched := time.Now()
	for _, node := range harness.Nodes {
		b.requireSwitch(t, node, "two", switched, 60*time.Second)
	}
	collect := func() string { return admin.runJail(t, "gc", "small", "--keep", "0") }
	b.sweepNodes(t)
	kept := "kept version " + first + " of jail small: "
	assert.Equal(t, kept+"in use on n1 (job "+id+")\n", collect())
	old.tell("cat /etc/gojail-jail")
	old.waitForLine(t, "one")
	assert.NoError(t, old.end(), old.out.String())
	require.True(t, b.waitForNoJob())
	for _, c := range []struct {
		after time.Duration // the switch, in the leases
		want  string
	}{
		{0, "has not written a lease since the last switch and the 5m0s for clocks that differ"},
		{4 * time.Minute, "has not written a lease since the last switch and the 5m0s for clocks that differ"},
		{3 * time.Hour, "its clock is "},
		{5*time.Minute + 10*time.Second, "removed version " + first + " of jail small"},
	} {
		b.sweepNodes(t)
		b.stampLeases(t, switched.Add(c.after))
		assert.Contains(t, collect(), c.want, "leases written %v after the switch", c.after)
	}
	for _, node := range harness.Nodes {
		requireOutput(t, "two", b.catVersion("stored", node)())
	}
}

// startEdit builds two versions and edits the first on n1, which copies it slowly. It returns during the copy, when
// n2 has switched to the second; ended gets what the command printed.
func (b *testBed) startEdit(t *testing.T, fsid int) (first, second string, ended chan harness.Result) {
	t.Helper()
	b.makeStore(t, "rw,no_root_squash", fsid)
	n1, n2 := b.hosts["n1"], b.hosts["n2"]
	first = b.buildVersion(t, n2, "one")
	n2.runJail(t, "switch", "small", first)
	second = b.buildVersion(t, n2, "two")
	require.NoError(t, n1.client.Delay(20*time.Millisecond))
	ended = make(chan harness.Result, 1)
	go func() {
		ended <- n1.runGojailToItsEnd(t.Context(), "jail", "edit", "small", "--", "sh", "-c", "echo edited >/etc/gojail-jail")
	}()
	var copied []string
	require.True(t, harness.Poll(2*harness.Timeout, func() bool {
		copied, _ = filepath.Glob(b.serverPath("more/store/small/work/build-*/tree/usr"))
		return len(copied) > 0 || len(ended) > 0
	}))
	require.NoError(t, n1.client.Delay(400*time.Millisecond)) // from now on it takes very long
	require.Empty(t, ended, "the copy is being made")
	n2.runJail(t, "switch", "small", second)
	return first, second, ended
}

var builtVersion = regexp.MustCompile(`built version (\S+) of jail small`)

// TestEditOnNFS: while a node copies the version that it edits, no other node removes it, nor builds.
func TestEditOnNFS(t *testing.T) {
	b := sharedBed(t)
	first, _, ended := b.startEdit(t, 12)
	n1, n2 := b.hosts["n1"], b.hosts["n2"]
	requireRefused(t, "version "+first+" is being copied by gojail jail edit; wait for its end", n2.tryJail("rm", "small", first, "--force"))
	requireRefused(t, "is being built by", n2.tryJail("edit", "small", "--", "true"))
	require.Empty(t, ended, "the copy was being made")
	require.NoError(t, n1.client.Restore())
	r := <-ended
	require.Zero(t, r.Code, r)
	found := builtVersion.FindStringSubmatch(r.Stdout)
	require.Len(t, found, 2, r)
	assert.Equal(t, fmt.Sprintf("removed version %s of jail small\n", first), n2.runJail(t, "rm", "small", first, "--force"))
	n2.runJail(t, "switch", "small", found[1])
	waitForOutput(t, "edited", b.catVersion("stored", "n2"))
}

// TestEditorThatIsCutOff: the server forgets the locks of a node that it does not hear of. Others go on, and what that node
// does when it is back changes nothing.
func TestEditorThatIsCutOff(t *testing.T) {
	b := sharedBed(t)
	first, second, ended := b.startEdit(t, 13)
	n1, n2 := b.hosts["n1"], b.hosts["n2"]
	require.NoError(t, n1.client.Cut())
	var r harness.Result
	require.True(t, harness.Poll(2*harness.Timeout, func() bool {
		r = n2.tryJail("rm", "small", first, "--force")
		return r.Code == 0
	}), r)
	require.NoError(t, n1.client.Restore())
	r = <-ended
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "there is no new version of jail small", r)
	third := b.buildVersion(t, n2, "three") // a change, which removes what the edit left
	left, err := filepath.Glob(b.serverPath("more/store/small/work/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	list := n2.runJail(t, "ls", "small")
	assert.NotContains(t, list, first)
	assert.Contains(t, list, second)
	assert.Contains(t, list, third)
	waitForOutput(t, "two", b.catVersion("stored", "n2"))
}
