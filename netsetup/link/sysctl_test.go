// SPDX-License-Identifier: Apache-2.0

package link

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSysctlsOfTheNamespace(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	addVeth(t, n, "net1", far, "p")
	want := []Sysctl{
		{"ipv4/conf/net1/rp_filter", "1"}, {"ipv4/conf/net1/arp_ignore", "1"}, {"ipv4/conf/net1/arp_announce", "2"},
		{"ipv4/conf/net1/arp_notify", "1"}, {"ipv6/conf/net1/ndisc_notify", "1"}, {"ipv6/conf/net1/accept_ra", "0"},
		{"ipv6/conf/net1/disable_ipv6", "1"}, {"ipv6/conf/net1/disable_ipv6", "0"},
	}
	machine, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/arp_ignore")
	require.NoError(t, err)
	previous, err := n.SetSysctls("/proc", want)
	require.NoError(t, err)
	for _, s := range want[:6] {
		value, err := n.ReadSysctl("/proc", s.Name)
		require.NoError(t, err)
		assert.Equal(t, s.Value, value, s.Name)
	}
	assert.NoFileExists(t, "/proc/sys/net/ipv4/conf/net1/rp_filter", "the test's own namespace")
	again, err := n.SetSysctls("/proc", want[:6])
	require.NoError(t, err)
	assert.Empty(t, again)

	_, err = n.SetSysctls("/proc", previous)
	require.NoError(t, err)
	value, err := n.ReadSysctl("/proc", "ipv4/conf/net1/arp_announce")
	require.NoError(t, err)
	assert.Equal(t, "0", value)
	now, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/arp_ignore")
	require.NoError(t, err)
	assert.Equal(t, machine, now)
}

func TestSysctlsThatCannotBeSet(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	addVeth(t, n, "net1", far, "p")
	previous, err := n.SetSysctls("/proc", []Sysctl{{"ipv4/conf/net1/arp_ignore", "1"}, {"ipv4/conf/net9/arp_ignore", "1"}, {"ipv4/conf/net1/arp_notify", "1"}})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "set net/ipv4/conf/net9/arp_ignore=1: ")
	assert.Equal(t, []Sysctl{{"ipv4/conf/net1/arp_ignore", "0"}}, previous, "what was changed, to be undone")
	for _, name := range []string{"../kernel/hostname", "/etc/passwd", ""} {
		_, err = n.SetSysctls("/proc", []Sysctl{{name, "x"}})
		assert.Error(t, err, name)
	}
	_, err = n.SetSysctls("/proc", []Sysctl{{"ipv4/conf/net1/arp_ignore", "many"}})
	assert.Error(t, err)
}
