// SPDX-License-Identifier: Apache-2.0

package attach

import "path/filepath"

// StateDir returns the directory of this package's state below gojail's state directory. It
// does not create it.
func StateDir(state string) string { return filepath.Join(state, "net") }

// IsEmpty reports whether no job has a VF or a control interface on the node. state is
// Site.State.
func IsEmpty(state string) bool { return store(state).isEmpty() }
