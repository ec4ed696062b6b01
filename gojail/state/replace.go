// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/wholefile"
)

// ReplaceFile atomically replaces the file at path, readable by root only. The caller holds a lock.
func ReplaceFile(path, text string) error {
	if err := wholefile.Write(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w; is the state directory full or read-only?", path, oneline.Cause(err))
	}
	return nil
}
