// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// jailError is an error that names its jail.
type jailError struct {
	jail string
	err  error
}

func (e *jailError) Error() string { return "jail " + e.jail + ": " + e.err.Error() }

func (e *jailError) Unwrap() error { return e.err }

// JailError adds the jail's name to an error that does not begin with it.
func JailError(name string, err error) error {
	if of, ok := err.(*jailError); err == nil || ok && of.jail == name {
		return err
	}
	return &jailError{name, err}
}

// JailErrorf returns an error that begins with the jail's name.
func JailErrorf(name, format string, args ...any) error {
	return &jailError{name, fmt.Errorf(format, args...)}
}

// CutJail returns an error without the jail's name at its beginning, for a line that names the jail itself.
func CutJail(name string, err error) error {
	if of, ok := err.(*jailError); ok && of.jail == name {
		return of.err
	}
	return err
}
