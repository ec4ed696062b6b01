// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// HostDirs are the directories of the host that make up the stage, where programs, libraries and
// configuration are the node's own.
var HostDirs = []string{
	"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc",
	"dev", "proc", "sys", "run", "var", "opt", "nix",
}

// FirstName returns the top-level directory of an absolute path: "home" of /home/x.
func FirstName(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
