// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// buildPrinter returns the C function as one of Go, for many texts at once.
func buildPrinter(t *testing.T) func(texts []string) []string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "printable")
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-I../../spank", "-I../../include", "-o", program, "testdata/printable.c", "../../spank/common/printable.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return func(texts []string) []string {
		cmd := exec.Command(program)
		cmd.Stdin = strings.NewReader(strings.Join(texts, "\x00") + "\x00")
		var shown, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &shown, &errs
		require.NoError(t, cmd.Run(), "%s", &errs)
		all := strings.Split(strings.TrimSuffix(shown.String(), "\x00"), "\x00")
		require.Len(t, all, len(texts))
		return all
	}
}

// isHidden reports whether a code point must not be shown. Those of planes 14 to 16 are all hidden.
func isHidden(r rune) bool {
	return r >= 0xe0000 || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}

func TestPrintable(t *testing.T) {
	show := buildPrinter(t)
	cases := map[string]string{
		"Größe 数据":         "Größe 数据",
		"a\nb\x1b[2Jc":     "a b [2Jc",
		"\u009b2Jc":        "??2Jc",
		"\x9b2J\x85c":      "?2J?c",
		"a\u202egpj":       "a???gpj",
		"a\u2028b":         "a???b",
		"a\xc3":            "a?",
		"a\xe4\xb8":        "a??",
		"\xc0\xaf":         "??",   // longer than need be
		"\xed\xa0\x80":     "???",  // half a pair
		"\xf4\x90\x80\x80": "????", // above the last code point
		"":                 "",
	}
	for text, want := range cases {
		assert.Equal(t, []string{want}, show([]string{text}), "%q", text)
	}
}

// TestPrintableEachRune: all that is assigned and visible stays, and nothing else.
func TestPrintableEachRune(t *testing.T) {
	var texts []string
	for r := rune(0x20); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			texts = append(texts, string(r))
		}
	}
	for i, shown := range buildPrinter(t)(texts) {
		r, _ := utf8.DecodeRuneInString(texts[i])
		if isHidden(r) {
			require.NotEqual(t, texts[i], shown, "%U", r)
		} else if unicode.IsGraphic(r) {
			require.Equal(t, texts[i], shown, "%U", r)
		}
	}
}

// TestPrintableRandom: any bytes make a line of UTF-8 of the same length.
func TestPrintableRandom(t *testing.T) {
	pieces := []string{"a", "ü", "数", "\x1b", "\x7f", "\x80", "\x9b", "\xc2", "\xe2\x80", "\xe2\x80\xae", "\xf0\x9f", "\xf0\x9f\x98\x80", "\xff", "\u200f", "\n"}
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for range 20000 {
		var text strings.Builder
		for range random.IntN(12) {
			if random.IntN(3) == 0 {
				text.WriteByte(byte(1 + random.IntN(255)))
			} else {
				text.WriteString(pieces[random.IntN(len(pieces))])
			}
		}
		texts = append(texts, text.String())
	}
	for i, shown := range buildPrinter(t)(texts) {
		require.Len(t, shown, len(texts[i]))
		require.True(t, utf8.ValidString(shown), "%q: %q", texts[i], shown)
		require.False(t, strings.ContainsFunc(shown, isHidden), "%q: %q", texts[i], shown)
	}
}
