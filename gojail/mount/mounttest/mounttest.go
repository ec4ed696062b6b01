// SPDX-License-Identifier: Apache-2.0

// Package mounttest has a small jail for tests.
package mounttest

import (
	"os"
	"path/filepath"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/nstest"
)

// SmallTree returns a directory that can be a jail's root: it has what the standard mounts of these tests
// need, and no programs.
func SmallTree(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "etc", "data", "scratch"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	nstest.WriteFile(t, filepath.Join(root, "etc/hostname"), "jail\n")
	nstest.WriteFile(t, filepath.Join(root, "etc/resolv.conf"), "")
	return root
}

// SmallView returns a jail with one mount of each kind that needs no host files.
func SmallView(root string) *plan.View {
	mode := os.FileMode(0o666)
	gid := uint32(5)
	return &plan.View{
		RootOptions: []string{"nosuid", "nodev"},
		Spec: &specs.Spec{
			Root: &specs.Root{Path: root},
			Mounts: []specs.Mount{
				{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
				{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "nodev", "noexec",
					"ro"}},
				{Destination: "/dev", Type: "tmpfs", Source: "dev", Options: []string{"mode=755", "size=64k", "nosuid",
					"noexec"}},
				{Destination: "/dev/pts", Type: "bind", Source: "/dev/pts",
					Options: []string{"bind", "nosuid", "noexec"}},
				{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue",
					Options: []string{"nosuid", "nodev", "noexec"}},
				{Destination: "/run", Type: "tmpfs", Source: "run", Options: []string{"mode=755", "nosuid", "nodev",
					"ro"}},
				{Destination: "/run/a/b/file", Type: "bind", Source: "/etc/passwd", Options: []string{"ro"}},
				{Destination: "/etc/resolv.conf", Type: "bind", Source: "/etc/passwd",
					Options: []string{"ro", "nosuid", "nodev", "noexec"}},
			},
			Linux: &specs.Linux{
				Devices: []specs.LinuxDevice{
					{Path: "/dev/null", Type: "c", Major: 1, Minor: 3, FileMode: &mode, GID: &gid},
					{Path: "/dev/sub/zero", Type: "c", Major: 1, Minor: 5, FileMode: &mode},
				},
				MaskedPaths:   []string{"/proc/version", "/proc/tty", "/proc/not/there"},
				ReadonlyPaths: []string{"/proc/sys", "/proc/absent"},
			},
		},
		Links: []plan.Link{{Path: "/dev/fd", Target: "/proc/self/fd"}},
		Dirs:  []string{"/dev/sub", "/dev/dri/by-path"},
		Files: []plan.File{{Path: "/proc/uptime", Content: "for ever\n"},
			{Path: "/proc/not/there", Content: "nothing"}},
	}
}
