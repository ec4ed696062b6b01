// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Journal stands in for journald's socket of syslog in a cluster.
type Journal struct {
	t    *testing.T
	conn *net.UnixConn
	seen []string
}

// ListenToJournal listens where journald does, for the rest of the test.
func (c *Cluster) ListenToJournal(t *testing.T) *Journal {
	t.Helper()
	path := c.Path("/run/systemd/journal/dev-log")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		os.Remove(path)
	})
	return &Journal{t: t, conn: conn}
}

// Address is where it listens, as a process in the test's namespaces sees it.
func (j *Journal) Address() *net.UnixAddr { return j.conn.LocalAddr().(*net.UnixAddr) }

var pidOfLine = regexp.MustCompile(`^<(\d+)>gojail\[\d+\]: `)

// Lines returns the lines about a job, or all, once the last of them matches. Each is the priority and the text.
func (j *Journal) Lines(job string, last string) (lines []string) {
	j.t.Helper()
	buffer := make([]byte, 4096)
	find := func() bool {
		lines = nil
		for _, line := range j.seen {
			if job == "" || strings.Contains(line, " job="+job+" ") {
				lines = append(lines, line)
			}
		}
		return len(lines) > 0 && regexp.MustCompile(last).MatchString(lines[len(lines)-1])
	}
	until := time.Now().Add(Timeout)
	for !find() {
		require.NoError(j.t, j.conn.SetReadDeadline(until))
		n, err := j.conn.Read(buffer)
		require.NoError(j.t, err, "%s; so far: %q", last, j.seen)
		if text := string(buffer[:n]); pidOfLine.MatchString(text) {
			j.seen = append(j.seen, pidOfLine.ReplaceAllString(text, "$1 "))
		}
	}
	return lines
}
