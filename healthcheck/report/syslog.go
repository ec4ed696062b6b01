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

// syslogWait is for the log's socket to take a line: a log daemon that hangs must
// not hold up the run, so log/syslog, which has no deadline, will not do.
const syslogWait = 200 * time.Millisecond

// The priorities of daemons' lines (RFC 3164, 4.1.1): facility 3, and the severity.
const (
	priorityError   = 3<<3 | 3
	priorityWarning = 3<<3 | 4
	priorityNotice  = 3<<3 | 5
)

// Syslog writes a line for each change and for what Slurm was told to the socket,
// which is /dev/log on a node.
func (r *Report) Syslog(socket string, changes []drain.Change) error {
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
	for _, line := range r.slurm() {
		say(priorityWarning, line)
	}
	if len(lines) == 0 {
		return nil
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return fmt.Errorf("cannot write to the log: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(syslogWait)); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := conn.Write([]byte(line)); err != nil {
			return fmt.Errorf("cannot write to the log: %w", err)
		}
	}
	return nil
}
