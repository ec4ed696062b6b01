// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"encoding/json"
	"os"
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

// switchMargin is what a node may remember beyond its caches: the last answer of its keeper.
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
	assert.Contains(t, n2.runJail(t, "rollback", "small"), "jail small: version "+first+" is current, it was "+second+"\n")
	switched = time.Now()
	for _, node := range harness.Nodes {
		b.requireSwitch(t, node, "one", switched, 60*time.Second)
	}
}
