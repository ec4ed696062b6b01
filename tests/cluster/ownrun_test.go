// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/cluster"
)

// TestRunIsEachSandboxsOwn: what root leaves in /run, in a job or with `gojail run`, is in no later sandbox,
// and a job can fill no more than a small tmpfs there.
func TestRunIsEachSandboxsOwn(t *testing.T) {
	c := shared(t)
	leave := []string{"sh", "-c", "echo x >/run/left && ls -d /run/left"}
	prints(t, "/run/left", c.Run("root", append([]string{"srun", "-wn1", "--jail=debian"}, leave...)...))
	prints(t, "/run/left", c.Gojail("n1", append([]string{"run", "debian", "--"}, leave...)...))
	const look = `ls /run; stat -c '%a %u:%g' /run /run/lock; touch /run/lock/mine; touch /run/mine 2>/dev/null && echo written
df --output=size -k /run | tail -n1 | tr -d ' '; /run/gojail/bin/gojail --help >/dev/null && echo command; ls /run/munge`
	for range 2 { // in a sandbox that is made when it is asked for, and in one that was begun before
		prints(t, "gojail\nlock\nmunge\n755 0:0\n1777 0:0\n65536\ncommand\nmunge.socket.2", c.Run(cluster.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", look))
	}
}

// TestRunOfARange: /run is that of root in the jail, who may make there what packages want.
func TestRunOfARange(t *testing.T) {
	c := shared(t)
	configure(t, c, strings.Replace(cluster.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	ranged(t, c)
	r := c.Run(cluster.Alice, "srun", "-wn1", "--jail=debian", "--jail-root=range", "sh", "-c",
		"mkdir /run/sshd /run/munge/x && touch /run/adduser /run/lock/x && chown 7:8 /run/adduser && stat -c '%a %u:%g' /run /run/lock /run/munge /run/sshd /run/adduser")
	prints(t, "755 0:0\n1777 0:0\n755 0:0\n755 0:0\n644 7:8", r)
}

// TestManyMountsBelowARecursiveOne: hundreds of homes that an automounter has mounted come along with /home.
func TestManyMountsBelowARecursiveOne(t *testing.T) {
	c := shared(t)
	const homes = 400
	long := strings.Repeat("long/", 110) + "home"
	r := c.Root("sh", "-c", fmt.Sprintf(`mkdir -p /data/homes && mount -t tmpfs homes /data/homes && cd /data/homes &&
for i in $(seq %d); do mkdir h$i && mount -t tmpfs -o size=4k home h$i || exit 1; done
mkdir -p %s && mount -t tmpfs -o size=4k home %[2]s && echo here >h%[1]d/file`, homes, long))
	t.Cleanup(func() { c.Root("sh", "-c", "umount -R /data/homes; rmdir /data/homes") })
	require.Zero(t, r.Code, r)
	configure(t, c, strings.Replace(cluster.DefaultConfig, "[jail.other]\n", "[[jail.debian.mounts]]\ndestination = \"/mnt\"\nsource = \"/data/homes\"\noptions = [\"rbind\"]\n[jail.other]\n", 1))
	for range 2 {
		prints(t, "here", c.Run(cluster.Alice, "srun", "-wn1", "--jail=debian", "cat", filepath.Join("/mnt", fmt.Sprintf("h%d", homes), "file")))
	}
}
