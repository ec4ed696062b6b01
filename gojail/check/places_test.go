// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCheckNamesFilesThatNoJobSees has files of a jail in directories of which each job, or node, has its own, and
// such directories that are others'.
func TestCheckNamesFilesThatNoJobSees(t *testing.T) {
	const hidden = "WARN  jail a: no job sees "
	for name, test := range map[string]struct {
		files []string // paths of the jail with content
		empty []string // without
		tmp   string   // where /tmp leads
		want  string
	}{
		"nothing":                   {},
		"in /tmp":                   {files: []string{"/tmp/x"}, want: hidden + "/tmp/x of "},
		"the first one":             {files: []string{"/tmp/z", "/tmp/b/c"}, want: hidden + "/tmp/b/c of "},
		"in /run":                   {files: []string{"/run/munge/key"}, want: hidden + "/run/munge/key of "},
		"in /dev/shm":               {files: []string{"/dev/shm/x"}, want: hidden + "/dev/shm/x of "},
		"in a local directory":      {files: []string{"/var/cache/x"}, want: hidden + "/var/cache/x of "},
		"in all":                    {files: []string{"/var/cache/x", "/dev/shm/x", "/run/x", "/tmp/x"}, want: hidden + "/tmp/x /run/x /dev/shm/x /var/cache/x of "},
		"a mount target":            {empty: []string{"/run/resolv.conf", "/tmp/x"}},
		"too deep":                  {files: []string{"/tmp/a/b/c/d"}},
		"beside them":               {files: []string{"/var/tmp/x", "/dev/x", "/opt/x"}},
		"/tmp in /dev/shm":          {tmp: "/dev/shm", want: "WARN  jail a: /tmp of the jail leads to /dev/shm: it is in memory, and tmp_size has no effect; put a directory in its place"},
		"/tmp below /dev/shm":       {tmp: "../../dev/shm/tmp", want: "/tmp of the jail leads to /dev/shm: it is in memory"},
		"/tmp elsewhere":            {tmp: "var/tmp"},
		"in the directory of /tmp":  {tmp: "var/tmp", files: []string{"/var/tmp/x"}, want: hidden + "/tmp/x of "},
		"a line's end in its name":  {files: []string{"/tmp/a\nb"}, want: hidden + "/tmp/a?b of "},
		"out of the jail by a link": {tmp: "../../../../../../../etc"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			n.configure(t, "local = [\"/var/cache\"]\n")
			for _, dir := range []string{"/var/tmp", "/var/cache", "/dev/shm/tmp"} {
				require.NoError(t, os.MkdirAll(n.root+dir, 0o755))
			}
			if test.tmp != "" {
				require.NoError(t, os.Remove(n.root+"/tmp"))
				require.NoError(t, os.Symlink(test.tmp, n.root+"/tmp"))
			}
			for i, file := range append(test.files, test.empty...) {
				require.NoError(t, os.MkdirAll(n.root+filepath.Dir(file), 0o755))
				n.writeFile(t, "jail"+file, "text"[:min(4, 4*max(0, len(test.files)-i))], 0o644)
			}
			found := n.listFindings()
			if test.want == "" {
				assert.NotContains(t, found, "no job sees")
				assert.NotContains(t, found, "leads to /dev/shm")
			}
			assert.Contains(t, found, test.want)
			root, err := os.Open(n.root)
			require.NoError(t, err)
			defer root.Close()
			assert.Equal(t, strings.Contains(test.want, "no job sees"), len(FindHidden(int(root.Fd()), "/var/cache")) > 0, "gojail jail build prints the same")
		})
	}
}
