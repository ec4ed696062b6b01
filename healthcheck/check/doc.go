// SPDX-License-Identifier: Apache-2.0

// Package check defines the types of the health check: a Check is a row of the table in package
// checks, a Host is the node that it judges, and a Finding with its Verdict is the result. The
// package has no logic and imports no other package of gojail.
package check
