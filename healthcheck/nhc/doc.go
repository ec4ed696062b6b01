// SPDX-License-Identifier: Apache-2.0

// Package nhc reads the nhc.conf of LBNL Node Health Check (1.4.3), so that a site
// can move over, and makes the assertions of its common check_* lines.
//
// The file is a list of "TARGET || CHECK". A TARGET is a glob, a /regular
// expression/ (POSIX extended) or a {node[01-20],range}, each with "!" before it
// for the contrary, and is compared with the kernel's host name. A CHECK is a
// command of bash there; here it is a check_* of the table in kinds.go with plain
// words: quotes and backslashes are understood, variables, substitutions and
// operators are not. Like NHC, which reads with bash's read, a line loses one layer
// of backslashes before anything else.
//
// What is not understood is never left out in silence: its Line says why. Nothing
// is ever repaired, started or killed: options for that are named in Line.NotDone.
//
// Assertions can hang, on file systems, on other programs, or on a process whose
// command line is locked: each Line has a Domain, to be looked at in a process of
// its own. Errors are one line; any kernel will do.
package nhc
