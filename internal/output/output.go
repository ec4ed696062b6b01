// SPDX-License-Identifier: Apache-2.0

// Package output limits the stored output of a program that may write without end.
package output

import "bytes"

// Head stores the first Most bytes of its input and drops the rest.
type Head struct {
	Most int
	kept bytes.Buffer
}

func (h *Head) Write(text []byte) (int, error) {
	h.kept.Write(text[:min(len(text), h.Most-h.kept.Len())])
	return len(text), nil
}

// Bytes returns the stored bytes.
func (h *Head) Bytes() []byte { return h.kept.Bytes() }
