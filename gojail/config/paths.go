// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// FirstName returns the top-level directory of an absolute path: "home" of /home/x.
func FirstName(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
