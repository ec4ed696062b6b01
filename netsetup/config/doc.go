// SPDX-License-Identifier: Apache-2.0

// Package config reads network.toml: which VFs the nodes make, which networks
// (rails) a job gets, and whose addresses it has there.
//
//	Load, Parse     load.go      the file, checked as one node sees it
//	Policy          policy.go, selector.go
//	Rail            rail.go, label.go (what --jail-net names)
//	Pool            pool.go, ranges.go (arithmetic on the ends of ranges only)
//	Control, Probe, UFM          control.go
//	across.go       what no table can know alone; warning.go what is permitted but odd
//
// It is pure: nothing but Load touches the system, and what only a look at the
// cards can tell (a PF that two selectors meet on, a card's limit of VFs) is not
// decided here. Nothing is enumerated: a list of a million nodes and an IPv6 /16
// are checked as fast as small ones.
//
// Errors are one line: the file, the line in it, the key, what was asked, what is
// wrong, what to do. The first mistake is told. Any kernel will do.
package config
