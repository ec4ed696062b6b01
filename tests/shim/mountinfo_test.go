// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMountTable reads tables as the kernel has them, and others, under the sanitizers.
func TestMountTable(t *testing.T) {
	dir := t.TempDir()
	program, table := filepath.Join(dir, "mountinfo"), filepath.Join(dir, "table")
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I../../spank", "-I../../include", "-o", program,
		"testdata/mountinfo.c", "../../spank/launcher/mountinfo.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	const (
		root = "30 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		nfs  = "40 30 0:50 /v1 /srv/jails rw - nfs4 server:/jails rw,vers=4.2\n"
		auto = "50 40 0:51 / /srv/jails/auto rw - autofs /etc/auto.jails rw,fd=6\n"
		tmp  = "60 30 0:52 / /srv/jails/tmp rw - tmpfs none rw\n"
		bad  = "Bad message 0\n"
	)
	for name, row := range map[string]struct {
		text  string
		paths []string
		want  string
	}{
		"nothing": {},
		"fields": {text: root + nfs,
			want: "30 1 8:1 /|/|ext4|/dev/sda1|rw\n40 30 0:50 /v1|/srv/jails|nfs4|server:/jails|rw,vers=4.2\n"},
		"no optional field": {text: "1 0 0:2 / / rw - rootfs rootfs rw\n", want: "1 0 0:2 /|/|rootfs|rootfs|rw\n"},
		"some of them": {text: "1 0 0:2 / / rw shared:3 master:4 propagate_from:5 - tmpfs x rw\n",
			want: "1 0 0:2 /|/|tmpfs|x|rw\n"},
		"escapes": {text: `1 0 0:2 /a\040b /c\134\011d\012 rw - tmpfs e\040f rw` + "\n",
			want: "1 0 0:2 /a b|/c\\\td\n|tmpfs|e f|rw\n"},
		"a source of none": {text: "1 0 0:2 / / rw - tmpfs  rw\n", want: "1 0 0:2 /|/|tmpfs||rw\n"},
		"a namespace": {text: "1 0 0:4 net:[4026531840] /run/ns rw - nsfs nsfs rw\n",
			want: "1 0 0:4 net:[4026531840]|/run/ns|nsfs|nsfs|rw\n"},
		"long":              {text: strings.Repeat(root, 3000), paths: []string{"/x"}, want: "\n"},
		"a piece of a line": {text: root + "1 / / rw - ext4 /dev/sda1 rw\n", want: bad},
		"a piece behind":    {text: "shared:1 - ext4 /dev/sda1 rw\n" + root, want: bad},
		"without a type":    {text: "1 0 0:2 / / rw -\n", want: bad},
		"without a source":  {text: "1 0 0:2 / / rw - tmpfs\n", want: bad},
		"without a path":    {text: "1 0 0:2 - tmpfs x rw\n", want: bad},
		"no end":            {text: root + "40 30 0:50 / /srv rw - nfs4 server", paths: []string{"/srv"}, want: "\n"},
		"places": {text: root + nfs + auto + tmp,
			paths: []string{"/", "/srv", "/srv/jails", "/srv/jails/v1", "/srv/jailsx", "/srv/jails/auto/x", "/srv/jails/tmp"},
			want: "\n\nserver:/jails (nfs4) at /srv/jails\nserver:/jails (nfs4) at /srv/jails\n\n" +
				"/etc/auto.jails (autofs) at /srv/jails/auto\n\n"},
		"the uppermost counts": {text: nfs + "61 40 0:53 / /srv/jails rw - xfs /dev/sdb rw\n",
			paths: []string{"/srv/jails"}, want: "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(table, []byte(row.text), 0o600))
			file, err := os.Open(table)
			require.NoError(t, err)
			defer file.Close()
			cmd := exec.Command(program, row.paths...)
			cmd.Stdin = file
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Equal(t, row.want, string(out))
		})
	}
}
