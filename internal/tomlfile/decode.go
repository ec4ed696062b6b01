// SPDX-License-Identifier: Apache-2.0

// Package tomlfile decodes a configuration in TOML strictly, and names the line of a key in errors: "line
// 7: rail 1: table: ...".
//
// Strictly means that a key without a field is an error, even if it differs from a field only in case.
// The caller checks the values; Refuse makes errors of the same form.
//
// Errors are one line of printable characters. The package reads no files.
package tomlfile

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Decode decodes text into the struct to which into points, and keeps what names the lines of errors. Keys for which
// free returns true are names that users choose, so they may have upper-case letters. free may be nil.
func Decode(text string, into any, free func(toml.Key) bool) (*Source, error) {
	meta, err := toml.Decode(text, into)
	if err != nil {
		return nil, decodeError(text, into, err)
	}
	s := &Source{text: text, meta: meta, arrays: map[string][]int{}}
	if err := s.refuseUnknown(reflect.TypeOf(into)); err != nil {
		return nil, err
	}
	for _, key := range meta.Keys() {
		switch meta.Type(key...) {
		case "Hash", "ArrayHash", "Bool": // a time of one of these types would not have been decoded
			continue
		}
		if typeAt(reflect.TypeOf(into), key) != reflect.TypeFor[time.Duration]() {
			continue
		}
		if err := s.refuseNumber(key); err != nil {
			return nil, err
		}
	}
	// The library would accept "Root" for "root", and either one if both exist.
	for _, key := range meta.Keys() {
		last := key[len(key)-1]
		if last != strings.ToLower(last) && (free == nil || !free(key)) {
			return nil, s.refuseFirst(key, "unknown key; keys are written in lower case")
		}
	}
	return s, nil
}

// refuseUnknown returns an error with the keys for which the struct has no field. For an unknown table it does not name
// the keys in the table.
func (s *Source) refuseUnknown(into reflect.Type) error {
	var errs []error
	unknown := map[string]bool{}
	for _, key := range s.meta.Undecoded() {
		if name := key.String(); !unknown[name] && !unknown[key[:len(key)-1].String()] {
			errs = append(errs, s.refuseFirst(key, "unknown key"+suggest(into, key)))
		}
		unknown[key.String()] = true
	}
	return Join(errs...)
}

// refuseNumber refuses a number as a time, because the library would take 20 for 20 ns.
func (s *Source) refuseNumber(key toml.Key) error {
	const number, text = "Integer", "is a number; write " + aTime
	starts := s.headers(key[0])
	for i := range starts {
		e := s.Element(key[0], i)
		if e.cut(); e.meta.Type(key...) == number {
			return e.Refuse(key[1:], text)
		}
	}
	if len(starts) == 0 && s.meta.Type(key...) == number {
		return s.Refuse(key, text)
	}
	return nil
}

// refuseFirst returns the error of Refuse for a key of the whole text, at its first occurrence.
func (s *Source) refuseFirst(key toml.Key, text string) error {
	for i := range s.headers(key[0]) {
		e := s.Element(key[0], i)
		e.cut()
		if len(key) > 1 && slices.ContainsFunc(e.meta.Keys(), func(k toml.Key) bool { return slices.Equal(k, key) }) {
			return e.Refuse(key[1:], "%s", text)
		}
	}
	return s.Refuse(key, "%s", text)
}
