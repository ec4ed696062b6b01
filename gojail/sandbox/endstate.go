// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/procfs"
)

// processPrefix is the beginning of the names of all processes of gojail (PR_SET_NAME).
const processPrefix = "gojail-"

// EndProcesses ends all processes of gojail that work with a state directory, including launchers, and waits for their
// end. It is for a state directory whose only user has ended. Process 1 of a sandbox's PID namespace is one of them;
// when it ends, the kernel ends all others in that namespace (pid_namespaces(7)).
func EndProcesses(s *state.State, until time.Time) error {
	for {
		// A launcher may start others while they are listed: only an empty list proves that none is left.
		found := findProcesses(s, func(name string) bool { return strings.HasPrefix(name, processPrefix) })
		if len(found) == 0 {
			return nil
		}
		if err := killAll(found, until); err != nil {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("processes of gojail with the state directory %s do not end", s.Path())
		}
	}
}

// findProcesses returns the processes of gojail that work with a state directory and whose name is wanted.
func findProcesses(s *state.State, wanted func(name string) bool) (list []state.Record) {
	pids, _ := procfs.ListNumbers("/proc")
	for _, pid := range pids {
		name := procfs.ReadName("/proc", pid)
		if !wanted(name) || !procfs.IsRoots(pid) || !isOfThisState(s, pid) {
			continue
		}
		if start, err := procfs.StartTime(pid); err == nil && start > 0 {
			list = append(list, state.Record{Name: name, PID: pid, Start: start})
		}
	}
	return list
}
