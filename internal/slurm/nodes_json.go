// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// number is an integer of Slurm's JSON, which may be unset.
type number struct {
	Set    bool  `json:"set"`
	Number int64 `json:"number"`
}

// jsonNode has the fields of a node that are read (v0.0.42_node).
type jsonNode struct {
	Name       string   `json:"name"`
	State      []string `json:"state"`
	Reason     string   `json:"reason"`
	ReasonUser string   `json:"reason_set_by_user"`
	ReasonTime number   `json:"reason_changed_at"`
	Partitions []string `json:"partitions"`
	GRES       string   `json:"gres"`
	GRESUsed   string   `json:"gres_used"`
	CPUs       int      `json:"cpus"`
	AllocCPUs  int      `json:"alloc_cpus"`
	Version    string   `json:"version"`
}

// readNodesJSON reads the output of scontrol --json=v0.0.42 show nodes, one node at a time. A cluster without nodes has an
// empty list, which is not nil.
func readNodesJSON(r io.Reader) ([]Node, error) {
	nodes := []Node{}
	found := false
	err := readObject(r, "nodes", func(d *json.Decoder) error {
		found = true
		return readArray(d, func() error {
			var j jsonNode
			if err := d.Decode(&j); err != nil {
				return err
			}
			n, err := j.toNode()
			if nodes = append(nodes, n); len(nodes) > nodesMost {
				return fmt.Errorf("more than %d nodes", nodesMost)
			}
			return err
		})
	})
	if err == nil && !found {
		err = errors.New("there is no list of nodes")
	}
	return nodes, err
}

func (j *jsonNode) toNode() (n Node, err error) {
	n = Node{
		Name: toLabel(j.Name), Version: toLabel(j.Version),
		Reason: toLabel(strings.TrimSpace(j.Reason)), ReasonUser: toLabel(j.ReasonUser),
		Partitions: readNames(j.Partitions), CPUs: j.CPUs, CPUsAllocated: j.AllocCPUs,
	}
	if n.Name == "" || len(j.State) == 0 {
		return n, errors.New("a node does not have name and state")
	}
	n.setStates(j.State)
	if n.Reason == "" {
		n.ReasonUser = ""
	} else if j.ReasonTime.Number > 0 {
		n.ReasonTime = time.Unix(j.ReasonTime.Number, 0).UTC()
	}
	if n.GPUs, err = readGPUs(j.GRES, j.GRESUsed); err != nil {
		return n, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return n, nil
}

// readObject reads an object and calls read at the value of a key; other values are skipped.
func readObject(r io.Reader, key string, read func(*json.Decoder) error) error {
	d := json.NewDecoder(r)
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if name == key {
			err = read(d)
		} else {
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// readArray calls read before each element of an array.
func readArray(d *json.Decoder, read func() error) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.More() {
		if err := read(); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && token != want {
		err = fmt.Errorf("%.100q where a %q belongs", fmt.Sprint(token), want.String())
	}
	return err
}
