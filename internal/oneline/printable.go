// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe returns a text that may quote what users write as one line for a terminal: Text, made Printable.
func Safe(text string) string { return Printable(Text(text)) }

// Printable replaces characters by '?' that could break a message into lines, control the terminal that
// shows it (including C1 controls) or change its direction, and bytes that are not UTF-8. make_printable
// in spank/common/printable.c does the same in C.
func Printable(text string) string {
	var valid strings.Builder
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			r = '?'
		}
		valid.WriteRune(r)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, valid.String())
}

// plain are the characters of which a shell takes none for something else.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-"

// ShellWord returns a text as one word of sh(1), in quotes if it needs them.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
