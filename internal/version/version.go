// SPDX-License-Identifier: Apache-2.0

// Package version holds the version of gojail, which the file VERSION here says for all parts: this
// package for the Go programs, the Makefile for the plugin and the packages. A tag vVERSION marks the
// commit of a release.
package version

import (
	_ "embed" // of VERSION
	"strings"
)

//go:embed VERSION
var file string

// Text returns the version: "0.1.0".
func Text() string { return strings.TrimSpace(file) }
