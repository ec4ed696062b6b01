// SPDX-License-Identifier: Apache-2.0

// Package statefile stores a value as JSON in a file of root that may be damaged by a crash of the node,
// a full disk, a person, or a later version of the program.
package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gojail/gojail/internal/wholefile"
)

// DamagedError is the error for a file that exists but cannot be used.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err) }
func (e *DamagedError) Unwrap() error { return e.Err }

// Read reads the file at path into a pointer. check, if not nil, returns an error for a damaged value.
// Read returns fs.ErrNotExist if the file does not exist, and a DamagedError if it cannot be used. It
// ignores unknown fields, which a later version may have written.
func Read(path string, into any, check func() error) error { return read(path, into, check, false) }

// ReadStrict reads a file as Read does, but unknown fields count as damage. It is for values that must be understood as
// a whole.
func ReadStrict(path string, into any, check func() error) error {
	return read(path, into, check, true)
}

func read(path string, into any, check func() error, strict bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if strict {
		decoder.DisallowUnknownFields()
	}
	err = decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("text after its end")
		}
	}
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return &DamagedError{path, err}
	}
	return nil
}

// Encode returns the text of a value, as Write writes it.
func Encode(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// Write replaces the file at path atomically, and returns when it is on the disk.
func Write(path string, value any) error {
	text, err := Encode(value)
	if err != nil {
		return err
	}
	return wholefile.Save(path, text, 0o600)
}
