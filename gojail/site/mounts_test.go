// SPDX-License-Identifier: Apache-2.0

package site

import (
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
)

// widest returns a jail with as many mounts of each sandbox's own as there can be, their options as long as they can be.
func widest(t *testing.T) (*config.Config, *config.Jail) {
	t.Helper()
	c, err := config.ParseConfig(`default = "a"
[slurm]
spool = "/var/spool/a/long/path/of/the/directory/of/slurmd"
[jail.a]
root = "/j"
slurm = true
tmp = "tmpfs"
host = ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"]
devices = ["/dev/nvidia0"]
writable = "tmpfs"
options = ["nosuid", "nodev", "noexec"]
`, "n1")
	require.NoError(t, err)
	j := c.Jails["a"]
	j.TmpSize, j.ShmSize, j.WriteSize = math.MaxInt64, math.MaxInt64, math.MaxInt64
	return c, j
}

// capacity returns a number of struct gojail_mount or of the #define lines in include/gojail.h.
func capacity(t *testing.T, pattern string) int {
	t.Helper()
	text, err := os.ReadFile("../../include/gojail.h")
	require.NoError(t, err)
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	require.NotNil(t, found, pattern)
	number, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return number
}

// TestMountsFitTheContract: C takes a site file only if all of its lines fit what a holder is sent.
func TestMountsFitTheContract(t *testing.T) {
	c, j := widest(t)
	sent := 0
	for _, m := range plan.OwnMounts(c, &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}}, j) {
		words := strings.Fields(formatMount(m))
		require.Len(t, words, 6)
		if words[2] == "bind" && words[1] != "account" {
			continue
		}
		sent++
		assert.Less(t, len(words[2]), capacity(t, `char type\[(\d+)\];`), words)
		// The zygote adds uid= and gid= to those of /run.
		assert.Less(t, len(words[4])+len(",uid=4294967295,gid=4294967295"), capacity(t, `char options\[(\d+)\];`), words)
		if words[1] != "script" {
			assert.Less(t, len(words[5]), capacity(t, `char destination\[(\d+)\];`), words)
		}
	}
	assert.Equal(t, 17, sent, "all there are")
	assert.LessOrEqual(t, sent, capacity(t, `#define GOJAIL_JOB_MOUNTS_MAX (\d+)`))
}

func TestWordsOfMountsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../docs/state.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "\n### Mounts of a sandbox\n")
	require.True(t, found)
	described := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(list, -1) {
		described[m[1]] = true
	}
	used := map[string]bool{}
	c, j := widest(t)
	for _, m := range plan.OwnMounts(c, &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}}, j) {
		for _, word := range strings.Split(strings.Fields(formatMount(m))[1], ",") {
			used[word] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(described)))
}

// TestPlanChangesTheLine: what the plan says of a mount is what C reads.
func TestPlanChangesTheLine(t *testing.T) {
	m := plan.OwnMount{How: "in", Mount: plan.Tmpfs("/dev/x", "noexec", "size=1k", "ro", "mode=700")}
	assert.Equal(t, "mount in tmpfs ro,noexec size=1k,mode=700 /dev/x", formatMount(m))
	m = plan.OwnMount{How: "job", Net: true, Mount: plan.Bind("/tmp", "bind")}
	assert.Equal(t, "mount job,net bind - - /tmp", formatMount(m))
}
