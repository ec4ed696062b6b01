// SPDX-License-Identifier: Apache-2.0

package tomlfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// mistakesMax is the limit of mistakes that are listed for one file.
const mistakesMax = 10

// Mistakes are several errors about one text. As one line they are the first error and the number of
// others.
type Mistakes []error

func (m Mistakes) Error() string {
	return fmt.Sprintf("%v (and %d more mistakes)", m[0], len(m)-1)
}

func (m Mistakes) Unwrap() []error { return m }

// Join returns the errors that are not nil: as nil, the only one, or Mistakes.
func Join(errs ...error) error {
	var all Mistakes
	for _, err := range errs {
		var several Mistakes
		switch {
		case err == nil:
		case errors.As(err, &several):
			all = append(all, several...)
		default:
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// List returns an error as lines: each of several mistakes with the text before them, at most ten, and then the number
// of the others.
func List(err error) []string {
	var all Mistakes
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	before := strings.TrimSuffix(err.Error(), all.Error()) // the name of the file
	var lines []string
	for i, mistake := range all {
		if i == mistakesMax {
			return append(lines, fmt.Sprintf("%s%d more mistakes", before, len(all)-i))
		}
		lines = append(lines, before+mistake.Error())
	}
	return lines
}

// suggest returns the known key that was probably meant instead of an unknown one, as "; did you mean
// ...?".
func suggest(into reflect.Type, key toml.Key) string {
	for i := range key { // of a table and its keys, the table
		if typeAt(into, key[:i+1]) == nil {
			key = key[:i+1]
			break
		}
	}
	best, least := "", 3 // one or two typing errors; in a short word one
	if len(key[len(key)-1]) <= 4 {
		least = 2
	}
	for _, known := range keysAt(into, key[:len(key)-1]) {
		wrong := strings.ToLower(strings.ReplaceAll(key[len(key)-1], "-", "_"))
		d := distance(wrong, known)
		if letters(wrong) == letters(known) {
			d = min(d, 1) // exchanged letters
		}
		if strings.ReplaceAll(wrong, "_", "") == strings.ReplaceAll(known, "_", "") {
			d = 0 // numVfs for num_vfs
		}
		if d < least && d < len(known) {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// keysAt returns the keys that a table may have.
func keysAt(t reflect.Type, table toml.Key) []string {
	at := typeAt(t, table)
	for at != nil && (at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice) {
		at = at.Elem()
	}
	if at == nil || at.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for i := range at.NumField() {
		f := at.Field(i)
		if name := f.Tag.Get("toml"); name != "" && name != "-" {
			keys = append(keys, name)
		} else if f.Anonymous {
			keys = append(keys, keysAt(f.Type, nil)...)
		}
	}
	return keys
}

// letters returns the letters of a word in alphabetical order.
func letters(word string) string {
	all := []byte(word)
	slices.Sort(all)
	return string(all)
}

// distance returns the number of letters to insert, delete or replace between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, above+1, row[j]+1)
		}
	}
	return row[len(b)]
}
