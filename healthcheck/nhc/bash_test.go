// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"math/rand"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Match strings are compared with bash itself: of many generated ones, each that is not refused
// matches exactly the texts that it matches in bash.
func TestMatchesAreThoseOfBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	patterns := strings.Fields(`a b * ? [ ] ! ^ - \ . | ( ) + { } 1 2 , $ : [:alpha:] [ab] [!a] [^b] \. \w \b a{1,2} b{2} n[1-2] [[:digit:]]`)
	texts := strings.Fields(`a b * [ ] ! ^ - \ . 1 2 + { n | ( ) $ ab`)
	random := rand.New(rand.NewSource(7))
	some := func(of []string, most int) string {
		var b strings.Builder
		for range random.Intn(most) + 1 {
			b.WriteString(of[random.Intn(len(of))])
		}
		return b.String()
	}
	var in strings.Builder
	var asked, got []string
	for range 6000 {
		kind, pattern, text := "glob", some(patterns, 6), some(texts, 4)
		match := pattern
		if random.Intn(2) == 0 {
			kind, match = "expr", "/"+pattern+"/"
		}
		m, err := parseMatch(match)
		if err != nil || kind == "glob" && (m.not || m.ranges != nil) {
			continue
		}
		in.WriteString(kind + "\n" + pattern + "\n" + text + "\n")
		asked = append(asked, match+" on "+text)
		got = append(got, map[bool]string{true: "0", false: "1"}[m.matches(text)])
	}
	cmd := exec.Command(bash, "-c", `while IFS= read -r kind && IFS= read -r pattern && IFS= read -r text; do
		if [ $kind = glob ]; then [[ $text == $pattern ]]; else [[ $text =~ $pattern ]]; fi; echo $?; done`)
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	require.NoError(t, err)
	want := strings.Fields(string(out))
	require.Len(t, want, len(got))
	require.Greater(t, len(got), 2000)
	for i := range got {
		assert.Equal(t, want[i], got[i], asked[i])
	}
}
