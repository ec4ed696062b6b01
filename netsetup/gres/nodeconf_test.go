// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurm"
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

// showNode returns the record of a node that slurmctld has, with what an administrator has written of it.
func showNode(t *testing.T, features, gres string) *slurm.Record {
	t.Helper()
	scontrol := t.TempDir() + "/scontrol"
	text := "NodeName=n1 Arch=x86_64 \n   CPUTot=2 \n   AvailableFeatures=" + features + "\n   ActiveFeatures=x\n   Gres=" + gres +
		"\n   NodeAddr=n1 \n   State=IDLE \n   CfgTRES=cpu=2\n   Comment= Gres=gpu:9 NodeName=n2\n   Gres=gpu:9\n\n"
	require.NoError(t, os.WriteFile(scontrol, []byte("#!/bin/sh\ncat <<'END'\n"+text+"END\n"), 0o755))
	record, err := slurm.ShowNode(t.Context(), slurm.Program{Command: command.Command{Path: scontrol}}, "n1")
	require.NoError(t, err)
	return record
}

func TestReadNode(t *testing.T) {
	c := ReadNode(showNode(t, "a,b", "gpu:h100:4(S:0-1),gpu:(null):2(S:0,1),nic:rail0:2,lic,tmp:12G"))
	assert.Equal(t, []typedCount{{"gpu:h100", 4}, {"gpu", 2}, {"nic:rail0", 2}, {"lic", 1}, {"tmp", 0}}, c.counts)
	assert.Equal(t, []string{"a", "b"}, c.features)
	assert.Empty(t, ReadNode(showNode(t, "(null)", "(null)")).String())
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
		assert.Equal(t, c.want, own.Compare(ReadNode(showNode(t, c.features, c.gres))), c.gres)
	}
}
