// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both are run on the controllers. Afterwards slurm.conf has n2 alone, and slurmctld sends it, with plugstack.conf, to nodes that have none.
const (
	takeNodeOut = "cp -a /etc/slurm/slurm.conf /etc/slurm/plugstack.conf /root/ && " +
		"sed -i 's/^NodeName=n.1-2./NodeName=n2/' /etc/slurm/slurm.conf && printf 'MaxNodeCount=4\\nSlurmctldParameters=enable_configless\\n' >>/etc/slurm/slurm.conf && " +
		"sed -i 's/^required/#required/' /etc/slurm/plugstack.conf.d/gojail.conf && echo 'required /usr/lib/gojail/spank_gojail.so' >>/etc/slurm/plugstack.conf && " +
		"systemctl restart slurmctld"
	putNodeBack = "cp -a /root/slurm.conf /root/plugstack.conf /etc/slurm/ && sed -i 's/^#required/required/' /etc/slurm/plugstack.conf.d/gojail.conf && systemctl restart slurmctld"
)

// makeStatic gives the node the files of Slurm back that TestDynamicNode takes, and slurm.conf the node.
func (s *site) makeStatic(t *testing.T) {
	t.Helper()
	const files = "systemctl disable -q --now slurmd; rm -rf /etc/systemd/system/slurmd.service.d/gojail-dynamic.conf /run/slurm/conf /var/lib/slurm/slurmd/conf-cache; " +
		"systemctl daemon-reload; [ ! -d /root/slurm ] || { rm -rf /etc/slurm && mv /root/slurm /etc/ && mv /root/default /etc/default/slurmd; }"
	assert.NoError(t, onAll([]*guest{s.n1}, files))
	assert.NoError(t, onAll(s.controllers(), putNodeBack))
	assert.NoError(t, onAll([]*guest{s.n2}, "systemctl restart slurmd"))
	assert.NoError(t, onAll([]*guest{s.n1}, "systemctl enable -q --now slurmd"))
	assert.NoError(t, s.waitForCluster())
}

// TestDynamicNode: as docs/operations.md says, a node that slurm.conf does not name and that has no file of Slurm registers with its
// VFs and jails under a real systemd, again after a reboot, and is removed.
func TestDynamicNode(t *testing.T) {
	s := sharedSite(t)
	before := s.inventory()
	steps := readProcedure(t, "operations.md", "Nodes that register themselves") // four to add a node, four to remove it
	require.Len(t, steps, 8)
	n1 := []*guest{s.n1}
	t.Run("add and remove", func(t *testing.T) {
		t.Cleanup(func() { s.makeStatic(t) })
		requireAll(t, n1, "systemctl disable -q --now slurmd; cp -a /etc/default/slurmd /root/default && mv /etc/slurm /root/")
		requireAll(t, s.controllers(), takeNodeOut)
		requireAll(t, []*guest{s.n2}, "systemctl restart slurmd")

		steps.requireSays(t, 1, "Install gojail")
		steps.requireSays(t, 2, "/etc/default/slurmd")
		options := steps.readBlocks(t, 2)[0]
		assert.Equal(t, "SLURMD_OPTIONS=\"--conf-server HOST:6817\"\n", options)
		requireAll(t, n1, "cat >>/etc/default/slurmd <<'EOF'\n"+options+"NODE_CONF=\"Weight=10\"\nEOF\nsed -i s/HOST:6817/head:6817/ /etc/default/slurmd")
		steps.requireSays(t, 3, "Copy the drop-in `slurmd.conf` as above, and the second one")
		requireAll(t, n1, "cd "+docDir+"/systemd\n"+steps.readBlocks(t, 3)[0])
		s.requireIdle(t)
		requireAll(t, n1, initJail) // install.md, Configure the node 2: Slurm's configuration is at another place now
		s.requireWholeNode(t, s.n1)
		r := s.n1.run("", "gojail check")
		assert.NotContains(t, r.Stdout, "FAIL", r)
		steps.requireSays(t, 4, "`gojail node-conf --check` prints nothing")
		assert.Empty(t, s.n1.run("", "gojail node-conf --check").Stdout)
		r = s.head.run("", "scontrol show node n1")
		assert.Regexp(t, `State=\S*DYNAMIC_NORM`, r.Stdout, r)
		assert.Contains(t, r.Stdout, "Gres=nic:rail0:2", r)
		assert.Contains(t, r.Stdout, "Weight=10 ", r)
		s.n1.reboot(t)
		s.requireWholeNode(t, s.n1)
		s.submitJob(t, "n1").requireGoesOn(t)

		steps.requireSays(t, 5, "`scontrol update NodeName=NODE State=DRAIN Reason=removed`")
		requireAll(t, s.onlyHead(), "scontrol update NodeName=n1 State=DRAIN Reason=removed")
		require.True(t, poll(2*time.Minute, func() bool { return s.listNodes() == "n1 drained n2 idle\n" }), "%s", s.listNodes())
		steps.requireSays(t, 6, "`systemctl disable --now slurmd`")
		requireAll(t, n1, "systemctl disable -q --now slurmd")
		steps.requireSays(t, 7, "`scontrol delete NodeName=NODE`")
		requireAll(t, s.onlyHead(), "scontrol delete NodeName=n1")
		assert.Equal(t, "n2 idle\n", s.listNodes())
		steps.requireSays(t, 8, "Where a pool of network.toml has a `directory`")
	})
	s.assertNothingLeft(t, before)
}
