// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// node is a directory with the files of a machine that has two H100, and with their CDI file as
// nvidia-ctk cdi generate writes it.
type node struct {
	root   string
	source Source
}

func newNode(t testing.TB) node {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: only root's files are read")
	}
	root := t.TempDir()
	n := node{root, Source{Dirs: []string{root + "/etc/cdi", root + "/var/run/cdi"}, params: root + "/params"}}
	for name, number := range map[string]uint64{
		"nvidia0": unix.Mkdev(195, 0), "nvidia1": unix.Mkdev(195, 1), "nvidiactl": unix.Mkdev(195, 255),
		"nvidia-modeset": unix.Mkdev(195, 254), "nvidia-uvm": unix.Mkdev(510, 0), "nvidia-uvm-tools": unix.Mkdev(510, 1),
		"dri/card1": unix.Mkdev(226, 1), "dri/card2": unix.Mkdev(226, 2),
		"dri/renderD128": unix.Mkdev(226, 128), "dri/renderD129": unix.Mkdev(226, 129),
	} {
		path := filepath.Join(root, "dev", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(number)); err != nil {
			t.Skipf("needs CAP_MKNOD: %s", err)
		}
		require.NoError(t, os.Chmod(path, 0o666))
	}
	n.writeFile(t, "usr/bin/nvidia-smi", "")
	n.writeFile(t, "run/nvidia-persistenced/socket", "")
	n.buildLibrary(t, "libcuda.so.570.86.15", "libcuda.so.1")
	n.buildLibrary(t, "libnvidia-ml.so.570.86.15", "libnvidia-ml.so.1")
	n.writeFile(t, "params", "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileMode: 438\n")
	text, err := os.ReadFile("testdata/nvidia.yaml")
	require.NoError(t, err)
	n.writeFile(t, "etc/cdi/nvidia.yaml", strings.ReplaceAll(string(text), "{{.}}", root))
	return n
}

func (n node) writeFile(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(n.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// buildLibrary builds a shared library with that SONAME.
func (n node) buildLibrary(t testing.TB, name, soname string) {
	t.Helper()
	n.writeFile(t, "usr/lib/x86_64-linux-gnu/"+name, "")
	cmd := exec.Command("gcc", "-shared", "-nostdlib", "-Wl,-soname,"+soname, "-o", name, "-x", "c", "/dev/null")
	cmd.Dir = n.root + "/usr/lib/x86_64-linux-gnu"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %s", out)
	}
}

func (n node) readRegistry(t testing.TB) *Registry {
	t.Helper()
	r, err := Read(n.source)
	require.NoError(t, err)
	return r
}
