// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Record is the output of scontrol about a node.
type Record struct {
	// Reason is the reason why the node is drained or down, or "". Its lines are joined with "\n".
	Reason string
	// By is the user who gave the reason, and At the time, as Slurm prints it. Both are empty if scontrol prints none.
	By, At string

	fields    map[string]string
	ambiguous []string // keys that the record has more than once
}

// Field returns a field of the node, such as "State". It returns "" if the field is "(null)", or if the record has it
// more than once.
func (r *Record) Field(key string) string {
	if value := r.fields[key]; value != "(null)" && !slices.Contains(r.ambiguous, key) {
		return value
	}
	return ""
}

// ShowNode runs scontrol, with the arguments of the program, for one node. It does not take anything in a text of the
// node, which other tools or people have written, for a field: the output begins with the node, and texts are the end
// of a record.
func ShowNode(ctx context.Context, p Program, node string) (*Record, error) {
	p.Args = append(slices.Clone(p.Args), "show", "node", node)
	text, err := Run(ctx, p)
	if err != nil && strings.TrimSpace(text) == "Node "+node+" not found" {
		return nil, fmt.Errorf("%w: %w", ErrUnknownNode, err)
	}
	if err != nil {
		return nil, err
	}
	return readRecord(text, node)
}

// ErrUnknownNode is the error of ShowNode for a node that slurmctld does not have.
var ErrUnknownNode = errors.New("slurmctld does not have the node")

func readRecord(text, node string) (record *Record, err error) {
	err = readRecords(strings.NewReader(text), func(r *Record) {
		if record == nil {
			record = r
		}
	})
	if err != nil || record == nil || record.Field("NodeName") != node {
		return nil, &ReadError{"scontrol", fmt.Errorf("it did not show the node %s: %.100q", node, text)}
	}
	return record, nil
}

// The parts of a record of scontrol show node (slurm_sprint_node_table): fields, the reason, and then texts such as
// comments.
const (
	inFields = iota
	inReason
	inTexts
)

const (
	recordBegin  = "NodeName="
	fieldBegin   = "   "
	reasonBegin  = "   Reason="
	reasonGoesOn = "          "
)

// wholeLines are the fields whose value is the rest of their line, whatever it contains.
var wholeLines = []string{"AvailableFeatures", "ActiveFeatures", "Gres", "GresDrain", "GresUsed", "OS", "Partitions",
	"CfgTRES", "AllocTRES"}

// texts are the first fields of the lines after the reason: people write them, or they follow a text that people write.
var texts = []string{"Comment", "Extra", "InstanceId", "InstanceType", "ReservationName", "TLSCertTokenSet",
	"Topology", "Parameters"}

// reasonMost is the limit of the lines of a reason after the first one, in bytes.
const reasonMost = 4 << 10

// lastField is a field after the state that each record of slurmctld has.
const lastField = "CfgTRES"

// noNodes is the output of scontrol for a cluster without nodes, for example because all were dynamic and are deleted.
const noNodes = "No nodes in the system"

// readRecords calls take with each record of scontrol show node in its form of several lines. Between the fields and
// the reason, scontrol prints nothing that people write except features and GRES, which come before the state.
// readRecords skips lines before the first record: they are the error if there is no record.
func readRecords(r io.Reader, take func(*Record)) error {
	var record *Record
	part, begins, empty := inFields, true, false // begins: a record can begin here, at first, and after an empty line
	var notices notices
	lines := newLines(r)
	for {
		line, err := lines.next()
		if err != nil {
			if record != nil {
				take(record)
			}
			if err == io.EOF && (record != nil || empty) {
				err = nil
			} else if err == io.EOF {
				err = errors.New("there is no node in it")
				if notices.count > 0 {
					err = notices.explain("a node")
				}
			}
			return err
		}
		switch {
		case begins && strings.HasPrefix(line, recordBegin):
			if record != nil {
				take(record)
			}
			record, part = &Record{fields: map[string]string{}}, inFields
			record.addWords(line)
		case record != nil:
			part = record.addLine(line, part)
		case line == noNodes:
			empty = true
		case notices.count == noticesMost:
			return notices.explain("a node")
		case line != "":
			notices.add(line)
		}
		begins = line == "" || record == nil
	}
}

// addLine reads a line, and returns the part of the record to which it belongs.
func (r *Record) addLine(line string, part int) int {
	key, value, _ := strings.Cut(strings.TrimPrefix(line, fieldBegin), "=")
	_, hasState := r.fields["State"]
	switch {
	case part == inReason && strings.HasPrefix(line, reasonGoesOn):
		if len(r.Reason) < reasonMost {
			r.Reason += "\n" + line[len(reasonGoesOn):]
		}
		return inReason
	case part != inFields:
		if _, whole := r.fields[lastField]; !whole && key == lastField {
			r.ambiguous = append(r.ambiguous, "State") // features of several lines look like the end of the fields
		}
		return inTexts
	case hasState && strings.HasPrefix(line, reasonBegin):
		r.setReason(line[len(reasonBegin):])
		return inReason
	case hasState && slices.Contains(texts, key):
		return inTexts
	case !strings.HasPrefix(line, fieldBegin):
	case slices.Contains(wholeLines, key):
		r.add(key, strings.TrimSpace(value))
	default:
		r.addWords(line)
	}
	return inFields
}

// addWords reads fields that are separated with blanks.
func (r *Record) addWords(line string) {
	for _, word := range strings.Fields(line) {
		if key, value, found := strings.Cut(word, "="); found {
			r.add(key, value)
		}
	}
}

func (r *Record) add(key, value string) {
	if _, known := r.fields[key]; known {
		r.ambiguous = append(r.ambiguous, key)
	}
	r.fields[key] = value
}

// setReason reads the first line of a reason, at whose end scontrol prints its author and time: "
// [root@2026-11-25T13:26:57]".
func (r *Record) setReason(line string) {
	r.Reason = line
	begin := strings.LastIndex(line, " [")
	if begin < 0 || !strings.HasSuffix(line, "]") {
		return
	}
	stamp := line[begin+len(" [") : len(line)-1]
	if at := strings.LastIndexByte(stamp, '@'); at > 0 && at+1 < len(stamp) && !strings.ContainsAny(stamp[at:], " \t") {
		r.Reason, r.By, r.At = line[:begin], stamp[:at], stamp[at+1:]
	}
}
