// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// manyMounts returns the value of --jail-mount with more mounts than a job may have.
func manyMounts() string {
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf("/data:/mnt/%d", i))
	}
	return strings.Join(list, ",")
}

// counted are steps that are refused: for what the user asked, which is no fault of the node, or for the node.
var counted = []struct {
	name   string
	args   []string // of srun
	node   string   // command that makes a fault of the node
	undo   string   // undoes that
	why    string   // part of what the user sees
	reason string   // "": request
}{
	{name: "an unknown jail", args: []string{"--jail=nosuch"}, why: `there is no jail "nosuch" on this node`},
	{name: "a jail of others", args: []string{"--jail=other"}, why: `may not use jail "other"`},
	{name: "no jail", args: []string{"--jail=none"}, why: "--jail=none is not allowed"},
	{name: "a root that is not permitted", args: []string{"--jail-root=self"}, why: `--jail-root=self: jail "debian" allows only range`},
	{name: "a range that the user does not have", args: []string{"--jail-root=range"}, why: "/etc/subuid has no range of at least"},
	{name: "a source that is not permitted", args: []string{"--jail-mount=/etc:/mnt"}, why: "/etc may not be mounted in jail debian"},
	{name: "a source that is not there", args: []string{"--jail-mount=/data/nosuch:/mnt"}, why: "no such directory or file on this node"},
	{name: "a closed source", args: []string{"--jail-mount=/data/closed:/mnt"}, why: "permission denied for user 5001"},
	{name: "a source below a file", args: []string{"--jail-mount=/data/file/x:/mnt"}, why: "not a directory"},
	{name: "a name that is too long", args: []string{"--jail-mount=/data/" + strings.Repeat("x", 300) + ":/mnt"}, why: "file name too long"},
	{name: "a link that is not followed", args: []string{"--jail-mount=/proc/self/root/data:/mnt"}, why: "leads through a symlink that must not be followed"},
	{name: "a destination that is not there", args: []string{"--jail-mount=/data:/nosuch"}, why: "/nosuch does not exist in jail debian"},
	{name: "a destination that is the jail's", args: []string{"--jail-mount=/data:/proc"}, why: "cannot mount on /proc"},
	{name: "a file on a directory", args: []string{"--jail-mount=/data/file:/mnt"}, why: "must both be directories, or both be files"},
	{name: "mounts that hide each other", args: []string{"--jail-mount=/data:/mnt,/data:/mnt"}, why: "would hide the earlier mount"},
	{name: "a path with two dots", args: []string{"--jail-mount=/data/../etc:/mnt"}, why: "--jail-mount=/data/../etc:/mnt: source"},
	{name: "too many mounts", args: []string{"--jail-mount=" + manyMounts()}, why: "too many mounts: 100"},
	{name: "an unknown network", args: []string{"--jail-net=nosuch"}, why: "is unknown; known ones: r,"},
	{name: "a network of other nodes", args: []string{"--jail-net=far"}, why: "is not available on this node"},
	{name: "a file of the node", args: []string{"--output=/opt/open/out%t"}, why: "--output: the jail does not show /opt/open/out0"},
	{name: "a program of the node", args: []string{"--bcast=/var/tmp/copy"}, why: "--bcast: "},

	{name: "a network without its VFs", args: []string{"--jail-net=r"}, why: `policy "r" matches no network card of n1`, reason: "sandbox"},
	{name: "a mount of the site's without its source", node: `printf '[[jail.debian.mounts]]\ndestination = "/mnt"\nsource = "/sw"\noptions = ["bind"]\n' >>/etc/gojail/gojail.toml`,
		undo: "cp /var/tmp/gojail.toml /etc/gojail/gojail.toml", why: "/sw", reason: "sandbox"},
	{name: "a request and a mistake in gojail.toml", args: []string{"--jail=nosuch"}, node: "echo [ >>/etc/gojail/gojail.toml",
		undo: "cp /var/tmp/gojail.toml /etc/gojail/gojail.toml", why: "gojail.toml: line", reason: "configuration"},
}

