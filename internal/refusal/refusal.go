// SPDX-License-Identifier: Apache-2.0

// Package refusal marks errors that refuse what a user asked for: a mount, an option, a path. Such an error is no fault
// of the node, and is counted apart from those (docs/metrics.md).
package refusal

import (
	"errors"
	"fmt"
)

// Errorf returns an error that refuses a request, with a text as of fmt.Errorf.
func Errorf(format string, args ...any) error { return Mark(fmt.Errorf(format, args...)) }

// Mark returns err as one that refuses a request, or nil for nil.
func Mark(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}

// Is reports whether err, or an error that it wraps, refuses a request.
func Is(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }
