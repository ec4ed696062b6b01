// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/gres"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/tests/harness"
)

// repository is where the work tree lies, seen from here.
const repository = "../../.."

// vfCommand is `gojail` as it was built, on a node with a rail on each card.
type vfCommand struct {
	t      *testing.T
	dir    string
	before string // words before the command: "setpriv ..."
}

func newVFCommand(t *testing.T, cards []card) *vfCommand {
	t.Helper()
	c := &vfCommand{t: t, dir: t.TempDir()}
	c.writeConf(cards, "trust = true")
	t.Cleanup(func() {
		for _, card := range cards {
			requireWrite(t, card.device+"/sriov_numvfs", "0")
			requireRun(t, "ip link set "+card.name+" down mtu 1500")
		}
		os.RemoveAll("/dev/" + gres.Directory)
	})
	return c
}

// writeConf writes network.toml; key is one more key of both policies.
func (c *vfCommand) writeConf(cards []card, key string) {
	text := ""
	for i, card := range cards {
		text += fmt.Sprintf(`
[[policy]]
name = "p%[1]d"
nic = { pf = ["%[2]s"] }
vfs = 2
%[3]s
[[pool]]
name = "p%[1]d"
subnet = "10.%[1]d.0.0/24"
nodes = "n1"
per_node = 2
[[rail]]
name = "rail%[1]d"
policy = "p%[1]d"
pools = ["p%[1]d"]
gres = "nic:rail%[1]d"
`, i, card.name, key)
	}
	require.NoError(c.t, os.WriteFile(c.dir+"/network.toml", []byte(text), 0o644))
}

func (c *vfCommand) runGojail(words string) (string, error) {
	binary, err := filepath.Abs(filepath.Join(repository, "build/releases", harness.Release(), "sbin/gojail"))
	require.NoError(c.t, err)
	return tryRun(fmt.Sprintf("%s %s --network=%[3]s/network.toml --state=%[3]s/state/n1 --node=n1 %s", c.before, binary, c.dir, words))
}

// listRows returns the rows of gojail vf ls.
func (c *vfCommand) listRows() []inventory.Row {
	out, err := c.runGojail("vf ls --json")
	require.NoError(c.t, err, out)
	var list struct{ VFs []inventory.Row }
	require.NoError(c.t, json.Unmarshal([]byte(out), &list), out)
	return list.VFs
}

// TestVFCommand makes VFs with no more rights than gojail-vf.service has, lists
// them, and refuses to take one away that is elsewhere.
func TestVFCommand(t *testing.T) {
	all := findCards(t)
	c := newVFCommand(t, all)
	unit, err := os.ReadFile(repository + "/packaging/systemd/gojail-vf.service")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(unit), "\nCapabilityBoundingSet=")
	require.True(t, found)
	capabilities, _, _ := strings.Cut(rest, "\n")
	c.before = "setpriv --no-new-privs --bounding-set -all," + strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(capabilities, "CAP_", "+")), " ", ",")

	out, err := c.runGojail("vf apply --dry-run")
	require.NoError(t, err, out)
	assert.Contains(t, out, "VFs")
	assert.Equal(t, -1, c.listRows()[0].VF, "nothing was done")
	out, err = c.runGojail("vf apply")
	require.NoError(t, err, out)
	t.Log(out)
	rows := c.listRows()
	require.Len(t, rows, 4)
	for i, row := range rows {
		assert.Equal(t, fmt.Sprintf("rail%d", i/2), row.Rail)
		assert.Equal(t, inventory.Free, row.State)
		assert.NotEmpty(t, row.Netdev)
		_, err := os.Stat(fmt.Sprintf("/dev/gojail/nic_%d", i))
		assert.NoError(t, err)
	}
	out, err = c.runGojail("vf apply")
	require.NoError(t, err, out)
	assert.Equal(t, "nothing to do: the node matches network.toml", out)
	out, err = c.runGojail("gres")
	require.NoError(t, err, out)
	assert.Contains(t, out, "NodeName=n1 Gres=nic:rail0:2,nic:rail1:2")
	out, _ = c.runGojail("check --quiet")
	assert.NotContains(t, out, "FAIL  network", "%s", out)

	makeNamespace(t, "job")
	vf{pci: rows[1].PCI}.moveInto(t, "job", "192.0.2.1")
	assert.Equal(t, "elsewhere", c.listRows()[1].State)
	c.writeConf(all, "vfs_ = 3")
	out, err = c.runGojail("vf apply")
	require.Error(t, err)
	assert.Contains(t, out, "network.toml")
	c.writeConf(all, "trust = false")
	out, err = c.runGojail("vf apply")
	require.NoError(t, err, out)
	assert.NotContains(t, out, all[0].name+" ("+filepath.Base(all[0].device)+"): VF 1", "that one is left alone")
	assert.Contains(t, out, "VF 0 trust: on -> off")
	text, err := os.ReadFile(c.dir + "/network.toml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.dir+"/network.toml", []byte(strings.ReplaceAll(string(text), "vfs = 2", "vfs = 3")), 0o644))
	out, err = c.runGojail("vf apply")
	require.Error(t, err)
	assert.Contains(t, out, "VF 1 ("+rows[1].PCI+") is in another network namespace")
	assert.Len(t, c.listRows(), 4)
}
