// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
)

const examplePath = "../../health.toml.example"

// example returns the example file, with or without the commented-out lines.
func example(t *testing.T, whole bool) string {
	text, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	if !whole {
		return string(text)
	}
	var b strings.Builder
	for row := range strings.Lines(string(text)) {
		b.WriteString(strings.TrimPrefix(row, "#: "))
	}
	return b.String()
}

// The unchanged example equals the defaults.
func TestExample(t *testing.T) {
	c, err := Parse(example(t, false), "n1", checks.Names())
	require.NoError(t, err)
	assert.Equal(t, Defaults(), c)
}

// The commented-out lines are valid, too; keys with a default show that default.
func TestExampleWithAllKeys(t *testing.T) {
	c, err := Parse(example(t, true), "gpu07", checks.Names())
	require.NoError(t, err)
	shown, defaults := map[string]any{}, map[string]any{}
	leaves(reflect.ValueOf(*c), "", shown)
	leaves(reflect.ValueOf(*Defaults()), "", defaults)
	for key, value := range defaults {
		if !reflect.ValueOf(value).IsZero() {
			assert.Equal(t, value, shown[key], key)
		}
	}
	other, err := Parse(example(t, true), "cpu100", checks.Names())
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, other.Total)
	assert.Zero(t, other.GPU.Count)
	assert.Equal(t, 18, other.GPU.Links)
	assert.True(t, other.Check["vf"].Off)
	assert.Equal(t, check.WarnOnly, other.Check["stuck"].Severity)
}

// Each key has a line in the example; parsing shows that each line has a key.
func TestExampleHasEachKey(t *testing.T) {
	var tree map[string]any
	_, err := toml.Decode(example(t, true), &tree)
	require.NoError(t, err)
	delete(tree, "override")
	has := map[string]bool{}
	for key := range keysOf(tree, "") {
		has[key] = true
	}
	for _, key := range fields(reflect.TypeFor[Config](), "") {
		assert.True(t, has[key], key)
	}
	assert.Contains(t, fields(reflect.TypeFor[Config](), ""), "check.*.bad")
}

// leaves returns the values of a configuration by key, without lists and tables of tables.
func leaves(v reflect.Value, at string, to map[string]any) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := at + f.Tag.Get("toml")
		switch field := v.Field(i); {
		case f.Anonymous:
			leaves(field, at, to)
		case field.Kind() == reflect.Struct:
			leaves(field, key+".", to)
		case field.Kind() != reflect.Map && field.Kind() != reflect.Slice:
			to[key] = field.Interface()
		}
	}
}

// fields returns the keys of a type; "*" stands for a name chosen by the administrator.
func fields(t reflect.Type, at string) (all []string) {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		if t.Kind() == reflect.Map {
			at += "*."
		}
		if t.Elem().Kind() == reflect.Struct {
			return fields(t.Elem(), at)
		}
		return []string{strings.TrimSuffix(at, ".")}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				all = append(all, fields(f.Type, at)...)
			} else {
				all = append(all, fields(f.Type, at+f.Tag.Get("toml")+".")...)
			}
		}
		return all
	}
	return []string{strings.TrimSuffix(at, ".")}
}

// keysOf returns the keys of a decoded text, with "*" as in fields.
func keysOf(tree map[string]any, at string) map[string]bool {
	all := map[string]bool{}
	for key, value := range tree {
		name := at + key
		if at == "check." || at == "xid." {
			name = at + "*"
		}
		var tables []map[string]any
		switch v := value.(type) {
		case map[string]any:
			tables = append(tables, v)
		case []map[string]any:
			tables = v
		default:
			all[name] = true
		}
		for _, table := range tables {
			for k := range keysOf(table, name+".") {
				all[k] = true
			}
		}
	}
	return all
}
