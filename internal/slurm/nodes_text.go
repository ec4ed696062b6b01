// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/oneline"
)

// readNodesText reads the output of scontrol --detail show node, with times in UTC. A node with a damaged record keeps
// the values that can be parsed. A node without a name and a state, or with the name of another record, is left out.
func readNodesText(r io.Reader) (*Nodes, error) {
	n := &Nodes{}
	number := map[string]int{} // records by the name of their node
	err := readRecords(r, func(record *Record) {
		node, err := record.toNode()
		if number[node.Name]++; number[node.Name] == 2 {
			err = oneline.Both(err, errors.New("two records of one node"))
		}
		if err != nil {
			n.Odd.add(err.Error(), node.Name)
		}
		if node.State != "" && len(n.List) <= nodesMost {
			n.List = append(n.List, node)
		}
	})
	if len(n.List) > nodesMost {
		err = fmt.Errorf("more than %d nodes", nodesMost)
	}
	list := n.List[:0]
	for _, node := range n.List {
		if number[node.Name] == 1 {
			list = append(list, node)
		}
	}
	n.List = list
	return n, err
}

// toNode returns the values of a node that can be parsed. Without a name and a state, State is empty.
func (r *Record) toNode() (n Node, err error) {
	if len(r.ambiguous) > 0 {
		err = fmt.Errorf("more than one %s", r.ambiguous[0])
	}
	n.Name, n.Version = toLabel(r.Field("NodeName")), toLabel(r.Field("Version"))
	state := r.Field("State")
	if n.Name == "" || state == "" {
		return n, oneline.Both(err, errors.New("no NodeName and State"))
	}
	n.setStates(strings.Split(state, "+"))
	if partitions := r.Field("Partitions"); partitions != "" {
		n.Partitions = readNames(strings.Split(partitions, ","))
	}
	var gpusErr, totalErr, allocErr error
	n.GPUs, gpusErr = readGPUs(r.Field("Gres"), r.Field("GresUsed"))
	n.CPUs, totalErr = readCount(r.Field("CPUTot"))
	n.CPUsAllocated, allocErr = readCount(r.Field("CPUAlloc"))
	if n.Reason = toLabel(strings.TrimSpace(r.Reason)); n.Reason != "" {
		n.ReasonUser = toLabel(r.By)
		n.ReasonTime, _ = time.Parse("2006-01-02T15:04:05", r.At)
	}
	return n, oneline.Both(oneline.Both(err, gpusErr), oneline.Both(totalErr, allocErr))
}

// countMost is the limit of a node's CPUs. Slurm's numbers for an unset value are above it.
const countMost = 1 << 24

func readCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > countMost {
		return 0, fmt.Errorf("%.100q is no number of CPUs", text)
	}
	return n, nil
}

// namesMost is the limit of the partitions of a node.
const namesMost = 256

func readNames(list []string) []string {
	list = list[:min(len(list), namesMost)]
	names := make([]string, 0, len(list))
	for _, name := range list {
		if name != "" {
			names = append(names, toLabel(name))
		}
	}
	return names
}
