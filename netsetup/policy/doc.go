// SPDX-License-Identifier: Apache-2.0

// Package policy determines the policy of each VF of a node, and with it the VFs of each
// rail. It is pure: it computes lists from a configuration and an inventory. Package
// provision makes the VFs.
//
// Errors are mistakes in network.toml that depend on the node's cards; several are
// joined, one line each.
package policy
