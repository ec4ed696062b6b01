// SPDX-License-Identifier: Apache-2.0

package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Trace writes down who sends each request (the event sunrpc:rpc_request), in an
// instance of the kernel's trace buffer of its own.
type Trace struct{ dir string }

const tracefsPath = "/sys/kernel/tracing"

// StartTrace begins.
func StartTrace() (*Trace, error) {
	if _, err := os.Stat(tracefsPath + "/instances"); err != nil {
		if err := unix.Mount("tracefs", tracefsPath, "tracefs", 0, ""); err != nil {
			return nil, err
		}
	}
	t := &Trace{tracefsPath + "/instances/requests"}
	return t, errors.Join(os.Mkdir(t.dir, 0o700), os.WriteFile(filepath.Join(t.dir, "events/sunrpc/rpc_request/enable"), []byte("1"), 0))
}

// Stop ends the trace and returns the requests of each program.
func (t *Trace) Stop() (map[string]Counts, error) {
	text, err := os.ReadFile(filepath.Join(t.dir, "trace"))
	return parseTrace(string(text)), errors.Join(err, os.Remove(t.dir))
}

var request = regexp.MustCompile(`(?m)^\s*(.+)-(\d+) +\[\d+\].* rpc_request: .* nfsv[34] (\w+) \(`)

// parseTrace adds up the requests by program. A process has the name that it had
// with its last request: what execve(2) asks for until it succeeds is the new
// program's part.
func parseTrace(text string) map[string]Counts {
	name, of := map[string]string{}, map[string]Counts{}
	for _, m := range request.FindAllStringSubmatch(text, -1) {
		program, pid, operation := m[1], m[2], m[3]
		if slices.Contains(leases, operation) {
			continue
		}
		if of[pid] == nil {
			of[pid] = Counts{}
		}
		name[pid] = strings.TrimSpace(program)
		of[pid][operation]++
	}
	all := map[string]Counts{}
	for pid, counts := range of {
		if all[name[pid]] == nil {
			all[name[pid]] = Counts{}
		}
		for operation, n := range counts {
			all[name[pid]][operation] += n
		}
	}
	return all
}
