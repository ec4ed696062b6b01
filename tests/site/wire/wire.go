// SPDX-License-Identifier: Apache-2.0

// Package wire is what tests/site and the agent in its machines say to each other, a JSON value a line, over a
// port of virtio-serial. It works without network, and while Slurm and NFS do not.
package wire

// Port is the name of the port: /dev/virtio-ports/NAME in the machine.
const Port = "gojail.agent"

// Request asks the agent to run a script. Requests run at the same time.
type Request struct {
	ID     int
	User   string // "": root
	Script string // for bash
}

// Reply is the end of a script, or, with ID 0, what an agent says when it starts.
type Reply struct {
	ID     int
	Boot   string // boot_id of the machine (random(4))
	Code   int    // exit status; 128 and the signal that ended it
	Stdout string
	Stderr string
}
