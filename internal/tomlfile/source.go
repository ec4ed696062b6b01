// SPDX-License-Identifier: Apache-2.0

package tomlfile

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/internal/oneline"
)

// Source is a decoded text, or one element of an array of tables in it, with what is needed to name
// lines.
type Source struct {
	text   string
	meta   toml.MetaData
	arrays map[string][]int // start of each [[array]]; nil if unknown

	// The rest is for elements only, whose text and meta are set when needed.
	whole *Source
	array string // "rail"
	index int
	line  int // line of its header
}

// Element returns the i-th [[array]] of the text, from 0. Its keys are relative to it. Only top-level
// arrays have elements.
func (s *Source) Element(array string, i int) *Source {
	e := &Source{whole: s, array: array, index: i}
	if starts := s.headers(array); i < len(starts) {
		e.line = strings.Count(s.text[:starts[i]], "\n") + 1
	} else { // written in another form than [[array]]
		e.line = s.Line(toml.Key{array})
	}
	return e
}

// cut sets an element's own text. Empty lines above it keep the line numbers, and each of its keys occurs
// only once.
func (s *Source) cut() {
	if s.whole == nil || s.text != "" {
		return
	}
	starts := s.whole.headers(s.array)
	if s.index >= len(starts) {
		return
	}
	end := len(s.whole.text)
	if s.index+1 < len(starts) {
		end = starts[s.index+1]
	}
	s.text = strings.Repeat("\n", s.line-1) + s.whole.text[starts[s.index]:end]
	var any map[string]any
	s.meta, _ = toml.Decode(s.text, &any) // a part of a text that was decoded before
}

// headers returns the start of each [[array]], or nil if it is unknown.
func (s *Source) headers(array string) []int {
	if starts, known := s.arrays[array]; known {
		return starts
	}
	var starts []int
	if s.meta.Type(array) == "ArrayHash" { // otherwise the expression is slower than all else
		count := 0
		for _, key := range s.meta.Keys() {
			if len(key) == 1 && key[0] == array {
				count++
			}
		}
		line := regexp.MustCompile(`(?m)^[ \t]*\[\[[ \t]*["']?` + regexp.QuoteMeta(array) + `["']?[ \t]*\]\]`)
		if found := line.FindAllStringIndex(s.text, -1); len(found) == count {
			for _, at := range found {
				starts = append(starts, at[0])
			}
		}
	}
	s.arrays[array] = starts
	return starts
}

// Refuse returns the error for one key: "line 7: jail.debian.root: must be ...", or in an element "line
// 7: rail 2: table: ...", counted from 1. Without a key the error is for the element itself.
func (s *Source) Refuse(key toml.Key, format string, args ...any) error {
	line := s.Line(key)
	text := fmt.Sprintf(format, args...)
	if len(key) > 0 {
		text = strings.Join(key, ".") + ": " + text
	}
	if s.whole != nil {
		text = fmt.Sprintf("%s %d: %s", s.array, s.index+1, text)
	}
	text = oneline.Printable(text)
	if line > 0 {
		return fmt.Errorf("line %d: %s", line, text)
	}
	return errors.New(text)
}

// Line returns the line of a key, from 1. For a missing key it is the line of the element's header, or 0;
// for a key with several occurrences, below an array in the element, the last one.
func (s *Source) Line(key toml.Key) int {
	if len(key) == 0 {
		return s.line
	}
	if s.whole != nil {
		key = append(toml.Key{s.array}, key...)
	}
	s.cut()
	if line := s.find(key); line > 0 {
		return line
	}
	return s.line
}

// TableLine returns the line of the i-th [[table]] of that key, from 0, or 0 if it is written in another
// form.
func (s *Source) TableLine(i int, key ...string) int {
	var parts []string
	for _, part := range key {
		parts = append(parts, `["']?`+regexp.QuoteMeta(part)+`["']?`)
	}
	// only for an error
	header := regexp.MustCompile(`(?m)^[ \t]*\[\[[ \t]*` + strings.Join(parts, `[ \t]*\.[ \t]*`) + `[ \t]*\]\]`)
	if found := header.FindAllStringIndex(s.text, -1); i < len(found) {
		return strings.Count(s.text[:found[i][0]], "\n") + 1
	}
	return 0
}

// trap refuses any value, so that the decoder reports its position.
type trap struct{}

func (trap) UnmarshalTOML(any) error { return errors.New("here") }

// find returns the line of a key, or 0. The library does not export positions but puts them into its
// errors, so find decodes the text again, into a type that has only this key and refuses its value.
func (s *Source) find(key toml.Key) int {
	t := reflect.TypeFor[trap]()
	for i := len(key) - 1; i >= 0; i-- {
		if i < len(key)-1 && strings.HasPrefix(s.meta.Type(key[:i+1]...), "Array") {
			t = reflect.SliceOf(t)
		}
		fields := []reflect.StructField{tagged("Key", key[i], t)}
		for n, other := range s.lookalikes(key[:i+1]) {
			fields = append(fields, tagged(fmt.Sprintf("Other%d", n), other, reflect.TypeFor[any]()))
		}
		t = reflect.StructOf(fields)
	}
	_, err := toml.Decode(s.text, reflect.New(t).Interface())
	var p toml.ParseError
	if errors.As(err, &p) {
		return p.Position.Line
	}
	return 0
}

func tagged(field, key string, t reflect.Type) reflect.StructField {
	return reflect.StructField{Name: field, Type: t, Tag: reflect.StructTag("toml:" + strconv.Quote(key))}
}

// lookalikes returns the keys beside key that differ from it only in case; the library would take them
// for key if they had no field of their own.
func (s *Source) lookalikes(key toml.Key) []string {
	var names []string
	last := len(key) - 1
	for _, other := range s.meta.Keys() {
		if len(other) == len(key) && slices.Equal(other[:last], key[:last]) &&
			other[last] != key[last] && strings.EqualFold(other[last], key[last]) &&
			!slices.Contains(names, other[last]) {
			names = append(names, other[last])
		}
	}
	return names
}
