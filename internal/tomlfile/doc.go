// SPDX-License-Identifier: Apache-2.0

// Package tomlfile decodes a configuration in TOML strictly, and names the line of a key in errors: "line
// 7: rail 1: table: ...".
//
// Strictly means that a key without a field is an error, even if it differs from a field only in case.
// The caller checks the values; Refuse makes errors of the same form.
//
// Errors are one line of printable characters. The package reads no files.
package tomlfile
