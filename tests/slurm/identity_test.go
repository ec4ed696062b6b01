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

// identities are commands that print what tells programs on which machine they run.
var identities = map[string]string{
	"machine ID":           "cat /etc/machine-id",
	"machine ID of D-Bus":  "cat /var/lib/dbus/machine-id",
	"host ID":              "hostid",
	"name":                 "uname -n",
	"file of the name":     "cat /etc/hostname",
	"boot":                 "cat /proc/sys/kernel/random/boot_id",
	"clock of start times": "readlink /proc/self/ns/time",
	"addresses of cards":   "cat /sys/class/net/*/address",
	"network":              "readlink /proc/self/ns/net",
	"users":                "id -un; getent passwd bob",
	"address of the name":  "getent hosts head",
}

// ownIdentity makes a jail "own" whose tree comes from another machine, and has that machine's files.
func ownIdentity(t *testing.T, c *harness.Cluster, keys string) {
	t.Helper()
	r := c.Root("sh", "-c", `{ [ -s /etc/machine-id ] || tr -d - </proc/sys/kernel/random/boot_id >/etc/machine-id; } && cd /srv/jails && rm -rf own && cp -al debian own && rm -rf own/etc own/var && cp -a debian/etc debian/var own &&
mkdir -p own/var/lib/dbus /var/lib/dbus && ln -sf /etc/machine-id /var/lib/dbus/machine-id && printf efgh >/etc/hostid && cd own && rm -f etc/machine-id && echo `+builderID+` | tee etc/machine-id >var/lib/dbus/machine-id &&
printf abcd >etc/hostid && echo builder >etc/hostname`)
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { c.Root("rm", "-rf", "/srv/jails/own", "/etc/hostid", "/var/lib/dbus") })
	configure(t, c, harness.DefaultConfig+"[jail.own]\nroot = \"/srv/jails/own\"\nhost = [\"/etc/hosts\", \"/etc/passwd\", \"/etc/group\"]\n"+keys)
	r = c.Gojail("n1", "init", "own")
	require.Zero(t, r.Code, r)
}

// TestIdentityIsTheNodes: programs find the machine that they run on, not the one that the jail's tree was made on, which
// would be the same on all nodes.
func TestIdentityIsTheNodes(t *testing.T) {
	c := sharedCluster(t)
	ownIdentity(t, c, "jail_root = [\"self\"]\n")
	for name, command := range identities {
		ask := func(options ...string) harness.Result {
			return c.Run(harness.Alice, append(append([]string{"srun", "-wn1"}, options...), "sh", "-c", command)...)
		}
		node := ask("--jail=none")
		require.Zero(t, node.Code, "%s: %s", name, node)
		assert.NotEmpty(t, node.Stdout, name)
		for range 2 { // in a sandbox that is made when it is asked for, and in one that was begun before
			assert.Equal(t, node.Stdout, ask("--jail=own").Stdout, name)
		}
		if name != "users" {
			assert.Equal(t, node.Stdout, ask("--jail=own", "--jail-root=self").Stdout, name)
		}
	}
	r := c.Run("root", "srun", "-wn1", "--jail=own", "sh", "-c", "echo x >/etc/machine-id")
	assert.Contains(t, r.Stderr, "Read-only file system", "it is the node's: %s", r)
}

// builderID is the machine ID of the machine that the tree of "own" comes from.
const builderID = "0123456789abcdef0123456789abcdef"

// trees are states of a jail's tree, and what a job reads as machine ID, where "node" is the node's.
var trees = map[string]struct{ change, want string }{
	"own":             {":", "node"},
	"empty":           {": >etc/machine-id", "node"},
	"missing":         {"rm etc/machine-id", "none"},
	"link":            {"mv etc/machine-id etc/id && ln -s id etc/machine-id", builderID},
	"dangling":        {"ln -sf /nowhere etc/machine-id", "none"},
	"link out of it":  {"ln -sf ../../../../../../etc/hosts etc/machine-id", "127.0.0.1 localhost"},
	"directory":       {"rm etc/machine-id && mkdir etc/machine-id", "none"},
	"of dbus, linked": {"rm var/lib/dbus/machine-id && ln -s /etc/machine-id var/lib/dbus/machine-id", "node"},
}

