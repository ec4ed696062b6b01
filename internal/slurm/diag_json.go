// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// exitsMost is the limit of the reasons why a cycle of a scheduler ends.
const exitsMost = 20

// readDiagJSON reads the output of sdiag --json=v0.0.42.
func readDiagJSON(r io.Reader) (*Diag, error) {
	var all map[string]json.RawMessage
	err := readObject(r, "statistics", func(d *json.Decoder) error { return d.Decode(&all) })
	if err != nil {
		return nil, err
	}
	if all["server_thread_count"] == nil {
		return nil, errors.New("there is no server_thread_count")
	}
	d := &Diag{Values: map[string]float64{}}
	for key, raw := range all {
		switch key {
		case "rpcs_by_message_type":
			d.Types, err = readRPCs(raw)
		case "rpcs_by_user":
			d.Users, err = readRPCs(raw)
		case "schedule_exit", "bf_exit":
			var exits map[string]float64
			err = json.Unmarshal(raw, &exits)
			for _, name := range slices.Sorted(maps.Keys(exits))[:min(len(exits), exitsMost)] {
				d.Values[key+"/"+toWord(name)] = exits[name]
			}
		default:
			readJSONValue(d.Values, key, raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return d.finish(), nil
}

// readJSONValue reads a value that is a number, or a number that may be unset; others are skipped.
func readJSONValue(values map[string]float64, key string, raw json.RawMessage) {
	var plain float64
	var time number
	switch {
	case strings.Contains(key, "/"): // is the name of an exit
	case json.Unmarshal(raw, &plain) == nil:
		values[key] = plain
	case json.Unmarshal(raw, &time) == nil && time.Set && time.Number > 0:
		values[key] = float64(time.Number)
	}
}

func readRPCs(raw json.RawMessage) (list []RPC, err error) {
	var rows []struct {
		Type  string  `json:"message_type"`
		User  string  `json:"user"`
		Count float64 `json:"count"`
		Time  float64 `json:"total_time"`
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	seen := map[string]int{}
	for _, r := range rows {
		list = addRPC(list, seen, RPC{r.Type + r.User, r.Count, r.Time})
	}
	return list, nil
}
