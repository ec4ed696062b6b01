// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// lookups are steps whose program srun looks up on the host where it is started: "both" is in /opt/b there, and in /opt/a and /opt/b of the
// jail; each prints where it is.
var lookups = []struct {
	name   string
	env    []string
	args   []string
	want   string // what is printed; or
	why    string // the reason of a refusal by gojail; or
	slurms string // the reason that srun itself has
}{
	{name: "neither", args: []string{"--jail=debian", "both"}, want: "jail /opt/a"},
	{name: "test_exec", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"--jail=debian", "both"}, want: "jail /opt/a"},
	{name: "test_exec with arguments", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"-n", "1", "--jail=debian", "both", "--bcast", "x"}, want: "jail /opt/a --bcast x"},
	{name: "test_exec of a path", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"--jail=debian", "/opt/b/both"}, want: "jail /opt/b"},
	{name: "test_exec with an empty word", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"--comment", "", "--jail=debian", "both"}, want: "jail /opt/a"},
	{name: "test_exec without a jail", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"both"}, want: "node /opt/b"},
	{name: "test_exec, only in the jail", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"--jail=debian", "jails"}, slurms: "Can not execute jails"},
	{name: "test_exec, only on the node", env: []string{"SLURM_TEST_EXEC=1"}, args: []string{"--jail=debian", "nodes"}, slurms: "nodes: No such file or directory"},

	{name: "bcast", args: []string{"--jail=debian", "--bcast=/data/alice/copy", "--jail-mount=/data/alice:/data/alice", "both"},
		why: "--bcast: srun copied the program both of the host where it was started, but the jail has its own, /opt/a/both; leave --bcast"},
	{name: "SLURM_BCAST", env: []string{"SLURM_BCAST=/data/alice/copy"}, args: []string{"--jail=debian", "--jail-mount=/data/alice:/data/alice", "both"},
		why: "--bcast: srun copied the program both of the host"},
	{name: "bcast of a path", args: []string{"--jail=debian", "--bcast=/data/alice/copy", "--jail-mount=/data/alice:/data/alice", "/opt/b/both"}, want: "node /data/alice"},
	{name: "bcast, only on the node", args: []string{"--jail=debian", "--bcast=/data/alice/copy", "--jail-mount=/data/alice:/data/alice", "nodes"}, want: "node /data/alice"},
	{name: "bcast to a directory", args: []string{"--jail=debian", "--bcast=/data/alice/", "--jail-mount=/data/alice:/data/alice", "nodes"}, want: "node /data/alice"},
	{name: "bcast to /tmp", args: []string{"--jail=debian", "--bcast=/tmp/copy", "nodes"},
		why: "--bcast: the program was copied to /tmp/copy on the node, where the jail has none; write --bcast=FILE with a file below a directory"},
	{name: "bcast to where the jail has a file", args: []string{"--jail=debian", "--bcast=/home/alice/copied", "nodes"},
		why: "--bcast: the program was copied to /home/alice/copied on the node, where the jail has another file; write"},
	{name: "bcast to the working directory", args: []string{"--jail=debian", "--bcast", "nodes"}, why: "--bcast: the program was copied to /home/alice/slurm_bcast_"},
	{name: "bcast, only in the jail", args: []string{"--jail=debian", "--bcast=/tmp/copy", "jails"}, slurms: "Can not execute jails"},
	{name: "SLURM_BCAST with --multi-prog, whose programs srun does not copy", env: []string{"SLURM_BCAST=/tmp/copy"},
		args: []string{"--jail=debian", "--multi-prog", "/home/alice/programs"}, want: "jail /opt/a"},
	{name: "bcast without a jail", args: []string{"--bcast=/tmp/copy", "both"}, want: "node /tmp"},
}

// writeProgram writes a program that prints a word, its directory and its arguments.
func writeProgram(t *testing.T, c *harness.Cluster, path, word string) {
	t.Helper()
	host := c.Path(path)
	require.NoError(t, os.MkdirAll(filepath.Dir(host), 0o755))
	require.NoError(t, os.WriteFile(host, fmt.Appendf(nil, "#!/bin/sh\necho %s ${0%%/*} \"$@\"\n", word), 0o755))
}

// TestProgramThatSrunLooksUp requires that a step executes the program of its jail, or the one that the user had copied, or none. What was copied belongs
// to root in a jail with --jail-root.
func TestProgramThatSrunLooksUp(t *testing.T) {
	options := jailed
	c := harness.Start(t, options)
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	options.SlurmConf["LaunchParameters"] = "test_exec"
	tested := harness.Start(t, options)
	for _, c := range []*harness.Cluster{c, tested} {
		writeProgram(t, c, "/opt/b/both", "node")
		writeProgram(t, c, "/opt/b/nodes", "node")
		writeProgram(t, c, "/srv/jails/debian/opt/a/both", "jail")
		writeProgram(t, c, "/srv/jails/debian/opt/b/both", "jail")
		writeProgram(t, c, "/srv/jails/debian/opt/a/jails", "jail")
		require.NoError(t, os.MkdirAll(c.Path("/srv/jails/debian/data/alice"), 0o755))
		writeInJail(t, c, "/home/alice/copied", "#!/bin/sh\necho old\n")
		writeOnNode(t, c, "/home/alice/programs", "0 both\n")
	}
	for _, row := range lookups {
		t.Run(row.name, func(t *testing.T) {
			run := func(c *harness.Cluster, env ...string) harness.Result {
				env = append(env, "PATH=/opt/a:/opt/b:/usr/local/bin:/usr/bin:/bin")
				return c.Do(harness.Command{User: harness.Alice, Env: env, Args: append([]string{"srun", "-Q", "-wn1"}, row.args...)})
			}
			results := []harness.Result{run(c, row.env...)}
			if row.name == "test_exec" || row.name == "bcast" {
				results = append(results, run(tested))
			}
			for _, r := range results {
				switch {
				case row.why != "":
					requireRefused(t, row.why, r)
					assert.Empty(t, r.Stdout, r)
				case row.slurms != "":
					assert.NotZero(t, r.Code, r)
					assert.Contains(t, r.Stderr, row.slurms, r)
				default:
					requireOutput(t, row.want, r)
				}
			}
		})
	}
	requireOutput(t, "", c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_TEST_EXEC=1"},
		Args: []string{"srun", "-Q", "--jail=debian", "sh", "-c", "env | grep ^SLURM_JAIL_PROGRAM || true"}}))
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\", \"self\"]\n", 1))
	allowRange(t, c)
	for _, kind := range []string{"self", "range"} {
		requireOutput(t, "node /data/alice", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "--jail-root="+kind, "--bcast=/data/alice/copy",
			"--jail-mount=/data/alice:/data/alice", "/opt/b/nodes"))
	}
}
