// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// unescape removes the layer of backslashes that bash's read removes, and reports whether the
// next line continues this one.
func unescape(line string) (text string, more bool) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			b.WriteByte(line[i])
			continue
		}
		if i++; i == len(line) {
			return b.String(), true
		}
		b.WriteByte(line[i])
	}
	return b.String(), false
}

// splitWords splits a simple command as bash does, bash(1) "QUOTING" and "COMMENTS". Constructs
// that bash would expand, run or redirect are errors.
func splitWords(text string) ([]string, error) {
	var all []string
	for {
		text = strings.TrimLeft(text, " \t")
		if text == "" || text[0] == '#' {
			return all, nil
		}
		word, rest, err := takeWord(text)
		if err != nil {
			return nil, err
		}
		all, text = append(all, word), rest
	}
}

// special are the characters that bash interprets without quotes. Globs are not included, since
// NHC disables them.
const special = "|&;()<>`\n"

// braces matches brace expansion, which precedes all other expansions.
var braces = regexp.MustCompile(`\{[^{} ]*(?:,|\.\.)[^{} ]*\}`)

var errBash = errors.New("requires bash; write a check_* with plain words")

// takeWord returns the first word of text and the rest.
func takeWord(text string) (word, rest string, err error) {
	var b, bare strings.Builder // bare has only the unquoted characters
	if text[0] == '~' {
		return "", "", fmt.Errorf("%.20q %w", text, errBash)
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ' || c == '\t':
			rest = text[i:]
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return "", "", errors.New("a quote is not closed")
			}
			b.WriteString(text[i+1 : i+1+end])
			i += end + 1
			continue
		case c == '"':
			n, err := takeQuoted(text[i+1:], &b)
			if err != nil {
				return "", "", err
			}
			i += n
			continue
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
			continue
		case strings.IndexByte(special, c) >= 0 || c == '$' && startsExpansion(text[i+1:], "'\""):
			return "", "", fmt.Errorf("%.20q %w", text[i:], errBash)
		default:
			b.WriteByte(c)
			bare.WriteByte(c)
			continue
		}
		break
	}
	if braces.MatchString(bare.String()) {
		return "", "", fmt.Errorf("%.20q %w", bare.String(), errBash)
	}
	return b.String(), rest, nil
}

// takeQuoted copies the text up to the next double quote, and returns its length.
func takeQuoted(text string, to *strings.Builder) (int, error) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			return i + 1, nil
		case c == '`' || c == '$' && startsExpansion(text[i+1:], ""):
			return 0, fmt.Errorf("%.20q %w", text[i:], errBash)
		case c == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\", text[i+1]) >= 0:
			i++
			c = text[i]
		}
		to.WriteByte(c)
	}
	return 0, errors.New("a quote is not closed")
}

// startsExpansion reports whether a dollar sign before this text starts an expansion; also
// lists further characters that do so here.
func startsExpansion(after, also string) bool {
	if after == "" {
		return false
	}
	c := after[0]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("({[@*#?$!-"+also, c) >= 0
}