// TestRefusedRequestsAreNoFaultsOfTheNode requires that each refused step is counted once, with its reason: an alert on the faults of a node
// (GojailLaunchFailures) is nothing that users can raise.
func TestRefusedRequestsAreNoFaultsOfTheNode(t *testing.T) {
	c := sharedCluster(t)
	config := strings.Replace(harness.DefaultConfig, "default    = \"none\"\nallow_none = true", "default = \"debian\"", 1)
	config = strings.Replace(config, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1)
	configure(t, c, strings.Replace(config, "[jail.other]\n", "[jail.other]\nusers = [\"bob\"]\n", 1))
	allowRange(t, c)
	writeOnNode(t, c, "/data/file", "")
	network := c.Path("/etc/gojail/network.toml")
	policies := ""
	for i, rail := range []struct{ name, nodes string }{{"r", "n[1-2]"}, {"far", "n[8-9]"}} {
		policies += fmt.Sprintf("[[policy]]\nname = %[1]q\nnodes = %[2]q\nnic = { pf = [\"nosuch0\"] }\nvfs = 1\n[[pool]]\nname = %[1]q\nsubnet = \"10.%[3]d.0.0/24\"\nnodes = %[2]q\nper_node = 1\n"+
			"[[rail]]\nname = %[1]q\npolicy = %[1]q\npools = [%[1]q]\n", rail.name, rail.nodes, i+1)
	}
	require.NoError(t, os.WriteFile(network, []byte(policies), 0o644))
	r := c.Root("sh", "-ec", "mkdir -m 700 /data/closed; mkdir -m 1777 /opt/open; cp /etc/gojail/gojail.toml /var/tmp; : >/etc/subuid; : >/etc/subgid")
	require.Zero(t, r.Code, r)
	t.Cleanup(func() {
		c.Root("sh", "-c", "rm -rf /data/closed /etc/gojail/network.toml /var/tmp/gojail.toml /opt/open")
	})
	for _, s := range counted {
		t.Run(s.name, func(t *testing.T) {
			before := readFailures(t, c)
			if s.node != "" {
				r := c.Root("sh", "-ec", s.node)
				require.Zero(t, r.Code, r)
			}
			r := c.Run(harness.Alice, append(append([]string{"timeout", "20", "srun", "-Q", "-wn1"}, s.args...), "cat", "/etc/gojail-jail")...)
			if s.undo != "" {
				undone := c.Root("sh", "-ec", s.undo)
				require.Zero(t, undone.Code, undone)
			}
			assert.NotZero(t, r.Code, r)
			assert.NotContains(t, r.Stdout, "debian")
			if s.name != "a file of the node" { // said in that file
				assert.Contains(t, findGojailLine(r.Stderr), s.why, r)
			}
			want := map[string]float64{"request": 1}
			if s.reason != "" {
				want = map[string]float64{s.reason: 1}
			}
			assert.Equal(t, want, subtractCounts(readFailures(t, c), before))
		})
	}
}

// readFailures returns the failed steps of n1 by reason, for all jails.
func readFailures(t *testing.T, c *harness.Cluster) map[string]float64 {
	t.Helper()
	text, counts := writeMetrics(t, c, "n1"), map[string]float64{}
	for _, reason := range []string{"configuration", "request", "storage", "sandbox", "step", "task"} {
		for _, jail := range []string{"", "debian", "other"} {
			counts[reason] += readSeries(t, text, `gojail_steps_failed_total{jail="`+jail+`",node="n1",reason="`+reason+`"}`)
		}
	}
	return counts
}

// subtractCounts returns what has been counted since.
func subtractCounts(counts, before map[string]float64) map[string]float64 {
	since := map[string]float64{}
	for reason, n := range counts {
		if n != before[reason] {
			since[reason] = n - before[reason]
		}
	}
	return since
}
