// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"Größe 数据 é":   "Größe 数据 é",
		"a\nb\x1b[2Jc": "a?b?[2Jc",
		"\u009b2Jc":    "?2Jc",  // CSI as a code point
		"\x9b2J\x85c":  "?2J?c", // and as a byte
		"a\u202egpj":   "a?gpj",
		"a\u2028b":     "a?b",
		"\xc3":         "?", // cut off
		"\ufffd":       "\ufffd",
	} {
		assert.Equal(t, want, Printable(text), "%q", text)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("Größe\x9b\u202e\xf0\x9f")
	f.Fuzz(func(t *testing.T, text string) {
		shown := Printable(text)
		assert.True(t, utf8.ValidString(shown), "%q", shown)
		assert.False(t, strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", shown)
		assert.Equal(t, shown, Printable(shown))
		if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			assert.Equal(t, text, shown)
		}
	})
}
