// SPDX-License-Identifier: Apache-2.0

// Package output bounds what is kept of the output of a program that may write without end.
package output

import "bytes"

// Head keeps the first Most bytes of what is written to it, and drops the rest.
type Head struct {
	Most int
	kept bytes.Buffer
}

func (h *Head) Write(text []byte) (int, error) {
	h.kept.Write(text[:min(len(text), h.Most-h.kept.Len())])
	return len(text), nil
}

// Bytes returns what was kept.
func (h *Head) Bytes() []byte { return h.kept.Bytes() }
