// SPDX-License-Identifier: Apache-2.0

// Package job is the network of a job of Slurm: from outside, what the plugin and
// `gojail sweep` do with it as root, and from inside, what `gojail net` shows and checks.
//
//	node.go     Node: a node's files, from which the other calls make attach.Site
//	attach.go   Node.Attach: the rails for a job, with what Slurm allocated
//	show.go     the RDMA devices in the job's /dev
//	release.go  Node.Release and Node.Sweep
//
// Inside the job any user may ask what it has, and who answers, without root, a
// configuration or a state directory, and without a server:
//
//	view.go     Look: the rails, from the GOJAIL_NET_ variables and the kernel
//	step.go     StepOf: the nodes of a Slurm step, from its variables
//	gateway.go  does a gateway answer
//	peers.go    do the other nodes of the step answer, on each rail
//	check.go    Check: all of it, and what is wrong, for each rail
//
// A process without privilege has neither packet sockets nor, in a new network
// namespace, ping sockets (net.ipv4.ping_group_range starts as empty). So:
//
// A gateway is sent a UDP packet, for which the kernel has to find its hardware
// address: the gateway has answered if the kernel's neighbour entry says
// reachable, or if it sent an ICMP error.
//
// The tasks of a step find each other by UDP on the rails themselves. Each sends
// a broadcast (IPv6: to all nodes of the link) from its address on a rail to a
// port that the job's and the step's numbers give, and whoever gets it in the same
// subnet answers from its own address to that of the question; who has not is asked to
// the end, as tasks may start seconds apart. An answer therefore
// proves one broadcast of ours and one packet to us, on that rail, by that address
// and its routing table. It does not prove who sent it: another tenant of the same
// VLAN could answer. Rails are one link for all nodes, as network.toml has them;
// where routers lie between the nodes of a rail, peers do not find each other.
//
// Linux 5.7 (SO_BINDTODEVICE without privilege).
package job
