// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
)

const siteWithGPUs = "gojail-site 1\nscratch /x\n" +
	"jail debian\nkey 1\ngpu 0 /dev/nvidia7\ngpu 1 /dev/nvidia0\ngpu 1 /dev/nvidia-caps/nvidia-cap12\ngpu 1 /dev/nvidia-caps/nvidia-cap13\n" +
	"gpu 2 /dev/nvidia0\ngpu 2 /dev/nvidia-caps/nvidia-cap480\ngpu 3 /dev/tty62\ngpu 4 /dev/nvidia7\naccess all\njail other\nend\n"

func TestGPUsOfAJob(t *testing.T) {
	s := newState(t)
	statetest.AddRecord(t, s, "site", siteWithGPUs)
	statetest.AddRecord(t, s, "jobs/17/debian", recordOf(t, os.Getpid(), "4294967290", statetest.Key))
	statetest.AddRecord(t, s, "jobs/17/.gpus", "debian 0\ndebian 0-1,2\ndebian 3,4\nother 3,63\nremoved 5\ndebian 99,x,-1,7-\n")
	proc := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(proc, "driver/nvidia", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}

	f := Read("n1", s, nil, proc)
	require.Len(t, f.jobs, 1)
	assert.Equal(t, []gpu{{jail: "debian", device: "nvidia7"}, {jail: "debian", device: "nvidia0"}, {jail: "debian", device: "tty62"}}, f.jobs[0].gpus, "without the driver: by minor")

	write("gpus/0000:1b:00.0/information", "GPU UUID: GPU-a\nDevice Minor: 7\n")
	write("gpus/0000:9b:00.0/information", "GPU UUID: GPU-b\nDevice Minor: 0\n")
	write("capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n")
	write("capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n")
	write("capabilities/gpu0/mig/gi9/access", "DeviceFileMinor: 480\n")
	f = Read("n1", s, nil, proc)
	assert.Equal(t, []gpu{
		{"debian", "0", "GPU-a", "", "nvidia7", "00000000:1B:00.0"},
		{"debian", "1", "GPU-b", "1", "nvidia0", "00000000:9B:00.0"},
		{"debian", "1", "GPU-b", "9", "nvidia0", "00000000:9B:00.0"},
		{"debian", "", "", "", "tty62", ""},
	}, f.jobs[0].gpus)
	_, err := Render(f)
	assert.NoError(t, err, "no series twice")

	statetest.AddRecord(t, s, "site", "gojail-site 1\njail debian\ngpu 0 /dev/nvidia7\n")
	assert.Empty(t, s.GPUNodes(), "a site file that is cut short")
}

func TestGPUsThatStepsNoted(t *testing.T) {
	s := newState(t)
	noted, err := s.GPUs("17")
	assert.NoError(t, err)
	assert.Empty(t, noted)
	statetest.AddRecord(t, s, "jobs/17/.gpus", "debian 1\nother 0-2\nhalf 3")
	noted, err = s.GPUs("17")
	assert.NoError(t, err)
	assert.Equal(t, []state.GPU{{Jail: "debian", Index: 1}, {Jail: "other", Index: 0}, {Jail: "other", Index: 2}, {Jail: "half", Index: 3}}, noted)
}
