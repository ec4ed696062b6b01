// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/imagefile/imagefiletest"
)

// TestRunInEachFormat: a version of each format is the root of a sandbox, after a switch from any other.
func TestRunInEachFormat(t *testing.T) {
	imagefiletest.Need(t)
	s, _ := newStoreSite(t)
	s.prepareSandboxes(t)
	versions := map[string]string{"dir": s.buildBusybox(t)}
	for _, format := range []string{"squashfs", "erofs"} {
		s.must(t, "jail", "build", "debian", "--as", format, "--from", "dir:"+filepath.Join(s.dir, "tree"))
		list, _ := s.versions(t)
		versions[format] = list[len(list)-1]
	}
	run := func(script string) string {
		out, err := s.command("run", "stored", "--", "sh", "-c", script).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for _, format := range []string{"dir", "squashfs", "erofs", "squashfs", "dir", "erofs"} {
		s.must(t, "jail", "switch", "debian", versions[format])
		want := versions[format] + "\n"
		require.Eventually(t, func() bool { return run("read line </.gojail.version; echo $line") == want }, time.Minute, 100*time.Millisecond, format)
		kind := ""
		for line := range strings.Lines(run("while read -r line; do echo \"$line\"; done </proc/self/mounts")) {
			if f := strings.Fields(line); f[1] == "/" {
				kind = f[2]
			}
		}
		assert.Equal(t, format != "dir", kind == format, "the root is %s", kind)
		if format != "dir" {
			assert.Contains(t, run("touch /new || :"), "Read-only file system")
		}
		out, _ := s.gojail("check")
		assert.Contains(t, strings.Join(strings.Fields(out), " "), "its template has version "+versions[format]+", the current one")
		assert.Equal(t, "version "+versions[format]+" of jail debian is as it was built\n", s.must(t, "jail", "verify", "debian"))
	}
}
