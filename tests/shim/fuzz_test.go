// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
)

// pieces are parts of mount lists, good and bad ones.
var pieces = []string{"/", "/a", "/data/set", ":", ":ro", ":rw", ",", "..", ".", " ", "\t", "\x7f", "\xff", "%n", "%s%n", "none",
	"ro", strings.Repeat("x", 300), strings.Repeat("/y", 700), strings.Repeat("/a:/b,", 2000)}

// randomMountList returns a random list of mounts as --jail-mount has it.
func randomMountList(random *rand.Rand) string {
	if random.IntN(4) == 0 { // a good one, as people write them
		return "/data/a:/mnt/a" + []string{"", ":ro", ":rw", ",/data/b:/mnt/b:ro"}[random.IntN(4)]
	}
	var text strings.Builder
	for range 1 + random.IntN(8) {
		text.WriteString(pieces[random.IntN(len(pieces))])
	}
	return text.String()
}

// The shim's parser runs under the sanitizers on random lists, and never refuses
// on the submit host what the node's parser, which judges, would take.
func TestMountListsRandom(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	random := rand.New(rand.NewPCG(1, 2))
	var lists []string
	var input bytes.Buffer
	for range 20000 {
		list := randomMountList(random)
		lists = append(lists, list)
		input.WriteString(list + "\n")
	}
	cmd := exec.Command(h.program, h.plugin, "judge")
	cmd.Env = []string{"HOST_CONTEXT=local"}
	cmd.Stdin = &input
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%.2000s", out)
	results := strings.Fields(string(out))
	require.Equal(t, len(lists), len(results))
	taken := 0
	for i, list := range lists {
		if _, err := config.ParseUserMounts(list); err == nil && list != "" {
			taken++
			assert.Equal(t, "0", results[i], "%.200q", list)
		}
	}
	assert.Greater(t, taken, 1000, "the lists are too bad to say anything")
}
