// SPDX-License-Identifier: Apache-2.0

// Package nhc parses the nhc.conf of LBNL Node Health Check (1.4.3), so that a site can
// migrate, and evaluates the assertions of its common check_* lines.
//
// The file is a list of "TARGET || CHECK". A TARGET is a glob, a /regular expression/ (POSIX
// extended) or a {node[01-20],range}, each negated by a leading "!", and is compared with the
// kernel's host name. In NHC a CHECK is a command of bash; here it is a list of settings and of
// check_* of the table in kinds.go with plain words, joined by ";" or "&&": quotes and backslashes
// are supported, variables, substitutions and other operators are not. As in NHC, which reads with
// bash's read, a line first loses one layer of backslashes.
//
// A line that cannot be parsed is never ignored silently: its Line has a Problem. A line that may
// ask not to drain is obeyed also if it is not understood. Nothing is repaired, started or killed:
// options for that are listed in Line.NotDone.
//
// Assertions can hang, on file systems, on other programs, or on a process whose command line
// is locked: each Line has a Domain, to be evaluated in its own process. Each error is one
// line; the package runs on any kernel.
package nhc
