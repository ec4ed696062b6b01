// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

var timeOfLease = regexp.MustCompile(`,\d{9,}$`)

// takeSnapshot returns everything outside of the job that an attach could change.
func (n *node) takeSnapshot() string {
	n.t.Helper()
	var lines []string
	all, err := openHandle(n.t, n.host).LinkList()
	require.NoError(n.t, err)
	for _, l := range all {
		a := l.Attrs()
		lines = append(lines, fmt.Sprintf("link %s %s %s mtu %d txq %d up %t alt %v", a.Name, a.Alias, a.HardwareAddr, a.MTU, a.TxQLen, a.Flags&net.FlagUp != 0, a.AltNames))
	}
	lines = append(lines, readRouting(n.t, n.host)...)
	for _, dir := range []string{n.knobs, n.site.State, filepath.Join(n.dir, "pools")} {
		require.NoError(n.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "lock") || strings.HasSuffix(path, "/self") {
				return err
			}
			line := "file " + timeOfLease.ReplaceAllString(path, "")
			if dir == n.knobs {
				text, err := os.ReadFile(path)
				require.NoError(n.t, err)
				line += " " + string(text)
			}
			lines = append(lines, line)
			return nil
		}))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// readRouting returns rules, routes and proxies, without those that the kernel adds for IPv6
// itself.
func readRouting(t testing.TB, n *link.Namespace) []string {
	t.Helper()
	text := runShell(t, n, "ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; ip neigh show proxy")
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool {
		return strings.Contains(line, "fe80::") || strings.Contains(line, "ff00::") || strings.Contains(line, "local ::1") || strings.HasPrefix(line, "::1 ")
	})
}

// readSpace returns the state of a job's namespace.
func readSpace(t testing.TB, n *link.Namespace) string {
	t.Helper()
	links, err := n.ListLinks()
	require.NoError(t, err)
	lines := readRouting(t, n)
	for _, l := range links {
		lines = append(lines, "link "+l.Name)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// connect connects from an address in a to one in b, and returns the source address that b
// saw.
func connect(t testing.TB, a *link.Namespace, from string, b *link.Namespace, to string) string {
	t.Helper()
	var server net.Listener
	require.NoError(t, netns.RunInside(b.FD(), func() (err error) {
		server, err = net.Listen("tcp", net.JoinHostPort(to, "0"))
		return err
	}))
	defer server.Close()
	go func() {
		if c, err := server.Accept(); err == nil {
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			io.WriteString(c, host)
			c.Close()
		}
	}()
	dialer := net.Dialer{Timeout: time.Minute}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	var seen []byte
	require.NoError(t, netns.RunInside(a.FD(), func() error {
		c, err := dialer.Dial("tcp", server.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		seen, err = io.ReadAll(c)
		return err
	}))
	return string(seen)
}

// requireSame ends the test with the lines that differ.
func requireSame(t testing.TB, want, got string, args ...any) {
	t.Helper()
	if want == got {
		return
	}
	was, is := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Log("gone:", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Log("new: ", line)
		}
	}
	t.Fatal(append([]any{"not as before:"}, args...)...)
}
