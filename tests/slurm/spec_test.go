// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSpecOfAJobIsWhatTheKernelHas holds what `gojail spec --job` prints of a
// batch job with user mounts against the mounts of its sandbox.
func TestSpecOfAJobIsWhatTheKernelHas(t *testing.T) {
	c := sharedCluster(t)
	require.NoError(t, os.Symlink("/mnt/data", c.Path(jailHome+"link")))
	t.Cleanup(func() { os.Remove(c.Path(jailHome + "link")) })
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\nsleep 1000\n", Args: []string{"sbatch", "--parsable", "--nodelist=n1", "--output=/dev/null",
		"--jail=debian", "--jail-mount=/data/shared:/data:ro,/data/alice:/home/alice/link"}})
	require.Zero(t, submit.Code, submit)
	job := strings.TrimSpace(submit.Stdout)
	t.Cleanup(func() { c.Root("scancel", job); c.WaitIdle() })

	var list struct {
		Sandboxes []struct {
			Job               string
			Holder, Processes int
		}
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return json.Unmarshal([]byte(c.Gojail("n1", "ls", "--json").Stdout), &list) == nil &&
			len(list.Sandboxes) == 1 && list.Sandboxes[0].Job == job && list.Sandboxes[0].Processes > 0
	}))
	r := c.Gojail("n1", "spec", "--job", job)
	require.Zero(t, r.Code, r)
	var spec specs.Spec
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &spec))
	text, err := os.ReadFile(c.Path(fmt.Sprintf("/proc/%d/mountinfo", list.Sandboxes[0].Holder)))
	require.NoError(t, err)
	mounts, err := mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
	require.NoError(t, err)

	own := map[string]bool{}
	for _, ns := range spec.Linux.Namespaces {
		own[string(ns.Type)] = true
	}
	for kind, file := range map[string]string{"mount": "mnt", "pid": "pid", "ipc": "ipc", "uts": "uts", "network": "net", "user": "user", "cgroup": "cgroup"} {
		holders, err := os.Readlink(c.Path(fmt.Sprintf("/proc/%d/ns/%s", list.Sandboxes[0].Holder, file)))
		require.NoError(t, err)
		nodes, err := os.Readlink(c.Path("/proc/1/ns/" + file))
		require.NoError(t, err)
		assert.Equal(t, own[kind], holders != nodes, "own %s namespace", kind)
	}

	listed := map[string][]string{} // destination: the flags of the mount on top there
	count := map[string]int{}
	for _, m := range spec.Mounts {
		listed[m.Destination] = filterFlags(m.Options)
		count[m.Destination]++
	}
	for _, m := range mounts {
		if count[m.Mountpoint] == 0 {
			assert.True(t, m.Mountpoint == "/" || isMasked(spec, m.Mountpoint) || isBelowRbind(spec, m.Mountpoint), "not listed: %s", m.Mountpoint)
			continue
		}
		count[m.Mountpoint]--
		if !isCovered(mounts, m) {
			assert.Equal(t, filterFlags(strings.Split(m.Options, ",")), listed[m.Mountpoint], m.Mountpoint)
		}
	}
	for destination, left := range count {
		assert.Zero(t, left, "listed, but not mounted: %s", destination)
	}
	for destination, flags := range map[string][]string{
		"/data": {"ro", "nosuid", "nodev"}, "/mnt/data": {"nosuid", "nodev"}, "/tmp": {"nosuid", "nodev"},
		"/run/munge/munge.socket.2":                                        {"ro", "nosuid", "nodev", "noexec"},
		"/var/spool/slurmd/n1/job" + strings.Repeat("0", 5-len(job)) + job: {"ro", "nosuid", "nodev"},
		"/var/spool/slurmd/n1":                                             {"nosuid", "nodev"},
	} {
		assert.Equal(t, flags, listed[destination], destination)
	}
}

// filterFlags returns the options of a mount that are flags.
func filterFlags(options []string) []string {
	var flags []string
	for _, flag := range []string{"ro", "nosuid", "nodev", "noexec"} {
		if slices.Contains(options, flag) {
			flags = append(flags, flag)
		}
	}
	return flags
}

// isCovered reports whether another mount lies on the mount point of m.
func isCovered(mounts []*mountinfo.Info, m *mountinfo.Info) bool {
	return slices.ContainsFunc(mounts, func(other *mountinfo.Info) bool {
		return other.Parent == m.ID && other.Mountpoint == m.Mountpoint
	})
}

// isMasked reports whether the spec masks a path or makes it read-only.
func isMasked(spec specs.Spec, path string) bool {
	return slices.Contains(spec.Linux.MaskedPaths, path) || slices.Contains(spec.Linux.ReadonlyPaths, path)
}

// isBelowRbind reports whether a path is below an rbind mount, whose source's mounts come with it.
func isBelowRbind(spec specs.Spec, path string) bool {
	return slices.ContainsFunc(spec.Mounts, func(m specs.Mount) bool {
		return slices.Contains(m.Options, "rbind") && strings.HasPrefix(path, m.Destination+"/")
	})
}
