// SPDX-License-Identifier: Apache-2.0

package slurmconf

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindNode(t *testing.T) {
	lines := []string{"ClusterName=c", "NodeName=n0 CPUs=1", "NodeName=DEFAULT Gres=gpu:4 CPUs=2", "nodename=n[1-2] cpus=8 State=UNKNOWN",
		"NodeName=default Gres=gpu:2", "NodeName=n3",
		`NodeName = "n5,n[6-7]," Gres= "gpu:4(S:0-1)" Reason="no Gres=gpu:9" Weight=1=2`}
	for node, want := range map[string]map[string]string{
		"n0": {"nodename": "n0", "cpus": "1"},
		"n2": {"nodename": "n[1-2]", "gres": "gpu:4", "cpus": "8", "state": "UNKNOWN"},
		"n3": {"nodename": "n3", "gres": "gpu:2", "cpus": "2"},
		"n4": nil,
		"n7": {"nodename": "n5,n[6-7],", "gres": "gpu:4(S:0-1)", "cpus": "2", "reason": "no Gres=gpu:9", "weight": "1=2"},
	} {
		assert.Equal(t, want, FindNode(lines, node), node)
	}
}

func TestReadKeys(t *testing.T) {
	path := t.TempDir() + "/cgroup.conf"
	require.NoError(t, os.WriteFile(path, []byte("A=1\nConstrain = \"yes\" # all\nnothing\na=2=3\n"), 0o644))
	assert.Equal(t, map[string]string{"a": "2=3", "constrain": "yes"}, ReadKeys(path))
	assert.Empty(t, ReadKeys(path+".none"))
}
