// SPDX-License-Identifier: Apache-2.0

package nvidiaproc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, "driver/nvidia", path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestReadGPUs(t *testing.T) {
	proc := t.TempDir()
	assert.Empty(t, ReadGPUs(proc), "no driver")
	write(t, proc, "gpus/0000:9b:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-1\nDevice Minor: \t 0\n")
	write(t, proc, "gpus/0000:1b:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: \t 7\n")
	write(t, proc, "gpus/0000:5b:00.0/information", "Model: Unknown\n")
	write(t, proc, "gpus/0000:4b:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-3\nDevice Minor: \t 3\nGPU Excluded:\t Yes\n")
	write(t, proc, "gpus/0000:ab:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-2\nDevice Minor: \t 4\nGPU Excluded:\t No\n")
	assert.Equal(t, []GPU{{"0000:1b:00.0", "", 7}, {"0000:5b:00.0", "", -1}, {"0000:9b:00.0", "GPU-1", 0}, {"0000:ab:00.0", "GPU-2", 4}}, ReadGPUs(proc),
		"an excluded GPU has no index")
}

func TestReadInstances(t *testing.T) {
	proc := t.TempDir()
	assert.Empty(t, ReadInstances(proc))
	write(t, proc, "capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
	write(t, proc, "capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n")
	write(t, proc, "capabilities/gpu3/mig/gi9/access", "DeviceFileMinor: 480\n")
	write(t, proc, "capabilities/gpu3/mig/gi10/access", "rubbish\n")
	write(t, proc, "capabilities/mig/config", "DeviceFileMinor: 1\n")
	assert.Equal(t, map[int]Instance{12: {0, 1}, 13: {0, 1}, 480: {3, 9}}, ReadInstances(proc))
}
