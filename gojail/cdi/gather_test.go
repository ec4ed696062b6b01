// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGather(t *testing.T) {
	n := newNode(t)
	e, err := n.readRegistry(t).Edits("nvidia.com/gpu=1")
	require.NoError(t, err)
	e.Mounts = append(e.Mounts,
		specs.Mount{Destination: "/usr/share/vulkan/icd.d/nvidia_icd.json", Source: "/x", Type: "bind"},
		specs.Mount{Destination: "/usr/lib/x86_64-linux-gnu/vdpau/libcuda.so.570.86.15", Source: "/y", Type: "bind"})
	before := *e
	g := e.Gather("/run/gojail/cdi")

	var mounts []string
	for _, m := range g.Mounts {
		mounts = append(mounts, m.Source+" "+m.Destination)
	}
	assert.ElementsMatch(t, []string{
		n.root + "/usr/bin/nvidia-smi /run/gojail/cdi/bin/nvidia-smi",
		n.root + "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15 /run/gojail/cdi/lib/libcuda.so.570.86.15",
		n.root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.86.15 /run/gojail/cdi/lib/libnvidia-ml.so.570.86.15",
		n.root + "/run/nvidia-persistenced/socket /run/nvidia-persistenced/socket",
	}, mounts)
	assert.Equal(t, []Link{
		{"/run/gojail/cdi/lib/libcuda.so", "libcuda.so.1"},
		{"/dev/dri/by-path/pci-0000:43:00.0-card", "../card2"},
		{"/dev/dri/by-path/pci-0000:43:00.0-render", "../renderD129"},
		{"/run/gojail/cdi/lib/libcuda.so.1", "libcuda.so.570.86.15"},
		{"/run/gojail/cdi/lib/libnvidia-ml.so.1", "libnvidia-ml.so.570.86.15"},
	}, g.Links)
	assert.Equal(t, []string{"/run/gojail/cdi/lib"}, g.LibraryDirs)
	assert.Equal(t, []string{
		"createContainer hook: nvidia-cdi-hook enable-cuda-compat --host-driver-version=570.86.15",
		"mount: /usr/share/vulkan/icd.d/nvidia_icd.json",
		"mount: another libcuda.so.570.86.15 from /y",
		"link: /usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so to ../libnvidia-allocator.so.1",
	}, g.Unhandled)
	assert.Equal(t, e.Devices, g.Devices)
	assert.Equal(t, e.Env, g.Env)
	assert.Equal(t, before, *e, "the first is as it was")
}
