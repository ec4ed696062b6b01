// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/oneline"
)

// number is an integer of Slurm's JSON, which may be unset.
type number struct {
	Set    bool  `json:"set"`
	Number int64 `json:"number"`
}

// errNoNode is the error of JSON with an empty list of nodes. Text says whether the cluster has none.
var errNoNode = errors.New("its list of nodes is empty")

// readNodesJSON reads the output of scontrol --json show nodes, one node at a time. A node with an invalid
// value keeps its other values; a node without a name and a state is left out. An output without any node is an error.
func readNodesJSON(r io.Reader) (*Nodes, error) {
	n := &Nodes{}
	found := false
	err := readObject(r, "nodes", func(d *json.Decoder) error {
		found = true
		return readArray(d, func() error {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return err
			}
			node, err := readNodeJSON(raw)
			if err != nil {
				n.Odd.add(err.Error(), node.Name)
			}
			if node.State != "" {
				n.List = append(n.List, node)
			}
			if len(n.List) > nodesMost {
				return fmt.Errorf("more than %d nodes", nodesMost)
			}
			return nil
		})
	})
	switch {
	case err != nil || len(n.List) > 0:
	case !found:
		err = errors.New("there is no list of nodes")
	case n.Odd.Count > 0:
		err = fmt.Errorf("none of its nodes can be read: %s", n.Odd.First)
	default:
		err = errNoNode
	}
	return n, err
}

// readNodeJSON returns the values of a node that can be parsed (v0.0.42_node). Without a name and a state, State is
// empty.
func readNodeJSON(raw json.RawMessage) (n Node, err error) {
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return n, errors.New("a node is not an object")
	}
	var name, version, reason, user, gres, used string
	var states, partitions []string
	var at number
	for _, v := range []struct {
		key string
		to  any
	}{
		{"name", &name}, {"version", &version}, {"reason", &reason}, {"reason_set_by_user", &user}, {"gres", &gres},
		{"gres_used", &used},
		{"state", &states}, {"partitions", &partitions}, {"reason_changed_at", &at}, {"cpus", &n.CPUs},
		{"alloc_cpus", &n.CPUsAllocated},
	} {
		if text := values[v.key]; text != nil && json.Unmarshal(text, v.to) != nil {
			err = oneline.Both(err, fmt.Errorf("%s is %.100q", v.key, text))
		}
	}
	n.Name, n.Version, n.Partitions = toLabel(name), toLabel(version), readNames(partitions)
	for _, cpus := range []*int{&n.CPUs, &n.CPUsAllocated} {
		if *cpus < 0 || *cpus > countMost {
			err = oneline.Both(err, fmt.Errorf("%d is no number of CPUs", *cpus))
			*cpus = 0
		}
	}
	if n.Name == "" || len(states) == 0 {
		return n, oneline.Both(err, errors.New("a node does not have name and state"))
	}
	n.setStates(states)
	if n.Reason = toLabel(strings.TrimSpace(reason)); n.Reason != "" {
		n.ReasonUser = toLabel(user)
		if at.Number > 0 {
			n.ReasonTime = time.Unix(at.Number, 0).UTC()
		}
	}
	var gpusErr error
	n.GPUs, gpusErr = readGPUs(gres, used)
	return n, oneline.Both(err, gpusErr)
}

// readErrors reads the list of errors that Slurm's commands write into their JSON, even if they exit with 0.
func readErrors(d *json.Decoder) error {
	var list []json.RawMessage
	if err := d.Decode(&list); err != nil {
		return err
	}
	if len(list) > 0 {
		return fmt.Errorf("it has an error that Slurm reports: %.200q", list[0])
	}
	return nil
}

// readObject reads an object and calls read at the value of a key. It returns the errors that the object reports. It
// skips other values, and lines before the object, which a wrapper of Slurm's command or a library may print.
func readObject(r io.Reader, key string, read func(*json.Decoder) error) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	var notices notices
	for first, err := buffered.Peek(1); err == nil && first[0] != '{'; first, err = buffered.Peek(1) {
		line, err := (&lines{buffered}).next()
		if notices.add(line); err != nil || notices.count > noticesMost {
			return cmp.Or(err, notices.explain("an object"))
		}
	}
	if _, err := buffered.Peek(1); err == io.EOF && notices.count > 0 {
		return notices.explain("an object")
	}
	d := json.NewDecoder(buffered)
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
		} else if name == "errors" {
			err = readErrors(d)
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
