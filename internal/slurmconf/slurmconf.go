// SPDX-License-Identifier: Apache-2.0

// Package slurmconf reads the lines of slurm.conf, and of files in the same format, as Slurm's parser
// does (src/common/parse_config.c).
//
// The callers interpret the lines. The package is not for plugstack.conf, where "\" has no special
// meaning, nor for files of users: it follows their includes anywhere. Files may lie on shared storage
// that hangs. Errors name the file. It works with any kernel.
package slurmconf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// depthMax is the limit of nested includes, which may be circular.
const depthMax = 8

// Read returns the lines of a file as split does, with the lines of included files in place of "Include
// NAME". An error comes with the lines of all files that could be read.
func Read(path string) ([]string, error) { return read(path, 0) }

func read(path string, depth int) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []string
	var errs []error
	for _, line := range split(string(text)) {
		words := strings.Fields(line)
		if len(words) != 2 || !strings.EqualFold(words[0], "Include") {
			all = append(all, line)
			continue
		}
		if depth == depthMax {
			errs = append(errs, errors.New(path+": too many nested includes"))
			continue
		}
		more, err := read(Beside(path, words[1]), depth+1)
		all, errs = append(all, more...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// Beside returns the path of a file that another one names: relative to that one's directory, unless it
// is absolute.
func Beside(path, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
}

// split returns the lines of a text without comments, empty lines and surrounding space, and joins lines
// that end with "\" with the next. A "\" before another character, as in "\#", stands for that character.
func split(text string) []string {
	var all []string
	whole := ""
	add := func() {
		if whole = strings.TrimSpace(whole); whole != "" {
			all = append(all, whole)
		}
		whole = ""
	}
	for row := range strings.Lines(text) {
		// blanks before the backslash may separate words
		part, goesOn := plain(strings.TrimRightFunc(row, unicode.IsSpace))
		if whole += part; !goesOn {
			add()
		}
	}
	add()
	return all
}

// plain returns a row without its comment and escapes, and whether the next row continues it: it ends
// with a backslash, which space or a comment may follow.
func plain(row string) (text string, goesOn bool) {
	var b strings.Builder
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '#':
			return b.String(), false
		case row[i] == '\\':
			if rest := strings.TrimSpace(row[i+1:]); rest == "" || rest[0] == '#' && rest != row[i+1:] {
				return b.String(), true
			}
			i++
		}
		b.WriteByte(row[i])
	}
	return b.String(), false
}
