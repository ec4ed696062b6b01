// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// rpcsOf are the RPCs of bob's to slurmctld that each command of the exporter sends, which docs/metrics.md says.
var rpcsOf = map[string]string{
	"ping":  "REQUEST_PING 1",
	"nodes": "REQUEST_NODE_INFO 1, REQUEST_PARTITION_INFO 1",
	"jobs":  "REQUEST_JOB_INFO 1, REQUEST_PARTITION_INFO 1",
	"diag":  "REQUEST_STATS_INFO 1",
}

// rpcLine matches a line of sdiag's two lists.
var rpcLine = regexp.MustCompile(`(?m)^\t(\S+)\s*\(\s*\d+\)\s+count:(\d+)`)

// readRPCs returns how many RPCs of each type slurmctld has handled, and how many of each user.
func readRPCs(t *testing.T, c *harness.Cluster) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, m := range rpcLine.FindAllStringSubmatch(c.Root("sdiag").Stdout, -1) {
		counts[m[1]], _ = strconv.Atoi(m[2])
	}
	require.NotEmpty(t, counts)
	return counts
}

// countRPCs runs a command as bob, and returns the RPCs of types that bob's commands send, and their number.
func countRPCs(t *testing.T, c *harness.Cluster, args ...string) (types string, total int) {
	t.Helper()
	before := readRPCs(t, c)
	r := c.Do(harness.Command{User: harness.Bob, Dir: "/", Args: args})
	require.Zero(t, r.Code, r)
	after := readRPCs(t, c)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		more := after[name] - before[name]
		if name == "REQUEST_STATS_INFO" {
			more-- // of the second sdiag
		}
		if more > 0 && (strings.HasSuffix(name, "_INFO") || name == "REQUEST_PING") { // no others have anything to ask
			list = append(list, fmt.Sprint(name, " ", more))
		}
	}
	return strings.Join(list, ", "), after["bob"] - before["bob"]
}

// TestRPCsOfTheExporter counts, in each format, the RPCs that slurmctld handles for each command of the exporter, and for a whole interval.
func TestRPCsOfTheExporter(t *testing.T) {
	c := harness.Start(t, withWrappers(withTypedGPUs))
	submitScript(t, c, "true\n", "--hold", "--array=1-200", "--chdir=/tmp")
	require.Zero(t, c.Root("install", "-m", "666", "/dev/null", asked).Code)
	formats := []string{"text", "json"}
	if strings.Contains(c.Root("scontrol", "--version").Stdout, " 22.05") {
		formats = formats[:1]
	}
	for _, format := range formats {
		require.Zero(t, c.Root("truncate", "-s0", asked).Code)
		types, total := countRPCs(t, c, "gojail-exporter", "--once", "--slurm-bin=/opt/wrapped", "--format="+format)
		sum := 0
		commands := strings.Split(strings.TrimSpace(readFile(c, asked)), "\n")
		for _, line := range commands {
			args := strings.Fields(line)[1:]
			source := map[string]string{"squeue": "jobs", "sdiag": "diag", "scontrol": "nodes"}[args[0]]
			if slices.Contains(args, "ping") {
				source = "ping"
			}
			of, count := countRPCs(t, c, args...)
			assert.Equal(t, rpcsOf[source], of, "%s: %s", format, line)
			assert.Equal(t, strings.Count(rpcsOf[source], "REQUEST"), count, "%s: %s", format, line)
			sum += count
		}
		assert.Equal(t, sum, total, "%s: %s: %s", format, commands, types)
	}
}
