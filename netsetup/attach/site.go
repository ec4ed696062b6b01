// SPDX-License-Identifier: Apache-2.0

package attach

import "path/filepath"

// Dir returns where this package keeps its state, below gojail's. Nothing makes it here.
func Dir(state string) string { return filepath.Join(state, "net") }

// Empty reports whether no job has anything on a node; state is Site.State.
func Empty(state string) bool { return store(state).empty() }
