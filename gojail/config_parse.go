// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// file is gojail.toml as it is written; nil is "not there".
type file struct {
	Default   *string             `toml:"default"`
	AllowNone bool                `toml:"allow_none"`
	Scratch   *string             `toml:"scratch"`
	Deadline  *string             `toml:"deadline"`
	Slurm     fileSlurm           `toml:"slurm"`
	Jail      map[string]fileJail `toml:"jail"`
}

type fileSlurm struct {
	Conf  *string  `toml:"conf"`
	Spool *string  `toml:"spool"`
	Munge *string  `toml:"munge"`
	Host  []string `toml:"host"`
}

type fileJail struct {
	Root       *string    `toml:"root"`
	Readonly   bool       `toml:"readonly"`
	Options    []string   `toml:"options"`
	Users      []string   `toml:"users"`
	Groups     []string   `toml:"groups"`
	Slurm      *bool      `toml:"slurm"`
	Tmp        *string    `toml:"tmp"`
	TmpSize    *string    `toml:"tmp_size"`
	ShmSize    *string    `toml:"shm_size"`
	Data       []string   `toml:"data"`
	Host       []string   `toml:"host"`
	Local      []string   `toml:"local"`
	Devices    []string   `toml:"devices"`
	Mounts     []Mount    `toml:"mounts"`
	UserMounts []UserRule `toml:"user_mounts"`
}

// source is the decoded text with what is needed to name a line in it.
type source struct {
	text string
	meta toml.MetaData
}

func parseConfig(text, node string) (*Config, error) {
	c, err := decodeConfig(text, node)
	if err != nil {
		return nil, errors.New(printable(err.Error())) // it may quote what the file holds
	}
	return c, nil
}

func decodeConfig(text, node string) (*Config, error) {
	var f file
	meta, err := toml.Decode(text, &f)
	if err != nil {
		return nil, tomlError(err)
	}
	s := &source{text: text, meta: meta}
	if err := s.unknownKeys(); err != nil {
		return nil, err
	}
	return s.config(&f, node)
}

// tomlError is the library's own message, with its line, as one line.
func tomlError(err error) error {
	var p toml.ParseError
	if errors.As(err, &p) {
		return fmt.Errorf("line %d: %s", p.Position.Line, p.Message)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "toml: "))
}

// unknownKeys refuses what no field took. Keys are compared exactly: the library
// itself would take "Root" for "root", and either one if both are there.
func (s *source) unknownKeys() error {
	for _, key := range s.meta.Undecoded() {
		return s.refuse(key, "unknown key")
	}
	for _, key := range s.meta.Keys() {
		last := key[len(key)-1]
		if isJailName := len(key) == 2 && key[0] == "jail"; !isJailName && last != strings.ToLower(last) {
			return s.refuse(key, "unknown key; keys are written in lower case")
		}
	}
	return nil
}

// refuse makes the error for one key: "line 7: jail.debian.root: must be ...".
func (s *source) refuse(key toml.Key, format string, args ...any) error {
	text := strings.Join(key, ".") + ": " + fmt.Sprintf(format, args...)
	if line := s.line(key); line > 0 {
		return fmt.Errorf("line %d: %s", line, text)
	}
	return errors.New(text)
}

// printable keeps what others wrote from breaking a message into several.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}

// trap refuses any value, so that the decoder tells where it stands.
type trap struct{}

func (trap) UnmarshalTOML(any) error { return errors.New("here") }

// line finds the line of a key, or 0. The library keeps positions to itself but
// puts them into its errors: the text is decoded once more, into a type that
// knows only this key and refuses its value.
func (s *source) line(key toml.Key) int {
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

// lookalikes are the keys beside key that differ from it in upper and lower case
// only; the library would take them for it if they had no field of their own.
func (s *source) lookalikes(key toml.Key) []string {
	var names []string
	last := len(key) - 1
	for _, other := range s.meta.Keys() {
		if len(other) == len(key) && slices.Equal(other[:last], key[:last]) &&
			other[last] != key[last] && strings.EqualFold(other[last], key[last]) && !slices.Contains(names, other[last]) {
			names = append(names, other[last])
		}
	}
	return names
}
