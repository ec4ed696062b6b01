// SPDX-License-Identifier: Apache-2.0

// Package provision makes a node's VFs from the policies of network.toml, and
// checks a node's requirements for them.
//
//	configuration  package config
//	inventory      package inventory
//	policies       package policy: the policy of each VF
//	plan           plan.go: the list of steps
//	apply          apply.go: one loop over the list; settings.go: what each step reads and writes
//	check          check*.go: the node's preparation, for `gojail check`
//
// MakePlan is pure. Plan.Observe drops the steps whose settings are already as wanted, so
// an empty plan means that the node is in order; Apply executes the rest, and every step
// reads its setting again before it changes anything. Nothing is recorded: VFs last until
// the next boot, and the next run completes one that was killed.
//
// VFs that a job holds are never changed: a plan that would change them is rejected.
// Apply does not disturb the traffic of a PF, except when it raises the MTU.
//
// A rail's own VLAN, addresses and names in a job are set by package attach. The package
// needs root, Linux 4.12 (sriov_drivers_autoprobe), and 5.3 for the RDMA modes.
package provision
