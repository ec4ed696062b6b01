// SPDX-License-Identifier: Apache-2.0

// Package contract is the Go side of include/gojail.h: the limits, versions and paths that the C side
// also has.
package contract
