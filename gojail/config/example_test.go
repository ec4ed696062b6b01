// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExampleHasEachKey: gojail.toml.example explains every key that a file may have, and
// testdata/whole.toml, by which TestParseConfigReadsEveryKey goes, has every one.
func TestExampleHasEachKey(t *testing.T) {
	keys := keysOf(reflect.TypeFor[file]())
	require.Contains(t, keys, "jail_root")
	require.Contains(t, keys, "destination")
	for _, path := range []string{"../../gojail.toml.example", "testdata/whole.toml"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, key := range keys {
			assert.Regexp(t, regexp.MustCompile(`(?m)^(#: )?(`+key+` *=|\[+`+key+`[].]|\[+(jail\.\w+|login)\.`+key+`\])`), string(text), path)
		}
	}
}

// keysOf returns the names that the fields of a type have in a file, with those of the tables in it.
func keysOf(t reflect.Type) (keys []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ","); name != "" {
			keys = append(append(keys, name), keysOf(t.Field(i).Type)...)
		}
	}
	return keys
}
