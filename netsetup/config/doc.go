// SPDX-License-Identifier: Apache-2.0

// Package config reads network.toml: the VFs that nodes make, the networks (rails) that a
// job gets, and the pools of its addresses.
//
//	Load, Parse     load.go      the file, checked as one node sees it
//	Policy          policy.go, selector.go
//	Rail            rail.go, label.go (what --jail-net names)
//	Pool            pool.go, ranges.go (arithmetic on the ends of ranges only)
//	Control, Probe, UFM          control.go
//	across.go       checks across tables; warning.go warnings of permitted, but probably wrong settings
//
// The package is pure except for Load. It does not check what depends on the cards:
// a PF that two selectors match, a card's limit of VFs. It computes on the ends of
// ranges only, so that a list of a million nodes and an IPv6 /16 are checked as fast as
// small ones.
//
// Errors are one line: the file, the line in it, the key, the value, what is wrong, what
// to do. The first mistake is reported. The package works on any kernel.
package config
