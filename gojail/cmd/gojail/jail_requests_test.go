// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
)

// uncounted are calls that are no request to the storage, and the second halves of those that another thread interrupted.
var uncounted = regexp.MustCompile(`execve\(|epoll_|resumed>|fcntl\(|close\(`)

// countCalls runs a command and returns the number of its system calls on a directory.
func (s *testSite) countCalls(t *testing.T, dir string, args ...string) int {
	t.Helper()
	trace := filepath.Join(s.dir, "trace")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := s.command(args...)
	cmd.Args = append([]string{"strace", "-f", "-y", "-o", trace, self}, cmd.Args[1:]...)
	cmd.Path, err = exec.LookPath("strace")
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	calls := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, dir) && !uncounted.MatchString(line) {
			calls++
		}
	}
	return calls
}

// TestRequestsDoNotGrowWithTheJail counts what ls, switch and gc ask of the storage of a small jail and of a large one.
func TestRequestsDoNotGrowWithTheJail(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make deps")
	}
	counts := map[int][]int{}
	for _, files := range []int{1, 1000} {
		s, dir := newStoreSite(t)
		var names []string
		for n := range files {
			names = append(names, fmt.Sprintf("d%d/f=x", n))
		}
		for _, more := range []string{"more=1", "more=2"} { // another digest is another name within a second
			layout := sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, names, []string{more})})
			s.must(t, "jail", "build", "debian", "--from", "oci:"+layout, "--no-targets")
			s.must(t, "jail", "switch", "debian")
		}
		list, _ := s.versions(t)
		for _, command := range []string{"ls", "switch debian " + list[0], "rollback debian", "gc --no-slurm"} {
			counts[files] = append(counts[files], s.countCalls(t, dir, append([]string{"jail"}, strings.Fields(command)...)...))
		}
	}
	t.Log("ls, switch, rollback, gc:", counts[1])
	for i, count := range counts[1] {
		assert.Positive(t, count)
		assert.InDelta(t, count, counts[1000][i], 5, "%v", counts) // a call that a signal interrupts is made again
	}
}
