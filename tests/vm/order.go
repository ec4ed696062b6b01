// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/json"
	"os"
)

// Order is what a guest is told to do: the file OrderFile of the share.
type Order struct {
	Command       []string
	Env           []string // the whole environment of the command
	Dir           string   // its working directory
	Repository    string   // the path that this machine and the guest have it at
	Release       string   // "": no scratch disk, nothing of a release
	Built         string   // gojail as built for the release
	Storage       bool     // the programs of tests/storage/fetch are there
	Terminal      bool     // the command runs on the second serial line
	Rows, Columns uint16   // of the terminal
}

// The share is the one directory that this machine and the guest both write.
const (
	Share       = "/vm"     // the guest's path of it
	OrderFile   = "order"   // an Order, JSON
	StartedFile = "started" // the release of the guest's kernel, once the guest has begun with the order
	OutputFile  = "output"  // standard output and error of the command
	StatusFile  = "status"  // its exit status, written at the end
)

// Mount tags (virtio-9p) of what this machine shares.
const (
	TagRoot       = "root"
	TagRepository = "repository"
	TagShare      = "share"
	TagStorage    = "storage"
)

// Storage is where the guest has what tests/storage/fetch fetched, if anything: the root of a file server.
const Storage = "/opt/storage"

// Address of the guest outside of its cards, on dummy0 (RFC 5737): Slurm's
// daemons do not start on a machine that has none but 127.0.0.1.
const Address = "198.51.100.1"

// Path is the PATH of the guest.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// GuestVariable is set, to the name of the release, in what runs in the guest.
const GuestVariable = "GOJAIL_GUEST"

// ReadOrder reads an order.
func ReadOrder(path string) (Order, error) {
	var o Order
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	return o, err
}
