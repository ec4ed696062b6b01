// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// lineMost is the limit of a line of a Slurm command, in bytes.
const lineMost = 1 << 20

// newScanner returns a scanner of lines.
func newScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), lineMost)
	return s
}

// noNodes is what scontrol prints for a cluster without nodes, all of which may be dynamic ones that were deleted.
const noNodes = "No nodes in the system"

// readNodesText reads the output of scontrol --oneliner --detail show node, with times in UTC. A cluster without nodes has
// an empty list, which is not nil.
func readNodesText(r io.Reader) ([]Node, error) {
	nodes, empty := []Node{}, false
	lines := newScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" || line == noNodes {
			empty = empty || line == noNodes
			continue
		}
		if !strings.HasPrefix(line, "NodeName=") {
			// A reason of several lines, which only root and operators can set.
			if len(nodes) > 0 && nodes[len(nodes)-1].Reason != "" {
				continue
			}
			return nil, fmt.Errorf("%.100q is not the line of a node", line)
		}
		n, err := readNodeLine(line)
		if err != nil {
			return nil, err
		}
		if nodes = append(nodes, n); len(nodes) > nodesMost {
			return nil, fmt.Errorf("more than %d nodes", nodesMost)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(nodes) == 0 && !empty {
		return nil, errors.New("there is no node in it")
	}
	return nodes, nil
}

// readNodeLine reads the line of a node. Of two fields with the same name the first one counts: comments,
// which may contain anything, come after all others (slurm_sprint_node_table).
func readNodeLine(line string) (n Node, err error) {
	fields, reason, _ := strings.Cut(line, " Reason=")
	values := map[string]string{}
	for _, field := range strings.Fields(fields) {
		if key, value, found := strings.Cut(field, "="); found && values[key] == "" && value != "(null)" {
			values[key] = value
		}
	}
	n.Name, n.Version = toLabel(values["NodeName"]), toLabel(values["Version"])
	if n.Name == "" || values["State"] == "" {
		return n, fmt.Errorf("%.100q does not have NodeName and State", line)
	}
	n.setStates(strings.Split(values["State"], "+"))
	if values["Partitions"] != "" {
		n.Partitions = readNames(strings.Split(values["Partitions"], ","))
	}
	if n.GPUs, err = readGPUs(values["Gres"], values["GresUsed"]); err != nil {
		return n, fmt.Errorf("node %s: %w", n.Name, err)
	}
	n.CPUs, err = strconv.Atoi(values["CPUTot"])
	if err == nil {
		n.CPUsAllocated, err = strconv.Atoi(values["CPUAlloc"])
	}
	if err != nil {
		return n, errors.New("node " + n.Name + ": CPUTot and CPUAlloc are not numbers")
	}
	n.setReason(reason)
	return n, nil
}

// reasonEnd matches who gave a reason, and when, which scontrol adds to it.
var reasonEnd = regexp.MustCompile(` \[([^ \[\]]*)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\]`)

func (n *Node) setReason(text string) {
	if ends := reasonEnd.FindAllStringSubmatchIndex(text, -1); ends != nil {
		at := ends[len(ends)-1]
		n.ReasonUser = toLabel(text[at[2]:at[3]])
		n.ReasonTime, _ = time.Parse("2006-01-02T15:04:05", text[at[4]:at[5]])
		text = text[:at[0]]
	}
	n.Reason = toLabel(strings.TrimSpace(text))
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
