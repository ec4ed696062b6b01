// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/nstest"
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
	assert.Equal(t, [][]string{{"/dev/nvidia1"}, {}, {"/dev/nvidia0"}}, (&Hardware{GPUs: gpus}).JobDevices(j))
	assert.Nil(t, (&Hardware{GPUs: gpus}).JobDevices((&config.Jail{})), "this jail has none of them")
	j.Devices = []string{"/dev/null", "/dev/zero"}
	assert.Equal(t, []Device{{"/dev/zero", 0x105}}, (&Hardware{GPUs: [][]string{{"/dev/null"}}}).SharedDevices(j))
}

// TestInstancesOfMIG: a pattern that matches /dev/nvidia-caps, as that of gojail.toml.example does, gives a job the node of its
// instance, and no job those of others.
func TestInstancesOfMIG(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/nvidia-caps/inner", 0o755))
	for name, minor := range map[string]uint32{"nvidia0": 3, "nvidia-caps/nvidia-cap1": 5, "nvidia-caps/nvidia-cap12": 7, "nvidia-caps/nvidia-cap21": 7, "nvidia-caps/inner/one": 3} {
		require.NoError(t, unix.Mknod(filepath.Join(dir, name), unix.S_IFCHR|0o600, int(unix.Mkdev(1, minor))))
	}
	j := &config.Jail{Devices: []string{dir + "/nvidia*", dir + "/nvidia-caps/*"}}
	gpus := [][]string{{dir + "/nvidia0", dir + "/nvidia-caps/nvidia-cap12"}, {dir + "/nvidia0", dir + "/nvidia-caps/nvidia-cap21"}}
	assert.Equal(t, gpus, (&Hardware{GPUs: gpus}).JobDevices(j))
	shared := []Device{{Path: dir + "/nvidia-caps/inner"}, {dir + "/nvidia-caps/nvidia-cap1", 0x105}}
	assert.ElementsMatch(t, shared, (&Hardware{GPUs: gpus}).SharedDevices(j))
	j.Devices = j.Devices[:1]
	assert.Equal(t, gpus, (&Hardware{GPUs: gpus}).JobDevices(j))
	assert.ElementsMatch(t, shared, (&Hardware{GPUs: gpus}).SharedDevices(j))
	assert.Equal(t, []Device{{Path: dir + "/nvidia-caps"}}, (&Hardware{GPUs: gpus[:0]}).SharedDevices(j)[:1], "as a whole where no instance is given")
}
