// SPDX-License-Identifier: Apache-2.0

// Package job manages the network of a Slurm job: from outside, for the plugin and
// `gojail sweep`, which run as root, and from inside, for `gojail net`, which shows and
// checks the network.
//
//	node.go     Node: a node's files, from which the other functions build attach.Site
//	attach.go   Node.Attach: attaches the rails and devices that Slurm allocated
//	show.go     the RDMA devices in the job's /dev
//	release.go  Node.Release and Node.Sweep
//	counters.go the counters of the job's VFs
//	note.go     their values at the start of the job
//	use.go      the difference, which the end of the job reports
//
// Inside the job any user may list its network and check which hosts answer, without root,
// a configuration, a state directory or a server:
//
//	view.go     ReadView: the rails, from the GOJAIL_NET_ variables and the kernel
//	step.go     ReadStep: the nodes of a Slurm step, from its variables
//	gateway.go  whether a gateway answers
//	peers.go    whether the other nodes of the step answer, on each rail
//	check.go    Check: all checks and their results, for each rail
//
// A process without privilege can open neither packet sockets nor, in a new network
// namespace, ping sockets (net.ipv4.ping_group_range is empty at first). Therefore:
//
// The check sends a UDP packet to the gateway, for which the kernel has to find the
// gateway's hardware address. The gateway has answered if the kernel's neighbour entry is
// reachable, or if the gateway sent an ICMP error.
//
// The tasks of a step discover each other by UDP on the rails themselves. Each sends
// a broadcast (IPv6: to all nodes of the link) from its address on a rail to a
// port that is derived from the numbers of the job and the step. A task that receives it
// in the same subnet answers from its own address to the sender's. Nodes that have not
// answered are asked until the deadline, as tasks may start seconds apart. An answer
// therefore proves that one broadcast and one packet in the other direction arrived, on
// that rail, with that address and its routing table. It does not prove the identity of
// the sender: another tenant of the same VLAN could answer. A rail is one link for all
// nodes, as in network.toml; peers behind a router do not find each other.
//
// Linux 5.7 (SO_BINDTODEVICE without privilege).
package job
