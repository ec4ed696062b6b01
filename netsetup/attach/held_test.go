// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// TestHeldVFsNameWhatIsAway checks that ListHeld has the names of an interface and an RDMA device whenever these are
// not on the node, from before they leave until after they are back.
func TestHeldVFsNameWhatIsAway(t *testing.T) {
	for name, newOne := range map[string]func() *node{
		"Ethernet, exclusive": func() *node {
			n := newNode(t, setup{policy: "rdma = \"exclusive\""})
			n.withRDMA(false)
			return n
		},
		"Ethernet, shared": func() *node {
			n := newNode(t, setup{policy: "rdma = \"shared\""})
			n.withRDMA(false)
			return n
		},
		"InfiniBand": func() *node { n, _, _ := newInfiniBandNode(t, false); return n },
	} {
		n := newOne()
		vf := newCard(0).VFAddress(0)
		l, err := n.site.hardware.find(n.host, vf)
		require.NoError(t, err, name)
		rdma, err := n.site.hardware.findRDMA(n.host, vf)
		require.NoError(t, err, name)
		away := map[string]int{}
		n.site.stepHook = func(_, step string, _ bool) error {
			held, err := ListHeld(n.site.State)
			require.NoError(t, err)
			if _, err := n.site.hardware.find(n.host, vf); errors.Is(err, link.ErrNotFound) {
				away["interface"]++
				named := slices.ContainsFunc(held, func(h HeldVF) bool { return h.Interface == l.Name })
				assert.True(t, named, "%s: %s", name, step)
			}
			if _, err := n.site.hardware.findRDMA(n.host, vf); errors.Is(err, link.ErrNotFound) {
				away["RDMA device"]++
				named := slices.ContainsFunc(held, func(h HeldVF) bool { return slices.Equal(h.RDMA, rdma) })
				assert.True(t, named, "%s: %s", name, step)
			}
			return nil
		}
		_, err = n.attach(newJobSpace(t))
		require.NoError(t, err, name)
		n.release()
		assert.NotZero(t, away["interface"], name)
		assert.Equal(t, name != "Ethernet, shared", away["RDMA device"] > 0, name)
		held, err := ListHeld(n.site.State)
		require.NoError(t, err)
		assert.Empty(t, held)
	}
}
