// SPDX-License-Identifier: Apache-2.0

package job

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/netns"
)

// TestNICsOfSlurm: with Slurm's plugin of NICs a job has none but those that Slurm says; without it the variable is the user's.
func TestNICsOfSlurm(t *testing.T) {
	tree := fakesys.New(t)
	card := fakesys.Card{PCI: "0000:81:00.0", Under: "pci0000:80/0000:80:01.0", Name: "a", TotalVFs: 8, NumVFs: 2}
	tree.AddCard(card)
	cfg, err := config.Parse(`
[[policy]]
name = "p"
nic = { pf = ["a"] }
vfs = 2
[[pool]]
name = "r0"
subnet = "10.1.0.0/24"
nodes = "n1"
per_node = 2
[[rail]]
name = "rail0"
policy = "p"
pools = ["r0"]
gres = "nic:rail0"
`, "n1")
	require.NoError(t, err)
	n, site := Node{Name: "n1"}, attach.Site{Config: cfg, Roots: tree.Roots(), Host: -1, State: t.TempDir()}
	assert.EqualError(t, n.addGres(&attach.Job{}, Request{Job: "7", Jail: "debian", Label: "ai", GresTypes: "gpu,nic", NoNICs: true}, site),
		"the NICs of job 7 are known to its steps only, and none has begun on this node; start one here, and connect again: srun --jobid=7 --overlap -N1 -n1 -w n1 --jail=debian --jail-net=ai true")
	for _, row := range []struct {
		types, nics string
		want        []string
	}{
		{"gpu, nic", "mlx4_1", []string{card.VFAddress(1)}},
		{"gpu,nic", "", []string{}},
		{"gpu", "mlx4_1", nil},
		{"", "", nil},
	} {
		var job attach.Job
		require.NoError(t, n.addGres(&job, Request{GresTypes: row.types, NICs: row.nics, GPUs: "0"}, site))
		assert.Equal(t, row.want, job.Devices, "%+v", row)
	}
}

// TestGresOfAnAlternativeName checks that the devices of Slurm are known if a policy selects a card by an alternative name,
// which sysfs does not show.
func TestGresOfAnAlternativeName(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: network namespaces")
	}
	tree := fakesys.New(t)
	tree.AddCard(fakesys.Ens1f0)
	cfg, err := config.Parse(`[[policy]]
name = "p"
nodes = "n1"
nic.pf = ["the-card-of-rail0-by-its-place"]
whole = true
[[pool]]
name = "r0"
subnet = "10.1.0.0/24"
nodes = "n1"
per_node = 1
[[rail]]
name = "rail0"
policy = "p"
pools = ["r0"]
gres = "nic:rail0"
`, "n1")
	require.NoError(t, err)
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, netns.RunInside(fd, func() error {
		return exec.Command("sh", "-ec", "ip link add ens1f0 type veth peer name far; ip link property add dev ens1f0 altname the-card-of-rail0-by-its-place").Run()
	}))
	var job attach.Job
	site := attach.Site{Config: cfg, Roots: tree.Roots(), Host: fd, State: t.TempDir()}
	require.NoError(t, Node{Name: "n1"}.addGres(&job, Request{GresTypes: "nic", NICs: "mlx4_0"}, site))
	assert.Equal(t, []string{fakesys.Ens1f0.PCI}, job.Devices)
}
