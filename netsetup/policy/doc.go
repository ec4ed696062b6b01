// SPDX-License-Identifier: Apache-2.0

// Package policy tells which of a configuration's policies each VF of a node
// falls under, and so which VFs each rail has. It is pure: configuration and
// inventory in, lists out. What is made of them is package provision's.
//
// Errors are mistakes in network.toml that only the node's cards bring to light;
// several are joined, a line each.
package policy
