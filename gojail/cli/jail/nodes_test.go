// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/slurm"
)

func TestNodesOfSinfo(t *testing.T) {
	var nodes nodeList
	for _, row := range [][]string{{"n1", "idle"}, {"n1", "idle"}, {"n2", "idle~"}, {"n3", "down*"}, {"n4", "IDLE*"},
		{"n5", "drained"}, {"n6", "powered_down"}} {
		require.NoError(t, nodes.add(row))
	}
	assert.Equal(t, []store.Node{{Name: "n1"}, {Name: "n2", Off: true}, {Name: "n3", Down: true},
		{Name: "n4", Down: true}, {Name: "n5"}, {Name: "n6", Off: true}}, nodes.list)
	for _, row := range [][]string{{"", "idle"}, {"n7", ""}, {"n7", "?"}, {"n7", "idle\nsinfo: ~"}, {"n7", "idle *"}, {"n7 n8", "idle~"}} {
		assert.Error(t, nodes.add(row), "%q", row)
	}
	assert.NoError(t, nodes.add([]string{"n8", "mixed-"}))
	assert.NoError(t, nodes.judge(slurm.Odd{}))
	assert.Error(t, nodes.judge(slurm.Odd{Count: 1}))
	assert.Error(t, new(nodeList).judge(slurm.Odd{}), "no node at all")
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536 << 20: "1.5 GiB", 1 << 62: "4096.0 PiB"} {
		assert.Equal(t, want, formatSize(n))
	}
}
