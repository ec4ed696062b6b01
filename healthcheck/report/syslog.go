// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/drain"
)

// syslogWait is the time for the socket of syslog to accept a line: a hung log daemon must not
// delay the run. log/syslog has no deadline and is therefore not used.
const syslogWait = 200 * time.Millisecond

// Priorities of daemons' lines (RFC 3164, 4.1.1): facility 3, and the severity.
const (
	priorityError   = 3<<3 | 3
	priorityWarning = 3<<3 | 4
	priorityNotice  = 3<<3 | 5
)

// WriteSyslog writes a line for each change and for each action in Slurm to the socket, which
// is /dev/log on a node.
func (r *Report) WriteSyslog(socket string, changes []drain.Change) error {
	lines := []string{}
	say := func(priority int, text string) {
		lines = append(lines, fmt.Sprintf("<%d>gojail-healthcheck[%d]: %s", priority, os.Getpid(), text))
	}
	for _, c := range changes {
		priority := priorityNotice
		switch c.Verdict {
		case check.Fail:
			priority = priorityError
		case check.Warn, check.Unknown:
			priority = priorityWarning
		}
		say(priority, fmt.Sprintf("%s: %s: %s", c.Check, c.Verdict, c.Text))
	}
	for _, line := range r.listSlurmLines() {
		say(priorityWarning, line)
	}
	if len(lines) == 0 {
		return nil
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return fmt.Errorf("cannot write to syslog: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(syslogWait)); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := conn.Write([]byte(line)); err != nil {
			return fmt.Errorf("cannot write to syslog: %w", err)
		}
	}
	return nil
}
