// SPDX-License-Identifier: Apache-2.0

// Package version holds the version of gojail that the Makefile gives to the Go programs, as it does to the plugin and
// the packages. packaging/version makes it from CHANGELOG.md and the commit.
package version

// text is set by the linker.
var text = "0.0.0~devel"

// Text returns the version: "0.2.0", "0.2.0~git812.d74b302" for a commit before that release, or "0.0.0~devel" if the
// Makefile did not build the program.
func Text() string { return text }
