// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEdits(t *testing.T) {
	n := newNode(t)
	e, err := n.readRegistry(t).Edits("nvidia.com/gpu=1")
	require.NoError(t, err)

	mode := os.FileMode(0o666)
	device := func(path string, major, minor int64) specs.LinuxDevice {
		return specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor, FileMode: &mode}
	}
	assert.ElementsMatch(t, []specs.LinuxDevice{
		device("/dev/nvidia1", 195, 1), device("/dev/dri/card2", 226, 2), device("/dev/dri/renderD129", 226, 129),
		device("/dev/nvidia-modeset", 195, 254), device("/dev/nvidia-uvm", 510, 0),
		device("/dev/nvidia-uvm-tools", 510, 1), device("/dev/nvidiactl", 195, 255),
	}, e.Devices)

	library := []string{"ro", "nosuid", "nodev", "rbind"}
	mount := func(path string, options ...string) specs.Mount {
		return specs.Mount{Destination: path, Source: n.root + path, Type: "bind", Options: options}
	}
	assert.ElementsMatch(t, []specs.Mount{
		mount("/usr/bin/nvidia-smi", library...),
		mount("/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15", library...),
		mount("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.86.15", library...),
		mount("/run/nvidia-persistenced/socket", "nosuid", "nodev", "rbind", "noexec"),
	}, e.Mounts)
	assert.Equal(t, []string{"NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu", "NVIDIA_VISIBLE_DEVICES=void"}, e.Env)
	assert.Equal(t, []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/vdpau"}, e.LibraryDirs)
	assert.Equal(t, []Link{
		{"/usr/lib/x86_64-linux-gnu/libcuda.so", "libcuda.so.1"},
		{"/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1"},
		{"/dev/dri/by-path/pci-0000:43:00.0-card", "../card2"},
		{"/dev/dri/by-path/pci-0000:43:00.0-render", "../renderD129"},
		{"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.570.86.15"},
		{"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.570.86.15"},
	}, e.Links)
	assert.Equal(t, []Mode{{"/dev/dri", 0o755}}, e.Modes)
	assert.Equal(t, []File{{"/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 0\nDeviceFileMode: 438\n"}}, e.Files)
	assert.Equal(t, []string{"createContainer hook: nvidia-cdi-hook enable-cuda-compat --host-driver-version=570.86.15"}, e.Unhandled)
}

// TestTwoDevices: edits that two devices share are listed once.
func TestTwoDevices(t *testing.T) {
	n := newNode(t)
	r := n.readRegistry(t)
	e, err := r.Edits("nvidia.com/gpu=0", "nvidia.com/gpu=1")
	require.NoError(t, err)
	all, err := r.Edits("nvidia.com/gpu=all")
	require.NoError(t, err)
	assert.Len(t, e.Devices, 10)
	assert.ElementsMatch(t, all.Devices, e.Devices)
	assert.Equal(t, all.Mounts, e.Mounts)
	assert.Len(t, e.Mounts, 4)
	assert.Len(t, e.Links, 8)
	assert.Len(t, e.Modes, 1)
	assert.Len(t, e.Files, 1)
	assert.Len(t, e.Unhandled, 1)
}

func TestForNode(t *testing.T) {
	r := newNode(t).readRegistry(t)
	for node, want := range map[string]string{"/dev/nvidia0": "nvidia.com/gpu=0", "/dev/nvidia1": "nvidia.com/gpu=1", "/dev/nvidia7": ""} {
		name, ok := r.ForNode(node)
		assert.Equal(t, want, name, node)
		assert.Equal(t, want != "", ok, node)
	}
}

func TestNodes(t *testing.T) {
	n := newNode(t)
	r := n.readRegistry(t)
	assert.Equal(t, []string{"/dev/nvidia1", "/dev/dri/card2", "/dev/dri/renderD129"}, r.Nodes("nvidia.com/gpu=1"))
	assert.Empty(t, r.Nodes("nvidia.com/gpu=8"))
	assert.True(t, r.HasKind("nvidia.com/gpu=8"))
	assert.False(t, r.HasKind("nvidia.com/mig=0"))
	n.writeFile(t, "etc/cdi/mig.yaml", "cdiVersion: [\n")
	assert.True(t, n.readRegistry(t).HasKind("nvidia.com/mig=0"), "nobody knows")
}

