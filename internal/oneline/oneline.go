// SPDX-License-Identifier: Apache-2.0

// Package oneline makes messages of one line: it joins several errors (errors.Join uses a line for each, of which logs,
// tables and answers to Slurm would show only the first), and replaces what would break a line.
package oneline

import "strings"

// Text returns text with its lines joined by "; ".
func Text(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "; ")
}

// Error returns err with a message of one line, or nil for nil. errors.Is and errors.As find the errors
// that err wraps.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return &lineError{err}
}

type lineError struct{ err error }

func (e *lineError) Error() string { return Text(e.err.Error()) }
func (e *lineError) Unwrap() error { return e.err }