// TestMachineIDInEachTree: a job starts whatever the jail has.
func TestMachineIDInEachTree(t *testing.T) {
	c := sharedCluster(t)
	node := strings.TrimSpace(readFile(c, "/etc/machine-id"))
	require.Len(t, node, 32)
	ownIdentity(t, c, "")
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			r := c.Root("sh", "-c", "cd /srv/jails/own && rm -rf etc/machine-id etc/id && echo "+builderID+" >etc/machine-id && "+tree.change)
			require.Zero(t, r.Code, r)
			require.Zero(t, c.Gojail("n1", "reload", "own").Code)
			want := tree.want
			if want == "node" {
				want = node
			}
			r = c.Run(harness.Alice, "srun", "-wn1", "--jail=own", "sh", "-c", "head -n1 /etc/machine-id 2>/dev/null || echo none")
			requireOutput(t, want, r)
		})
	}
}

// TestInitMakesAMachineID for the node's to be mounted on, where it may; a jail without one stays usable.
func TestInitMakesAMachineID(t *testing.T) {
	c := sharedCluster(t)
	ownIdentity(t, c, "")
	read := func() harness.Result {
		return c.Run(harness.Alice, "srun", "-wn1", "--jail=own", "sh", "-c", "cat /etc/machine-id || :")
	}
	require.NoError(t, os.Remove(c.Path("/srv/jails/own/etc/machine-id")))
	require.Zero(t, c.Gojail("n1", "reload", "own").Code)
	requireOutput(t, "", read())
	require.Zero(t, c.Root("sh", "-c", "mount --bind /srv/jails/own /srv/jails/own && mount -o remount,bind,ro /srv/jails/own").Code)
	r := c.Gojail("n1", "init", "own")
	c.Root("umount", "/srv/jails/own")
	requireOutput(t, "nothing to create: jail own has all its mount targets", r)
	requireOutput(t, "created file /etc/machine-id", c.Gojail("n1", "init", "own"))
	require.Zero(t, c.Gojail("n1", "reload", "own").Code)
	requireOutput(t, strings.TrimSpace(readFile(c, "/etc/machine-id")), read())
}

// TestIdentityThatIsConfigured: what gojail.toml mounts there stays, and a jail may have its own.
func TestIdentityThatIsConfigured(t *testing.T) {
	c := sharedCluster(t)
	mount := "[[jail.own.mounts]]\ndestination = \"%s\"\nsource = \"%s\"\n"
	writeOnNode(t, c, "/data/id", "ffff\n")
	ownIdentity(t, c, fmt.Sprintf(mount, "/etc/machine-id", "/data/id"))
	read := []string{"srun", "-wn1", "--jail=own", "cat", "/etc/machine-id", "/etc/hostname"}
	requireOutput(t, "ffff\n"+strings.TrimSpace(readFile(c, "/etc/hostname")), c.Run(harness.Alice, read...))
	ownIdentity(t, c, "identity = false\n")
	requireOutput(t, builderID+"\nbuilder", c.Run(harness.Alice, read...))
}

// TestIdentityOfARange: root of a range has the jail's own files, and packages may replace them.
func TestIdentityOfARange(t *testing.T) {
	c := sharedCluster(t)
	ownIdentity(t, c, "jail_root = [\"range\"]\n")
	allowRange(t, c)
	step := func(script string, options ...string) harness.Result {
		return c.Run(harness.Alice, append(append([]string{"srun", "-wn1", "--jail=own"}, options...), "sh", "-c", script)...)
	}
	node := strings.TrimSpace(readFile(c, "/etc/machine-id"))
	requireOutput(t, node, step("cat /etc/machine-id"))
	for range 2 {
		requireOutput(t, "new", step("cd /etc && echo new >new && mv new hostname && cat hostname", "--jail-root=range"))
	}
	requireOutput(t, node, step("cat /etc/machine-id"))
}
