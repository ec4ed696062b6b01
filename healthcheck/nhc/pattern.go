// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// parseGlob makes an expression of a pattern of bash's (bash(1), "Pattern
// Matching"), for a whole text or for any part of it. "*" goes over slashes.
func parseGlob(glob string, whole bool) (*regexp.Regexp, error) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		c := glob[i]
		switch {
		case strings.IndexByte("?*+@!", c) >= 0 && i+1 < len(glob) && glob[i+1] == '(':
			return nil, errors.New("extended globs are not understood; write a /regular expression/")
		case c == '*':
			b.WriteString(`.*`)
		case c == '?':
			b.WriteByte('.')
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		case c == '[':
			class, n := bracket(glob[i:], "!^", true)
			if n == 0 { // never closed: a bracket
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
		return compile(b.String())
	}
	return compile(`^(?:` + b.String() + `)$`)
}

// compile has a dot that stands for any character, as in globs and POSIX expressions.
func compile(expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(`(?s)` + expr)
	if err != nil {
		return nil, fmt.Errorf("is not understood: %w", err)
	}
	return re, nil
}

// bracket translates a bracket expression at the beginning of text, and tells how
// long it is; 0 if it does not end. negate are the characters that negate it, and
// escapes is whether a backslash takes the meaning off the next character: in
// globs it does, in POSIX expressions it is a backslash.
func bracket(text, negate string, escapes bool) (class string, length int) {
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

// bounds is how often something is repeated.
var bounds = regexp.MustCompile(`^\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\}`)

// parseERE makes an expression of a POSIX extended one (regex(7)) with the escapes
// of the C library that bash knows. What the two read differently is refused.
func parseERE(expr string) (*regexp.Regexp, error) {
	var b strings.Builder
	last := false // there is something that can be repeated
	for i := 0; i < len(expr); i++ {
		c, end := expr[i], i
		switch {
		case c == '[':
			class, n := bracket(expr[i:], "^", false)
			if n == 0 || strings.Contains(class, `\[.`) || strings.Contains(class, `\[=`) {
				return nil, errors.New("a bracket expression is not understood")
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
			if strings.IndexByte("<>`'", expr[end]) >= 0 || isWordy(expr[end]) && strings.IndexByte("wWsSbB", expr[end]) < 0 {
				return nil, fmt.Errorf(`\%c is not understood`, expr[end])
			}
			last = expr[end] != 'b' && expr[end] != 'B'
		case strings.IndexByte("*+?{", c) >= 0:
			if !last {
				return nil, fmt.Errorf("there is nothing that %q can repeat", c)
			}
			if c == '{' {
				n := len(bounds.FindString(expr[i:]))
				if n == 0 {
					return nil, errors.New("{ is not the beginning of a {1,2}")
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
	return compile(b.String())
}

func isWordy(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
