// SPDX-License-Identifier: Apache-2.0

package oneline

import "strings"

// plain are the characters of which a shell takes none for something else.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-"

// ShellWord returns a text as one word of sh(1), in quotes if it needs them.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
