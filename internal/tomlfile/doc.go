// SPDX-License-Identifier: Apache-2.0

// Package tomlfile decodes a configuration in TOML strictly, and names the line
// of a key in errors: "line 7: rail 1: table: ...".
//
// Strictly: a key that no field takes is an error, and so is one that differs
// from a field in upper and lower case only. What the values mean is the
// caller's to check; for that, Refuse makes an error of the same look.
//
// Errors are one line of printable characters. Nothing here reads a file.
package tomlfile