func TestCheckName(t *testing.T) {
	assert.NoError(t, CheckName("nvidia.com/gpu=GPU-58ef5ed3"))
	for _, name := range []string{"", "gpu=0", "nvidia.com/gpu", "nvidia.com/gpu=", "nvidia.com/gpu=a b"} {
		assert.ErrorContains(t, CheckName(name), "is not a CDI device; write VENDOR/CLASS=NAME", name)
	}
}

func TestMissing(t *testing.T) {
	n := newNode(t)
	_, err := n.readRegistry(t).Edits("nvidia.com/gpu=0", "nvidia.com/gpu=8")
	assert.EqualError(t, err, "no CDI device nvidia.com/gpu=8 in "+n.source.Dirs[0]+", "+n.source.Dirs[1]+
		" (known: nvidia.com/gpu=0, nvidia.com/gpu=1, nvidia.com/gpu=GPU-58ef5ed3-3a65-9a5c-9fc9-1d0e76f4c2a1, nvidia.com/gpu=all)"+
		"; run: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")

	require.NoError(t, os.RemoveAll(n.root+"/etc/cdi"))
	_, err = n.readRegistry(t).Edits("amd.com/gpu=0")
	assert.EqualError(t, err, "no CDI device amd.com/gpu=0 in "+n.source.Dirs[0]+", "+n.source.Dirs[1]+
		"; install the CDI file of the device's vendor")
}

// TestStale: the driver or the GPUs changed after the CDI file was written.
func TestStale(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15": "does not exist; was the driver changed?; run: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
		"/dev/nvidia-uvm": "is the driver loaded?; run: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
	} {
		n := newNode(t)
		require.NoError(t, os.Remove(n.root+path))
		_, err := n.readRegistry(t).Edits("nvidia.com/gpu=0")
		require.Error(t, err, path)
		assert.Contains(t, err.Error(), n.root+path)
		assert.True(t, strings.HasSuffix(err.Error(), want), "%s", err)
	}
}

// TestOtherFile: an invalid file is an error only for requests of its devices.
func TestOtherFile(t *testing.T) {
	n := newNode(t)
	n.writeFile(t, "etc/cdi/other.yaml", "cdiVersion: 0.5.0\nkind: other.com/nic\ndevcies: []\n")
	r := n.readRegistry(t)
	_, err := r.Edits("nvidia.com/gpu=0")
	assert.NoError(t, err)
	require.Len(t, r.Problems(), 1)
	assert.Contains(t, r.Problems()[0], n.root+"/etc/cdi/other.yaml")
	assert.NotContains(t, r.Problems()[0], "\n")
	_, err = r.Edits("other.com/nic=0")
	assert.ErrorContains(t, err, "other.yaml")

	// The directory of generated files goes first.
	n.writeFile(t, "var/run/cdi/gpu.json", `{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"0","containerEdits":{"env":["A=b"]}}]}`)
	e, err := n.readRegistry(t).Edits("nvidia.com/gpu=0")
	require.NoError(t, err)
	assert.Equal(t, []string{"A=b"}, e.Env)
}

func TestTrust(t *testing.T) {
	for name, change := range map[string]func(n node) error{
		"/etc/cdi/nvidia.yaml: is writable by others":  func(n node) error { return os.Chmod(n.root+"/etc/cdi/nvidia.yaml", 0o666) },
		"/etc/cdi: is writable by others":              func(n node) error { return os.Chmod(n.root+"/etc/cdi", 0o777) },
		"/etc/cdi/nvidia.yaml: belongs to uid 65534":   func(n node) error { return os.Chown(n.root+"/etc/cdi/nvidia.yaml", 65534, 0) },
		"/etc/cdi: belongs to uid 65534":               func(n node) error { return os.Chown(n.root+"/etc/cdi", 65534, 0) },
		"/etc/cdi/link.yaml: cannot read the CDI file": func(n node) error { return os.Symlink("/nowhere", n.root+"/etc/cdi/link.yaml") },
		"/var/run/cdi: is writable by others":          func(n node) error { return os.Chmod(n.root+"/var/run/cdi", 0o777) },
	} {
		n := newNode(t)
		require.NoError(t, os.MkdirAll(n.root+"/var/run/cdi", 0o755))
		require.NoError(t, change(n))
		_, err := Read(n.source)
		assert.ErrorContains(t, err, n.root+name)
	}
}

