// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// IsBind reports whether a mount is a bind mount.
func IsBind(m specs.Mount) bool {
	return m.Type == "bind" || slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind")
}
