// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// exitsMost is the limit of the reasons why a cycle of a scheduler ends.
const exitsMost = 20

// readDiagJSON reads the output of sdiag --json.
func readDiagJSON(r io.Reader) (*Diag, error) {
	var all map[string]json.RawMessage
	err := readObject(r, "statistics", func(d *json.Decoder) error { return d.Decode(&all) })
	if err != nil {
		return nil, err
	}
	known := knownValues()
	if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(key string) bool { return known[key] }) {
		return nil, errors.New("there are no statistics in it")
	}
	d := &Diag{Values: map[string]float64{}}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		raw := all[key]
		switch {
		case key == "rpcs_by_message_type":
			d.Types = d.readRPCs(key, raw)
		case key == "rpcs_by_user":
			d.Users = d.readRPCs(key, raw)
		case key == "schedule_exit" || key == "bf_exit":
			d.readExits(key, raw)
		case known[key]:
			d.readJSONValue(key, raw)
		}
	}
	if len(d.Values) == 0 {
		return nil, errors.New("none of its statistics has a value")
	}
	return d.finish(), nil
}

// readJSONValue reads a value that is a number, or a number that may be unset.
func (d *Diag) readJSONValue(key string, raw json.RawMessage) {
	var plain float64
	var time number
	switch {
	case string(raw) == "null": // unset
	case json.Unmarshal(raw, &plain) == nil && isValue(plain):
		d.Values[key] = plain
	case json.Unmarshal(raw, &plain) == nil || json.Unmarshal(raw, &time) != nil || time.Number < 0:
		d.Odd.add(key+" is not an unsigned number", string(raw))
	case time.Set && time.Number > 0:
		d.Values[key] = float64(time.Number)
	}
}

func (d *Diag) readExits(key string, raw json.RawMessage) {
	var exits map[string]json.RawMessage
	if json.Unmarshal(raw, &exits) != nil {
		d.Odd.add(key+" is not an object", string(raw))
	}
	for _, name := range slices.Sorted(maps.Keys(exits))[:min(len(exits), exitsMost)] {
		d.readJSONValue(key+"/"+toWord(name), exits[name])
	}
}

func (d *Diag) readRPCs(key string, raw json.RawMessage) (list []RPC) {
	var rows []json.RawMessage
	if json.Unmarshal(raw, &rows) != nil {
		d.Odd.add(key+" is not a list", string(raw))
	}
	seen := map[string]int{}
	for _, raw := range rows {
		var r struct {
			Type  string  `json:"message_type"`
			User  string  `json:"user"`
			Count float64 `json:"count"`
			Time  float64 `json:"total_time"`
		}
		if json.Unmarshal(raw, &r) != nil || !isValue(r.Count) || !isValue(r.Time) {
			d.Odd.add("not the statistics of an RPC", string(raw))
			continue
		}
		list = addRPC(list, seen, RPC{r.Type + r.User, r.Count, r.Time})
	}
	return list
}
