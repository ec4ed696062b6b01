// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type value struct {
	A int `json:"a"`
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var v value
	require.ErrorIs(t, Read(path, &v, nil), fs.ErrNotExist)
	require.NoError(t, Write(path, value{7}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "{\n  \"a\": 7\n}\n", string(text))
	require.NoError(t, ReadStrict(path, &v, func() error { return nil }))
	assert.Equal(t, value{7}, v)
}

func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	for text, want := range map[string]string{
		"":             " is damaged: EOF",
		"{\"a\":":      " is damaged: unexpected EOF",
		"{\"a\":1}x":   " is damaged: text after its end",
		"{\"a\":1} {}": " is damaged: text after its end",
		"{\"a\":\"\"}": " is damaged: json: cannot unmarshal string into Go struct field value.a of type int",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, read := range []func(string, any, func() error) error{Read, ReadStrict} {
			err := read(path, &value{}, nil)
			require.EqualError(t, err, path+want)
			var damaged *DamagedError
			require.ErrorAs(t, err, &damaged)
		}
	}
}

func TestUnknownFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"a": 1, "b": 2}`), 0o600))
	require.NoError(t, Read(path, &value{}, nil))
	require.ErrorContains(t, ReadStrict(path, &value{}, nil), `unknown field "b"`)
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	require.NoError(t, Write(path, value{0}))
	missing := errors.New("a is missing")
	err := Read(path, &value{}, func() error { return missing })
	require.EqualError(t, err, path+" is damaged: a is missing")
	require.ErrorIs(t, err, missing)
}
