// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
)

func TestNodeConf(t *testing.T) {
	n, cfg := newNode(t, 4, "nic:rail0", "nic:rail1")
	c, err := DescribeNode(cfg, n.ReadInventory(), []string{"gojail", "jail-debian"})
	require.NoError(t, err)
	assert.Equal(t, "Gres=gpu:nvidia_h100_80gb_hbm3:4,nic:rail0:4,nic:rail1:4 Features=gojail,jail-debian", c.String())

	c, err = DescribeNode(&config.Config{}, fakesys.New(t).ReadInventory(), nil)
	require.NoError(t, err)
	assert.Empty(t, c.String())

	n, cfg = newNode(t, 3, "nic:a", "nic:b")
	_, err = DescribeNode(cfg, n.ReadInventory(), nil)
	assert.ErrorContains(t, err, "run `gojail vf apply` first")
}

// formatNode returns a part of what scontrol --oneliner show node prints of a node.
func formatNode(features, gres string) string {
	return "NodeName=n1 Arch=x86_64 CPUTot=2 AvailableFeatures=" + features + " ActiveFeatures=x Gres=" + gres + " NodeAddr=n1 State=IDLE \n"
}

func TestParseNode(t *testing.T) {
	c, err := ParseNode(formatNode("a,b", "gpu:h100:4(S:0-1),nic:rail0:2,lic,tmp:12G"), "n1")
	require.NoError(t, err)
	assert.Equal(t, NodeConf{[]typedCount{{"gpu:h100", 4}, {"nic:rail0", 2}, {"lic", 1}, {"tmp:12G", 1}}, []string{"a", "b"}}, c)
	c, err = ParseNode(formatNode("(null)", "(null)"), "n1")
	require.NoError(t, err)
	assert.Empty(t, c.String())
	for _, bad := range []string{"", "Node n1 not found", formatNode("a", "b") + formatNode("a", "b")} {
		_, err = ParseNode(bad, "n1")
		assert.ErrorContains(t, err, "did not show exactly the node n1", bad)
	}
	_, err = ParseNode(formatNode("a", "b"), "n2")
	assert.Error(t, err)
}

func TestCompare(t *testing.T) {
	own := NodeConf{[]typedCount{{"gpu:h100", 4}, {"nic:a", 2}, {"nic:b", 2}}, []string{"gojail", "jail-x"}}
	for _, c := range []struct {
		features, gres string
		want           []string
	}{
		{"gojail,jail-x", "gpu:h100:4(S:0-1),nic:a:2,nic:b:2", nil},
		{"site,jail-x,gojail", "nic:b:2,nic:a:2,gpu:h100:4,scratch:7", nil},
		{"gojail,jail-x", "gpu:4,nic:4", nil},
		{"gojail,jail-x", "gpu:8,nic:a:1,nic:b:2", []string{
			"has 4 of gpu, slurmctld expects 8 and makes the node INVAL",
			"has 2 of nic:a, slurmctld knows of 1; the others are not used",
		}},
		{"gojail", "gpu:a100:4,gpu:h100:4,nic:a:2,nic:b:2", []string{
			"has 0 of gpu:a100, slurmctld expects 4 and makes the node INVAL", "slurmctld does not know the feature jail-x",
		}},
	} {
		known, err := ParseNode(formatNode(c.features, c.gres), "n1")
		require.NoError(t, err)
		assert.Equal(t, c.want, own.Compare(known), c.gres)
	}
}
