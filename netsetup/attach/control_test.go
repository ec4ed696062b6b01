// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestControlAddressOfTheNodeItself(t *testing.T) {
	n := newNode(t, setup{cards: 1, control: true})
	job := jobSpace(t)
	sh(t, n.host, "ip addr add 192.0.2.100/32 dev lo")
	before := n.snapshot()
	_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
	assert.ErrorContains(t, err, `control interface: pool "control" gives 192.0.2.100, which lo of this node has; exclude it in network.toml`)
	require.NoError(t, Release(t.Context(), n.site, "4711"))
	same(t, before, n.snapshot())
}
