// SPDX-License-Identifier: Apache-2.0

package tomlfile

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/internal/oneline"
)

// decodeError returns the library's error with its line, as one line.
func decodeError(text string, into any, err error) error {
	var p toml.ParseError
	if errors.As(err, &p) {
		return fmt.Errorf("line %d: %s%s", p.Position.Line, oneline.Printable(p.Message), remedyFor(p.Message))
	}
	message := strings.TrimPrefix(firstMismatch(text, into, err).Error(), "toml: ")
	return errors.New(oneline.Printable(inWords(message, reflect.TypeOf(into))))
}

// remedyFor returns what to do about an error of the library's parser.
func remedyFor(message string) string {
	if strings.Contains(message, "already been defined") || strings.Contains(message, "was already created") {
		return " Remove one of them; a table such as [jail.NAME] may occur only once, with all of its keys below it"
	}
	if strings.Contains(message, "expected value") || strings.Contains(message, "expected a") {
		return "; write KEY = VALUE, and text in quotes"
	}
	return ""
}

// firstMismatch returns the error of the first table that has one. For a value of a wrong type the
// library names the last line with such a key, which may be in another element of an array, so the text
// is cut after each table.
func firstMismatch(text string, into any, err error) error {
	header := regexp.MustCompile(`(?m)^[ \t]*\[`) // compiled here, as few files have such an error
	cuts := header.FindAllStringIndex(text, -1)
	sort.Search(len(cuts), func(i int) bool {
		v := reflect.New(reflect.TypeOf(into).Elem())
		_, cutErr := toml.Decode(text[:cuts[i][0]], v.Interface())
		var p toml.ParseError
		if cutErr == nil || errors.As(cutErr, &p) {
			return false
		}
		err = cutErr
		return true
	})
	return err
}

var (
	found = map[string]string{
		"string": "a text", "int64": "a number", "float64": "a number with a point", "bool": "true or false",
		"[]any":          "a list",
		"map[string]any": "a table", "[]map[string]any": "an array of tables", "time.Time": "a time",
	}
	wanted = map[string]string{
		"string": "a text in quotes", "integer": "a whole number", "boolean": "true or false", "slice": "a list",
		"table": "a table", "map": "a table",
	}
)

const aTime = `a time in quotes, such as "20s"`

// inWords translates a message about Go's types to TOML's terms, or returns it unchanged.
func inWords(message string, into reflect.Type) string {
	// The library's message for a value of a wrong type, in terms of Go's types.
	mismatch := regexp.MustCompile(`^(line [0-9]+) \(last key "(.*)"\): ` +
		`(?:incompatible types: TOML value has type (.*); destination has type (.*)|type mismatch for .*: expected ` +
		`(table) but found (.*))$`)
	m := mismatch.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	line, key, is, want := m[1], m[2], found[m[3]+m[6]], wanted[m[4]+m[5]]
	if typeAt(into, strings.Split(key, ".")) == reflect.TypeFor[time.Duration]() {
		want = aTime
	}
	switch {
	case is == "" || want == "":
		return message
	case is == "a table" && want == "a list":
		return fmt.Sprintf("%s: %s: is one table; write [[%s]], with two brackets, or a list in [ ]", line, key, key)
	case is == "an array of tables" && want == "a table":
		return fmt.Sprintf("%s: %s: is a single table; write [%s], with one bracket", line, key, key)
	}
	return fmt.Sprintf("%s: %s: is %s; write %s", line, key, is, want)
}

// typeAt returns the type of a key below a type, or nil if it is unknown.
func typeAt(t reflect.Type, key []string) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return typeAt(t.Elem(), key)
	}
	if len(key) == 0 {
		return t
	}
	switch t.Kind() {
	case reflect.Map:
		return typeAt(t.Elem(), key[1:])
	case reflect.Struct:
		for i := range t.NumField() { // reflect.VisibleFields is slower than all else here
			f := t.Field(i)
			if f.Tag.Get("toml") == key[0] {
				return typeAt(f.Type, key[1:])
			}
			if f.Anonymous {
				if of := typeAt(f.Type, key); of != nil {
					return of
				}
			}
		}
	}
	return nil
}
