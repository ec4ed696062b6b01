// SPDX-License-Identifier: Apache-2.0

package pciaddress

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0000:86:00.0":      "0000:86:00.0",
		"0000:86:1F.7":      "0000:86:1f.7",
		"C0A4:00:02.0":      "c0a4:00:02.0",
		"10000:01:00.0":     "10000:01:00.0",
		"abcdef:01:00.0":    "abcdef:01:00.0",
		"00010000:1B:00.0":  "10000:1b:00.0",
		"00000000:1B:00.0":  "0000:1b:00.0",
		"000012:01:00.0":    "0012:01:00.0",
		"":                  "",
		"86:00.0":           "",
		"0000:86:00":        "",
		"0000:86:20.0":      "",
		"0000:86:00.8":      "",
		"000:86:00.0":       "",
		"123456789:86:00.0": "",
		"0000:86:00.0\n":    "",
		"../../0000:86:0":   "",
	} {
		got, ok := Parse(text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, want != "", ok, text)
		assert.Equal(t, want != "" && want == text, IsValid(text), text)
	}
}
