// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		match, text string
		want        bool
	}{
		// Globs, for the whole text.
		{"*", "", true}, {"gpu*", "gpu17", true}, {"gpu*", "xgpu17", false}, {"gpu?", "gpu17", false}, {"g.u", "gpu", false},
		{"*/sshd", "/usr/sbin/sshd", true}, {"n[0-3]x", "n2x", true}, {"n[!0-3]x", "n2x", false}, {"n[^0-3]x", "n7x", true},
		{"[]x]", "]", true}, {`\*`, "*", true}, {`\*`, "a", false}, {"a[b", "a[b", true}, {"[[:digit:]]*", "7up", true},
		{`[\]]`, "]", true}, {"a+b", "a+b", true}, {"größe*", "größer", true}, {"a*b", "a\nb", true}, {"[a&&b]", "&", true},
		{"", "", true}, {"", "a", false}, {"/", "/", true}, {"{", "{", true},
		// Regular expressions, for any part.
		{"/pu1/", "gpu17", true}, {"/^pu/", "gpu17", false}, {"/^n00[0-5][0-9]$/", "n0017", true}, {"/(^|,)rw(,|$)/", "noatime,rw", true},
		{"/(^|,)rw(,|$)/", "rwx", false}, {`/a\.b/`, "axb", false}, {`/[\.]/`, `\`, true}, {`/[.]/`, `\`, false}, {"/[[:space:]]x/", "a x", true},
		{`/\bfoo\b/`, "a foo b", true}, {"/a{2,3}/", "baab", true}, {`/\(x\)/`, "(x)", true}, {"//", "any", true}, {"/[]]/", "]", true},
		{"/a.b/", "a\nb", true}, {`/\++/`, "a+", true},
		// Ranges of nodes.
		{"{n[01-20]}", "n07", true}, {"{n[01-20]}", "n7", false}, {"{n[01-20]}", "n21", false}, {"{n[20-01]}", "n07", true},
		{"{n[0-42]}", "n07", true}, {"{n[0-42]}", "n7", false}, {"{n[001-42]}", "n007", true}, {"{a1,n[1-5].b,c-9x}", "n3.b", true},
		{"{a1,n[1-5].b,c-9x}", "c-9x", true}, {"{a1,n[1-5].b}", "n3.c", false}, {"{n[1-5]}", "nx", false}, {"{n[1-5]}", "n", false},
		{"{n[10-19]}", "n1", false}, {"{r1-n[0-9]}", "r1-n5", true},
		// Negation.
		{"!gpu*", "gpu17", false}, {"!gpu*", "cpu17", true}, {"!/pu/", "gpu", false}, {"!{n[1-5]}", "n3", false}, {"!{n[1-5]}", "n7", true},
		{"!!x", "!x", false},
	} {
		m, err := parseMatch(c.match)
		require.NoError(t, err, c.match)
		assert.Equal(t, c.want, m.matches(c.text), "%s: %q", c.match, c.text)
	}
}

// Patterns that bash and Go interpret differently, or that bash refuses, are refused.
func TestMatchRefuses(t *testing.T) {
	for _, text := range []string{"/a**/", "/a+?/", "/*a/", "/(*a)/", "/(?i)a/", "/a|+/", `/\<a\>/`, `/\d+/`, `/a\/`, "/[a/", "/a)|(b/", "/(a/", "/^*a/",
		"/[[.a.]]/", "/[[=a=]]/", "/a{1/", "/a{5000}/", "+(a|b)", "x!(a)", "@(a)", "{n[01-20],gpu}", "{n[1,2]}", "{n[0-3]0[1-2]}", "{}", "{n[1-9999999999]}", "[z-a]", "!/(/"} {
		_, err := parseMatch(text)
		assert.Error(t, err, text)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"  a  b\tc ":                 {"a", "b", "c"},
		`a "b c" 'd e'f`:             {"a", "b c", "d ef"},
		`a '' ""`:                    {"a", "", ""},
		`a\ b "c\"d" "e\f" 'g\'`:     {"a b", `c"d`, `e\f`, `g\`},
		"a # b || c":                 {"a"},
		"a#b":                        {"a#b"},
		`-m '!/^a|b$/' "/x$/" /y$/`:  {"-m", "!/^a|b$/", "/x$/", "/y$/"},
		"/a*?[b] {n1} a{b 1..2 x=y~": {"/a*?[b]", "{n1}", "a{b", "1..2", "x=y~"},
		`'{a,b}' "$"`:                {"{a,b}", "$"},
	} {
		got, err := splitWords(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"a | b", "a || b", "a; b", "a && b", "a > b", "a < b", "$HOME", `"$HOME"`, "`a`", "\"`a`\"", "$(a)", `"${a}"`, "$'a'", `$"a"`,
		"~/a", "'a", `"a`, "(a)", "/dev/nvidia{0..7}", "{a,b}", "$((1+1))", "a$1", "a$?"} {
		_, err := splitWords(text)
		assert.Error(t, err, text)
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`a\.b`: "a.b", `a\\.b`: `a\.b`, `\$x`: "$x", "": ""} {
		got, more := unescape(in)
		assert.Equal(t, want, got)
		assert.False(t, more)
	}
	got, more := unescape(`a \`)
	assert.Equal(t, "a ", got)
	assert.True(t, more)
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, "1b": 1, "1k": 1, "7kB": 7, "3m": 3 << 10, "3MB": 3 << 10, "32gb": 32 << 20, "6T": 6 << 30, "1pb": 1 << 40, "2E": 2 << 50} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]int64{"0": 0, "100": 100, "1k": 1000, "2M": 2e6, "3g": 3e9, "1P": 1e15} {
		got, err := parseCount(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "k", "-1", "1.5g", "010", "1kk", "9999999999E", "99999999999999999999", "x", "1b1"} {
		_, err := parseSize(text)
		assert.Error(t, err, text)
		_, err = parseCount(text)
		assert.Error(t, err, text)
	}
}

func TestOptions(t *testing.T) {
	opts, rest, err := parseOptions([]string{"-0t", "5", "-m!x", "-", "-t"}, "0t:m:")
	require.NoError(t, err)
	assert.Equal(t, []option{{'0', ""}, {'t', "5"}, {'m', "!x"}}, opts)
	assert.Equal(t, []string{"-", "-t"}, rest)
	_, rest, err = parseOptions([]string{"-0", "--", "-x"}, "0")
	require.NoError(t, err)
	assert.Equal(t, []string{"-x"}, rest)
	for _, args := range [][]string{{"-x"}, {"-t"}, {"-0:"}} {
		_, _, err = parseOptions(args, "0t:")
		assert.Error(t, err, args)
	}
}
