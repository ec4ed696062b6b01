// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// parseGlob converts a bash pattern (bash(1), "Pattern Matching") to a regular expression, for
// a whole text or for any part of it. "*" matches slashes, too.
func parseGlob(glob string, whole bool) (*regexp.Regexp, error) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		c := glob[i]
		switch {
		case strings.IndexByte("?*+@!", c) >= 0 && i+1 < len(glob) && glob[i+1] == '(':
			return nil, errors.New("extended globs are not supported; write a /regular expression/")
		case c == '*':
			b.WriteString(`.*`)
		case c == '?':
			b.WriteByte('.')
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		case c == '[':
			class, n := translateBracket(glob[i:], "!^", true)
			if n == 0 { // never closed: a literal bracket
				b.WriteString(`\[`)
				continue
			}
			b.WriteString(class)
			i += n - 1
		case c >= 0x80:
			b.WriteByte(c)
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	if !whole {
		return compileDotAll(b.String())
	}
	return compileDotAll(`^(?:` + b.String() + `)$`)
}

// compileDotAll compiles an expression in which a dot matches any character, as in globs and
// POSIX expressions.
func compileDotAll(expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(`(?s)` + expr)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the pattern: %w", err)
	}
	return re, nil
}

// translateBracket converts a bracket expression at the beginning of text, and returns its
// length; 0 if it does not end. negate are the characters that negate the expression. escapes
// tells whether a backslash escapes the next character: it does in globs, and is a literal
// backslash in POSIX expressions.
func translateBracket(text, negate string, escapes bool) (class string, length int) {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(text) && strings.IndexByte(negate, text[i]) >= 0 {
		b.WriteByte('^')
		i++
	}
	for first := i; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ']' && i > first:
			return b.String() + "]", i + 1
		case c == '[' && i+1 < len(text) && text[i+1] == ':': // [:alpha:]
			end := strings.Index(text[i:], ":]")
			if end < 0 {
				return "", 0
			}
			b.WriteString(text[i : i+end+2])
			i += end + 1
		case c == '\\' && escapes && i+1 < len(text):
			i++
			b.WriteString(`\` + text[i:i+1])
		case strings.IndexByte(`\[]^&~`, c) >= 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return "", 0
}

// bounds matches an interval such as {1,2}.
var bounds = regexp.MustCompile(`^\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\}`)

// parseERE converts a POSIX extended expression (regex(7)) with the escapes of the C library
// that bash supports. Constructs that the two interpret differently are refused.
func parseERE(expr string) (*regexp.Regexp, error) {
	var b strings.Builder
	last := false // whether the previous item can be repeated
	for i := 0; i < len(expr); i++ {
		c, end := expr[i], i
		switch {
		case c == '[':
			class, n := translateBracket(expr[i:], "^", false)
			if n == 0 || strings.Contains(class, `\[.`) || strings.Contains(class, `\[=`) {
				return nil, errors.New("a bracket expression is not supported")
			}
			b.WriteString(class)
			i += n - 1
			last = true
			continue
		case c == '\\':
			end++
			if end == len(expr) {
				return nil, errors.New("ends with a backslash")
			}
			if strings.IndexByte("<>`'", expr[end]) >= 0 || isWordy(expr[end]) &&
				strings.IndexByte("wWsSbB", expr[end]) < 0 {
				return nil, fmt.Errorf(`\%c is not supported`, expr[end])
			}
			last = expr[end] != 'b' && expr[end] != 'B'
		case strings.IndexByte("*+?{", c) >= 0:
			if !last {
				return nil, fmt.Errorf("there is nothing for %q to repeat", c)
			}
			if c == '{' {
				n := len(bounds.FindString(expr[i:]))
				if n == 0 {
					return nil, errors.New("{ does not begin an interval such as {1,2}")
				}
				end += n - 1
			}
			last = false
		default:
			last = strings.IndexByte("(|^$", c) < 0
		}
		b.WriteString(expr[i : end+1])
		i = end
	}
	return compileDotAll(b.String())
}

// isWordy reports whether a character is a letter or a digit.
func isWordy(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