// TestRefused: edits that CDI allows and jails do not support are errors.
func TestRefused(t *testing.T) {
	n := newNode(t)
	for edits, want := range map[string]string{
		`{"mounts":[{"hostPath":"/etc","containerPath":"/mnt/../etc"}]}`: `CDI: the path "/mnt/../etc" of a mount is not absolute and clean; correct the CDI file`,
		`{"deviceNodes":[{"path":"dev/null","hostPath":"/dev/null"}]}`:   `CDI: the path "dev/null" of a device is not absolute and clean; correct the CDI file`,
		`{"intelRdt":{"closID":"a"}}`:                                    "the CDI file of x.com/y=0 uses intelRdt or netDevices, which jails do not support",
		`{"hooks":[{"hookName":"createContainer","path":"/bin/nvidia-ctk","args":["nvidia-ctk","hook","create-symlinks","--link","a:b"]}]}`:        `CDI: createContainer hook: nvidia-ctk hook create-symlinks --link a:b: "a:b" is not TARGET::LINK`,
		`{"hooks":[{"hookName":"createContainer","path":"/bin/nvidia-ctk","args":["nvidia-ctk","hook","chmod","--mode=7777","--path","/dev/a"]}]}`: `CDI: createContainer hook: nvidia-ctk hook chmod --mode=7777 --path /dev/a: --mode "7777" is not an octal mode up to 777`,
	} {
		n.writeFile(t, "etc/cdi/x.json", `{"cdiVersion":"0.7.0","kind":"x.com/y","devices":[{"name":"0","containerEdits":`+edits+`}]}`)
		_, err := n.readRegistry(t).Edits("x.com/y=0")
		assert.EqualError(t, err, want)
	}
}

// TestOtherHooks: unknown hooks are listed in Unhandled.
func TestOtherHooks(t *testing.T) {
	n := newNode(t)
	n.writeFile(t, "etc/cdi/x.json", `{"cdiVersion":"0.7.0","kind":"x.com/y","devices":[{"name":"0","containerEdits":{"additionalGids":[44],"hooks":[
		{"hookName":"createContainer","path":"/usr/bin/nvidia-ctk","args":["nvidia-ctk","hook","update-ldcache","--folder=/opt/lib"]},
		{"hookName":"createContainer","path":"/usr/bin/nvidia-cdi-hook","args":["nvidia-cdi-hook"]},
		{"hookName":"startContainer","path":"/usr/bin/evil","args":["evil","create-symlinks","--link","a::/b"]}]}}]}`)
	e, err := n.readRegistry(t).Edits("x.com/y=0")
	require.NoError(t, err)
	assert.Equal(t, []string{"/opt/lib"}, e.LibraryDirs)
	assert.Empty(t, e.Links)
	assert.Equal(t, []uint32{44}, e.Groups)
	assert.Equal(t, []string{"createContainer hook: nvidia-cdi-hook", "startContainer hook: evil create-symlinks --link a::/b"}, e.Unhandled)
}

// TestParams: no file is added where the driver does not create device nodes.
func TestParams(t *testing.T) {
	n := newNode(t)
	n.writeFile(t, "params", "ModifyDeviceFiles: 0\n")
	e, err := n.readRegistry(t).Edits("nvidia.com/gpu=0")
	require.NoError(t, err)
	assert.Empty(t, e.Files)
	require.NoError(t, os.Remove(n.source.params))
	e, err = n.readRegistry(t).Edits("nvidia.com/gpu=0")
	require.NoError(t, err)
	assert.Empty(t, e.Files)
}
