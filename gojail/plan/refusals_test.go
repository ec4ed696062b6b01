// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"flag"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table of docs/refusals.md")

// listOptions returns the options of the mount of a view at a path.
func listOptions(v *View, path string) string {
	for _, m := range v.Spec.Mounts {
		if m.Destination == path {
			return strings.Join(m.Options, ", ")
		}
	}
	return ""
}

// formatPaths returns paths as code.
func formatPaths(paths []string) string { return "`" + strings.Join(paths, "`, `") + "`" }

// listDevices returns the paths of devices.
func listDevices(devices []specs.LinuxDevice) (paths []string) {
	for _, d := range devices {
		paths = append(paths, d.Path)
	}
	return paths
}

// TestRefusalsInTheDocumentation requires on the page what the plan of a jail without further keys refuses.
func TestRefusalsInTheDocumentation(t *testing.T) {
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\n", "n1")
	require.NoError(t, err)
	v, err := Jail(c, c.Jails["a"], planFacts())
	require.NoError(t, err)
	require.True(t, v.Spec.Process.NoNewPrivileges)
	require.False(t, c.Jails["a"].Isolation.Abstract == config.AbstractStep)
	require.Empty(t, c.Jails["a"].Isolation.JailRoot)
	table := pagetest.FormatTable([]string{"what a user sees", "what a jail has", "why", "what to do"}, [][]string{
		{"`su`: without effect; `sudo`, `newuidmap`, `ping` with a file capability (not run)", "no_new_privs, and the root is " + strings.Join(v.RootOptions, ", "),
			"a program of the jail would be the node's root", "`no_new_privs = false` and `options = [\"nodev\"]`, in a jail that only root can write to"},
		{"root's own jobs and `--jail-root`: Operation not permitted (not run here)", "at most " + strings.Join(v.Spec.Process.Capabilities.Bounding, ", "),
			"root in a jail is not the node's", "`capabilities`"},
		{"`ps` shows one's own processes; `top` (not run)", "`/proc`: " + listOptions(v, "/proc") + "; a PID namespace", "processes of others", "`hidepid`, `namespaces`"},
		{"squashfuse, sshfs: try 'modprobe fuse' first; no `/dev/fuse`, `/dev/net/tun`, `/dev/infiniband`, `/dev/nvidia0`",
			formatPaths(listDevices(v.Spec.Linux.Devices)) + ", pseudo-terminals, the job's GPUs and cards", "the node's and other jobs' devices",
			"`devices`, `cdi`; for FUSE also [a user namespace](containers.md)"},
		{"`mknod`: Operation not permitted; device files that are there: Permission denied (not run)", "the root, `/tmp` and `/dev/shm` are nodev", "the same", ""},
		{"files are empty, directories too", formatPaths(v.Spec.Linux.MaskedPaths), "tell of the whole node, or its memory", "none"},
		{"`sysctl -w`, `echo 3 >/proc/sys/vm/drop_caches`: Read-only file system", formatPaths(v.Spec.Linux.ReadonlyPaths) + "; `/sys` is " + listOptions(v, "/sys"),
			"settings of the whole node", "ask for a Prolog"},
		{"`systemd-run`, `crun`: `/sys/fs/cgroup` is read-only (not run)", "the job's part of the tree", "Slurm's limits", ""},
		{"`systemctl`, `docker`: no socket in `/run` (not run)", "`/run` of the job's own", "daemons of the node are root's", "`mounts`, with care"},
	})
	pagetest.CheckPart(t, "../../docs/refusals.md", "view", table, *update)
}
