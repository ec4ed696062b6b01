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

// word is one word of a command.
type word struct {
	raw  string // with its quotes
	text string // without its quotes
	bash string // the first part that only bash can evaluate, "" if there is none
}

// command is a simple command of a line, bash(1) "Simple Commands".
type command struct {
	text  string
	words []word
}

// splitCommands splits a line into simple commands joined by ";" or "&&", without its comment. Other operators
// are errors.
func splitCommands(text string) (all []command, err error) {
	var c command
	start, rest, end := text, text, text // end follows the last word
	for {
		rest = strings.TrimLeft(rest, " \t")
		operator := ""
		switch {
		case strings.HasPrefix(rest, "&&"):
			operator = "&&"
		case strings.HasPrefix(rest, ";") && !strings.HasPrefix(rest, ";;"):
			operator = ";"
		}
		ended := rest == "" || rest[0] == '#'
		if operator == "" && !ended {
			w, after, err := takeWord(rest)
			if err != nil {
				return nil, err
			}
			c.words, rest, end = append(c.words, w), after, after
			continue
		}
		c.text = strings.TrimLeft(strings.TrimSuffix(start, end), " \t") // the last word may end with a blank
		switch {
		case len(c.words) > 0:
			all = append(all, c)
		case operator != "":
			return nil, fmt.Errorf("a command is missing before %.20q", rest)
		}
		if ended {
			return all, nil
		}
		rest = rest[len(operator):]
		start, c = rest, command{}
	}
}

// splitWords splits one simple command as bash does, bash(1) "QUOTING" and "COMMENTS". Constructs that bash
// would expand, run or redirect are errors.
func splitWords(text string) (all []string, err error) {
	for {
		text = strings.TrimLeft(text, " \t")
		if text == "" || text[0] == '#' {
			return all, nil
		}
		w, rest, err := takeWord(text)
		if err == nil && w.bash != "" {
			err = newBashError(w.bash)
		}
		if err != nil {
			return nil, err
		}
		all, text = append(all, w.text), rest
	}
}

// operators are the characters that end a word without quotes. Globs are not included, since NHC disables them.
const operators = "|&;()<>\n"

// braces matches brace expansion, which precedes all other expansions.
var braces = regexp.MustCompile(`\{[^{} ]*(?:,|\.\.)[^{} ]*\}`)

// newBashError returns the error for a text that begins with a construct of bash.
func newBashError(text string) error {
	return fmt.Errorf("%.20q requires bash; write a check_* with plain words", text)
}

var errUnclosed = errors.New("a quote is not closed")

// takeWord returns the first word of text and the rest.
func takeWord(text string) (w word, rest string, err error) {
	var b, bare strings.Builder // bare has only the unquoted characters
	i := 0
	if text[0] == '~' {
		w.bash = text
	}
	for ; i < len(text); i++ {
		c, n := text[i], 0
		switch {
		case c == ' ' || c == '\t' || strings.IndexByte(operators, c) >= 0 && i > 0:
			n = -1
		case strings.IndexByte(operators, c) >= 0:
			return word{}, "", newBashError(text)
		case c == '\'':
			if n = strings.IndexByte(text[i+1:], '\'') + 2; n < 2 {
				return word{}, "", errUnclosed
			}
			b.WriteString(text[i+1 : i+n-1])
		case c == '"':
			if n, err = takeQuoted(text[i:], &b, &w); err != nil {
				return word{}, "", err
			}
		case c == '\\' && i+1 < len(text):
			n = 2
			b.WriteByte(text[i+1])
		case c == '`' || c == '$' && startsExpansion(text[i+1:], "'\""):
			if n, err = w.takeExpansion(text[i:]); err != nil {
				return word{}, "", err
			}
		default:
			b.WriteByte(c)
			bare.WriteByte(c)
			n = 1
		}
		if n < 0 {
			break
		}
		i += n - 1
	}
	if w.bash == "" && braces.MatchString(bare.String()) {
		w.bash = bare.String()
	}
	w.raw, w.text = text[:i], b.String()
	return w, text[i:], nil
}

// takeQuoted copies the text between double quotes, and returns its length with the quotes.
func takeQuoted(text string, to *strings.Builder, w *word) (int, error) {
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			return i + 1, nil
		case c == '`' || c == '$' && startsExpansion(text[i+1:], ""):
			n, err := w.takeExpansion(text[i:])
			if err != nil {
				return 0, err
			}
			i += n - 1
			continue
		case c == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\", text[i+1]) >= 0:
			i++
			c = text[i]
		}
		to.WriteByte(c)
	}
	return 0, errUnclosed
}

// takeExpansion notes that the word has an expansion at the beginning of text, and returns its length: $NAME, ${...},
// $(...), $((...)), `...`, $'...' or $"...".
func (w *word) takeExpansion(text string) (int, error) {
	if w.bash == "" {
		w.bash = text
	}
	switch {
	case text[0] == '`':
		for i := 1; i < len(text); i++ {
			if text[i] == '`' {
				return i + 1, nil
			}
			if text[i] == '\\' {
				i++
			}
		}
		return 0, errUnclosed
	case text[1] == '{' || text[1] == '(':
		return skipBrackets(text[1:])
	case text[1] == '\'':
		for i := 2; i < len(text); i++ {
			if text[i] == '\'' {
				return i + 1, nil
			}
			if text[i] == '\\' {
				i++
			}
		}
		return 0, errUnclosed
	case text[1] == '"':
		return 1, nil // the quotes follow
	}
	n := 2
	for n < len(text) && isName(text[1]) && (isName(text[n]) || isWordy(text[n])) {
		n++
	}
	return n, nil
}

// skipBrackets returns the length of a text in brackets, with a dollar sign before it.
func skipBrackets(text string) (int, error) {
	var open []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return 0, errUnclosed
			}
			i += end + 1
		case '"':
			n, err := takeQuoted(text[i:], &strings.Builder{}, &word{bash: "nested"})
			if err != nil {
				return 0, err
			}
			i += n - 1
		case '(':
			open = append(open, ')')
		case '{':
			open = append(open, '}')
		case ')', '}':
			if open[len(open)-1] != c {
				continue
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 2, nil
			}
		}
	}
	return 0, errors.New("a bracket is not closed")
}

// startsExpansion reports whether a dollar sign before this text starts an expansion; also
// lists further characters that do so here.
func startsExpansion(after, also string) bool {
	return after != "" && (isName(after[0]) || isWordy(after[0]) || strings.IndexByte("({[@*#?$!-"+also, after[0]) >= 0)
}

// isName reports whether a name of a variable can begin with the character.
func isName(c byte) bool { return c == '_' || isWordy(c) && c > '9' }
