// SPDX-License-Identifier: Apache-2.0

package tomlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type shelf struct {
	Title string          `toml:"title"`
	Room  map[string]room `toml:"room"`
	Book  []book          `toml:"book"`
}

type room struct {
	Size int `toml:"size"`
}

type book struct {
	Name  string   `toml:"name"`
	Pages int      `toml:"pages"`
	Tags  []string `toml:"tags"`
	Cover struct {
		Colour string `toml:"colour"`
	} `toml:"cover"`
}

const books = `title = "all"
[room.Hall]
size = 1

[[book]]
name = "a"
cover.colour = "red"

  [[ "book" ]] # the second one
tags = [
  "x",
]
pages = 2
[book.cover]
colour = "blue"
[[book]]
name = "c"
`

func isRoomName(key toml.Key) bool { return len(key) == 2 && key[0] == "room" }

func TestRefuseNamesTheLine(t *testing.T) {
	var v shelf
	s, err := Decode(books, &v, isRoomName)
	require.NoError(t, err)
	require.Len(t, v.Book, 3)
	for _, test := range []struct {
		at   *Source
		key  toml.Key
		want string
	}{
		{s, toml.Key{"title"}, "line 1: title: no"},
		{s, toml.Key{"room", "Hall", "size"}, "line 3: room.Hall.size: no"},
		{s, toml.Key{"absent"}, "absent: no"},
		{s.Element("book", 0), toml.Key{"name"}, "line 6: book 1: name: no"},
		{s.Element("book", 0), toml.Key{"cover", "colour"}, "line 7: book 1: cover.colour: no"},
		{s.Element("book", 0), toml.Key{"pages"}, "line 5: book 1: pages: no"}, // is not there
		{s.Element("book", 0), nil, "line 5: book 1: no"},
		{s.Element("book", 1), nil, "line 9: book 2: no"},
		{s.Element("book", 1), toml.Key{"tags"}, "line 10: book 2: tags: no"},
		{s.Element("book", 1), toml.Key{"pages"}, "line 13: book 2: pages: no"},
		{s.Element("book", 1), toml.Key{"cover", "colour"}, "line 15: book 2: cover.colour: no"},
		{s.Element("book", 2), toml.Key{"name"}, "line 17: book 3: name: no"},
		{s.Element("book", 2), toml.Key{"cover", "colour"}, "line 16: book 3: cover.colour: no"},
	} {
		assert.EqualError(t, test.at.Refuse(test.key, "n%s", "o"), test.want)
	}
}

func TestRefuseIsOneLine(t *testing.T) {
	s, err := Decode("", &shelf{}, nil)
	require.NoError(t, err)
	assert.EqualError(t, s.Refuse(toml.Key{"a\nb"}, "x\ty\u202e\xff"), "a?b: x?y??")
}

func TestElementsThatAreNotWrittenAsTables(t *testing.T) {
	for name, text := range map[string]string{
		"inline":      "\nbook = [\n{ name = \"a\" }, { name = \"b\" }]",
		"in a string": "title = \"\"\"\n[[book]]\"\"\"\n[[book]]\nname = \"a\"\n[[book]]\nname = \"b\"",
	} {
		s, err := Decode(text, &shelf{}, nil)
		require.NoError(t, err, name)
		line := s.Line(toml.Key{"book"})
		assert.Equal(t, line, s.Element("book", 1).Line(toml.Key{"name"}), name)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"title = 1":                    `line 1: title: is a number; write a text in quotes`,
		"title = ":                     "line 1: unexpected EOF; expected value; write KEY = VALUE, and text in quotes",
		"a = 1":                        "line 1: a: unknown key",
		"Title = \"x\"\ntitle = \"y\"": "line 1: Title: unknown key; keys are written in lower case",
		"[room.X]\nSize = 1":           "line 2: room.X.Size: unknown key; keys are written in lower case",
		"[[book]]\npages = \"x\"\n[[book]]\npages = 2":           `line 2: book.pages: is a text; write a whole number`,
		"[[book]]\npages = 2\n[[book]]\npages = \"x\"\n[[book]]": `line 4: book.pages: is a text; write a whole number`,
		"[[book]]\nname = \"a\"\n[[book]]\nnmae = \"b\"":         "line 4: book 2: nmae: unknown key; did you mean name?",
		"[[book]]\npagesNum = 1":                                 "line 2: book 1: pagesNum: unknown key",
		"Book = 1":                                               "line 1: Book: is a number; write a list",
		"[[book]]\ncover.x = 1\n[[book]]\ncover.x = 2":           "line 2: book 1: cover.x: unknown key",
		"[book]\nname = \"a\"":                                   `line 1: book: is one table; write [[book]], with two brackets, or a list in [ ]`,
		"book = [\"a\"]":                                         "line 1: book: is a text; write a table",
		"[[book]]\npages = 1.5":                                  "line 2: book.pages: is a number with a point; write a whole number",
		"title = true":                                           "line 1: title: is true or false; write a text in quotes",
		"[[book]]\ntags = \"a\"":                                 "line 2: book.tags: is a text; write a list",
		"\"a\\nb\" = 1":                                          "line 1: a?b: unknown key",
	} {
		_, err := Decode(text, &shelf{}, isRoomName)
		assert.EqualError(t, err, want)
	}
}

