// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
)

// uncounted are calls that are no request to the storage, and the second halves of those that another thread interrupted.
var uncounted = regexp.MustCompile(`execve\(|epoll_|resumed>|fcntl\(|close\(`)

// traceCalls runs a command and returns its system calls on a directory.
func (s *testSite) traceCalls(t *testing.T, dir string, args ...string) (calls []string) {
	t.Helper()
	trace := filepath.Join(s.dir, "trace")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := s.command(args...)
	cmd.Args = append([]string{"strace", "-f", "-y", "-o", trace, self}, cmd.Args[1:]...)
	cmd.Path, err = exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace: make deps")
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, dir) && !uncounted.MatchString(line) {
			calls = append(calls, line)
		}
	}
	return calls
}

// TestChangesAskTheServer: who has the lock relies on no attributes from the caches of an NFS client before he reads the link.
func TestChangesAskTheServer(t *testing.T) {
	s, dir := newStoreSite(t)
	for range 2 {
		s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root, "--no-targets")
		s.must(t, "jail", "switch", "debian")
	}
	calls := s.traceCalls(t, dir, "jail", "rollback", "debian")
	find := func(pattern string) int {
		at := slices.IndexFunc(calls, regexp.MustCompile(pattern).MatchString)
		require.NotEqual(t, -1, at, "%s in %v", pattern, calls)
		return at
	}
	locked, read := find(`flock\(.*/debian/lock>`), find(`readlinkat\(.*/debian/current"`)
	for _, name := range []string{"", "/versions", "/records", "/work"} {
		asked := find(`statx\(.*/debian` + name + `", .*AT_STATX_FORCE_SYNC`)
		assert.True(t, locked < asked && asked < read, "debian%s is asked for in call %d, locked in %d, read in %d", name, asked, locked, read)
	}
}

// TestRequestsDoNotGrowWithTheJail counts what ls, switch and gc ask of the storage of a small jail and of a large one.
func TestRequestsDoNotGrowWithTheJail(t *testing.T) {
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
			counts[files] = append(counts[files], len(s.traceCalls(t, dir, append([]string{"jail"}, strings.Fields(command)...)...)))
		}
	}
	t.Log("ls, switch, rollback, gc:", counts[1])
	for i, count := range counts[1] {
		assert.Positive(t, count)
		assert.InDelta(t, count, counts[1000][i], 5, "%v", counts) // a call that a signal interrupts is made again
	}
}
