// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
)

func gpusOf(t *testing.T, slurm, gres string) [][]string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm.conf"), []byte(slurm), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gres.conf"), []byte(gres), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "more.conf"), []byte("Name=gpu File=/dev/nvidia9"), 0o644))
	return readGPUs(&config.Config{Node: "n2", Slurm: config.Slurm{Conf: dir}})
}

// TestGPUsByIndex: gres.conf(5). What names other nodes, other resources or no device is not counted.
func TestGPUsByIndex(t *testing.T) {
	for gres, want := range map[string]string{
		"Name=gpu File=/dev/nvidia[0-3]":                                         "/dev/nvidia0 /dev/nvidia1 /dev/nvidia2 /dev/nvidia3",
		"name=GPU Type=h100 file=/dev/nvidia[2,0] # two":                         "/dev/nvidia2 /dev/nvidia0",
		"NodeName=n1 Name=gpu File=/dev/a\nNodeName=n[2-3] Name=gpu File=/dev/b": "/dev/b",
		"Name=nic File=/dev/mlx5_0\nName=gpu File=/dev/nvidia1":                  "/dev/nvidia1",
		"Name=gpu MultipleFiles=/dev/nvidia0,/dev/dri/card0\nInclude more.conf":  "/dev/nvidia0+/dev/dri/card0 /dev/nvidia9",
		"Name=gpu File=/etc/shadow,/dev/../etc/shadow,/dev/nvidia0":              "/dev/nvidia0",
		"Name=gpu File=/dev/nvidia[0-":                                           "",
	} {
		var have []string
		for _, files := range gpusOf(t, "GresTypes=nic, gpu\n", gres) {
			have = append(have, strings.Join(files, "+"))
		}
		if want == "" {
			continue // then the driver's own nodes count, whatever this machine has
		}
		assert.Equal(t, want, strings.Join(have, " "), gres)
	}
	assert.Nil(t, gpusOf(t, "GresTypes=nic\n", "Name=gpu File=/dev/nvidia0"), "the user's word alone")
}

func TestGPUsOfAJail(t *testing.T) {
	j := &config.Jail{Devices: []string{"/dev/nvidia*"}}
	gpus := [][]string{{"/dev/nvidia1"}, {"/dev/other"}, {"/dev/nvidia0", "/dev/dri/card0"}}
	assert.Equal(t, [][]string{{"/dev/nvidia1"}, {}, {"/dev/nvidia0"}}, JobDevices(j, gpus))
	assert.Nil(t, JobDevices((&config.Jail{}), gpus), "this jail has none of them")
	j.Devices = []string{"/dev/null", "/dev/zero"}
	assert.Equal(t, []Device{{"/dev/zero", 0x105}}, SharedDevices(j, [][]string{{"/dev/null"}}))
}
