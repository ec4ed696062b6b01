// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVFsOnTwoRails(t *testing.T) {
	for _, c := range findCards(t) {
		for i, v := range c.makeVFs(t, 4) {
			device := filepath.Join("/sys/bus/pci/devices", v.pci)
			driver, err := os.Readlink(device + "/driver")
			require.NoError(t, err)
			assert.Equal(t, "igbvf", filepath.Base(driver))
			pf, err := filepath.EvalSymlinks(device + "/physfn")
			require.NoError(t, err)
			assert.Equal(t, filepath.Base(c.device), filepath.Base(pf))
			assert.Equal(t, v.mac, requireRun(t, "cat "+device+"/net/*/address"))
			assert.Contains(t, requireRun(t, "ip link show "+c.name), fmt.Sprintf("vf %d     link/ether %s", i, v.mac))
		}
	}
}

func TestVFsAreGoneWithTheirNumber(t *testing.T) {
	c := findCards(t)[0]
	t.Run("made", func(t *testing.T) { c.makeVFs(t, 2) })
	assert.NoFileExists(t, c.device+"/virtfn0")
}

func TestTrafficOfVFs(t *testing.T) {
	rails := findCards(t)
	first, second := rails[0].makeVFs(t, 3), rails[1].makeVFs(t, 1)
	for i, v := range []vf{first[0], first[1], second[0]} {
		name := fmt.Sprintf("n%d", i)
		makeNamespace(t, name)
		v.moveInto(t, name, fmt.Sprintf("192.0.2.%d", i+1))
	}
	assert.True(t, canPing("n0", "192.0.2.2"), "a VF of the same rail")
	assert.False(t, canPing("n0", "192.0.2.3"), "a VF of the other rail")

	requireRun(t, "ip link set "+rails[0].name+" vf 0 vlan 100")
	assert.False(t, canPing("n0", "192.0.2.2"), "a VF outside of the VLAN")
	requireRun(t, "ip link set "+rails[0].name+" vf 1 vlan 100")
	assert.True(t, canPing("n0", "192.0.2.2"), "a VF of the same VLAN")
	requireRun(t, "ip link set "+rails[0].name+" vf 1 vlan 200")
	assert.False(t, canPing("n0", "192.0.2.2"), "a VF of another VLAN")
}

// TestVFComesHome: the kernel brings a VF back when its namespace ends, down,
// without addresses, with the name and the MAC that it has by then.
func TestVFComesHome(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	makeNamespace(t, "job")
	v.moveInto(t, "job", "192.0.2.1")
	assert.Empty(t, v.interfaceName(), "sysfs shows only what is in its own namespace")
	requireRun(t, "ip netns del job")
	v.waitForReturn(t)
	assert.Equal(t, "vf0", v.interfaceName())
	state := requireRun(t, "ip addr show vf0")
	assert.Contains(t, state, v.mac)
	assert.Contains(t, state, "state DOWN")
	assert.NotContains(t, state, "192.0.2.1")
}
