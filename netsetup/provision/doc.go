// SPDX-License-Identifier: Apache-2.0

// Package provision makes a node's VFs from the policies of network.toml, and
// checks what a node has to bring for them.
//
//	configuration  package config
//	inventory      package inventory
//	policies       package policy: whose policy is each VF's
//	plan           plan.go: the list of steps
//	apply          apply.go: one loop over the list; settings.go: what each step reads and writes
//	check          check*.go: `gojail check`, the host's preparation
//
// Plan is pure. Plan.Observe asks the kernel what is as wanted already and drops
// it, so an empty plan is a node in order; Apply does the rest, and every step
// asks again before it changes anything. Nothing is recorded: VFs last until the
// next boot, and a run that was killed is completed by the next one.
//
// VFs that a job holds are never touched: a plan that would have to is refused.
// Other than that, Apply leaves traffic of a PF alone, but for a raised MTU.
//
// Not for what a job gets: a rail's own VLAN, addresses and names are package
// attach's. Needs root, Linux 4.12 (sriov_drivers_autoprobe), and 5.3 for the
// RDMA modes.
package provision