func TestDecodeListsAllUnknownKeys(t *testing.T) {
	_, err := Decode("titel = 1\n[rooms.a]\nsize = 1\n[[book]]\nname = \"a\"\npgaes = 2\ntag = []\n[[book]]\ncover.color = 1", &shelf{}, isRoomName)
	assert.EqualError(t, err, "line 1: titel: unknown key; did you mean title? (and 4 more mistakes)")
	assert.Equal(t, []string{
		"x.toml: line 1: titel: unknown key; did you mean title?", "x.toml: line 2: rooms.a: unknown key; did you mean room?",
		"x.toml: line 6: book 1: pgaes: unknown key; did you mean pages?", "x.toml: line 7: book 1: tag: unknown key; did you mean tags?",
		"x.toml: line 9: book 2: cover.color: unknown key; did you mean colour?",
	}, List(fmt.Errorf("x.toml: %w", err)))
	_, err = Decode(strings.Repeat("x", 10)+"1 = 1\n"+"x2 = 1\nx3 = 1\nx4 = 1\nx5 = 1\nx6 = 1\nx7 = 1\nx8 = 1\nx9 = 1\nx10 = 1\nx11 = 1\nx12 = 1", &shelf{}, nil)
	lines := List(err)
	assert.Len(t, lines, 11)
	assert.Equal(t, "2 more mistakes", lines[10])
	assert.Equal(t, []string{"one"}, List(errors.New("one")))
}

func TestSuggest(t *testing.T) {
	type file struct {
		NumVFs   int  `toml:"num_vfs"`
		Readonly bool `toml:"readonly"`
		Mounts   []struct {
			Source string `toml:"source"`
		} `toml:"mounts"`
	}
	for key, want := range map[string]string{
		"numVfs": "num_vfs", "num-vfs": "num_vfs", "readonyl": "readonly", "mount": "mounts", "mounts.sorce": "source", "colour": "", "x": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		assert.Equal(t, want, suggest(reflect.TypeFor[*file](), strings.Split(key, ".")), key)
	}
}

func TestDefinedTwice(t *testing.T) {
	_, err := Decode("[room.a]\nsize = 1\n[room.a]\nsize = 2", &shelf{}, nil)
	assert.EqualError(t, err, "line 3: Key 'room.a' has already been defined. Remove one of them; a table such as [jail.NAME] may occur only once, with all of its keys below it")
}

// Below an embedded struct, a map and an array, too.
func TestDecodeWantsATime(t *testing.T) {
	type times struct {
		Wait time.Duration `toml:"wait"`
	}
	type file struct {
		times
		One  map[string]times `toml:"one"`
		Many []times          `toml:"many"`
	}
	for text, want := range map[string]string{
		"wait = 1.5":           `line 1: wait: is a number with a point; write a time in quotes, such as "20s"`,
		"[one.a]\nwait = true": `line 2: one.a.wait: is true or false; write a time in quotes, such as "20s"`,
		"[[many]]\nwait = [1]": `line 2: many.wait: is a list; write a time in quotes, such as "20s"`,
		"wait = 20":            `line 1: wait: is a number; write a time in quotes, such as "20s"`,
		"[[many]]\nwait = \"1s\"\n[[many]]\nwait = 1": `line 4: many 2: wait: is a number; write a time in quotes, such as "20s"`,
		"[[many]]\nwait = 1\n[[many]]\nwait = \"1s\"": `line 2: many 1: wait: is a number; write a time in quotes, such as "20s"`,
		"[one.a]\nwait = 1":                           `line 2: one.a.wait: is a number; write a time in quotes, such as "20s"`,
		"one.a = 1":                                   `line 1: one.a: is a number; write a table`,
	} {
		_, err := Decode(text, &file{}, nil)
		assert.EqualError(t, err, want)
	}
	_, err := Decode("wait = \"soon\"", &file{}, nil)
	assert.ErrorContains(t, err, "line 1: ")
	t.Log(err)
}

func FuzzDecode(f *testing.F) {
	f.Add(books, 1)
	f.Add("book = [{name = \"a\"}]", 0)
	f.Add("[[book]]\n[[book]]\nx = 1\n[[book.y]]", 1)
	f.Fuzz(func(t *testing.T, text string, i int) {
		var v shelf
		s, err := Decode(text, &v, isRoomName)
		if err == nil {
			err = s.Element("book", max(i, 0)).Refuse(toml.Key{"cover", "colour"}, "%s", text)
		}
		require.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err)
	})
}
