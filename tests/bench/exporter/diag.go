// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What slurmctld counts of RPCs on a large cluster: by type, by user, and what waits for nodes.
const (
	typesOfRPCs  = 250
	usersOfRPCs  = 2000
	rpcsThatWait = 500
)

// scaleDiagText returns what sdiag printed, with as many RPCs as on a large cluster.
func scaleDiagText(release string) (string, error) {
	text, err := os.ReadFile(filepath.Join(testdata, release, "sdiag.txt"))
	if err != nil {
		return "", err
	}
	all := string(text)
	for heading, line := range map[string]func(i int) string{
		"Remote Procedure Call statistics by message type\n": func(i int) string {
			return fmt.Sprintf("\tREQUEST_OF_TYPE_%-23d ( %d) count:%d ave_time:%d total_time:%d\n", i, 10000+i, 1000+i, 300, 300*(1000+i))
		},
		"Remote Procedure Call statistics by user\n": func(i int) string {
			return fmt.Sprintf("\tuser%-12d (%8d) count:%d ave_time:%d total_time:%d\n", i, 20000+i, 1000+i, 300, 300*(1000+i))
		},
	} {
		before, after, found := strings.Cut(all, heading)
		if !found {
			return "", fmt.Errorf("sdiag.txt of %s has no %q", release, heading)
		}
		count := typesOfRPCs
		if strings.Contains(heading, "user") {
			count = usersOfRPCs
		}
		var lines strings.Builder
		for i := range count {
			lines.WriteString(line(i))
		}
		all = before + heading + lines.String() + after
	}
	return all, nil
}

// scaleDiagJSON is scaleDiagText for the JSON of sdiag.
func scaleDiagJSON(release string) (string, error) {
	text, err := os.ReadFile(filepath.Join(testdata, release, "sdiag.json"))
	if err != nil {
		return "", err
	}
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		return "", err
	}
	statistics := page["statistics"].(map[string]any)
	extend := func(key string, count int, change func(one map[string]any, i int)) {
		list, _ := statistics[key].([]any)
		for i := range count {
			one := map[string]any{}
			if len(list) > 0 {
				for k, v := range list[0].(map[string]any) {
					one[k] = v
				}
			}
			change(one, i)
			list = append(list, one)
		}
		statistics[key] = list
	}
	extend("rpcs_by_message_type", typesOfRPCs, func(one map[string]any, i int) {
		one["message_type"], one["type_id"], one["count"], one["total_time"] = fmt.Sprint("REQUEST_OF_TYPE_", i), 10000+i, 1000+i, 300*(1000+i)
	})
	extend("rpcs_by_user", usersOfRPCs, func(one map[string]any, i int) {
		one["user"], one["user_id"], one["count"], one["total_time"] = fmt.Sprint("user", i), 20000+i, 1000+i, 300*(1000+i)
	})
	extend("pending_rpcs", rpcsThatWait, func(one map[string]any, i int) {
		one["message_type"], one["type_id"], one["count"] = fmt.Sprint("REQUEST_OF_TYPE_", i), 10000+i, i
	})
	text, err = json.MarshalIndent(page, "", "  ")
	return string(text), err
}
