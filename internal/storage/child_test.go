// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/gojail/gojail/internal/nstest"
)

// TestChild is where a child of nstest begins its work.
func TestChild(*testing.T) { nstest.Child() }
