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

// TestInstallAgain: a host gets gojail again in the way in which it had it.
func TestInstallAgain(t *testing.T) {
	const packages = "install the packages gojail and gojail-slurm again: "
	const deb, packaged = " /etc/debian_version", " /usr/share/gojail/plugstack.conf"
	for _, test := range []struct{ libDir, files, want string }{
		{"/usr/lib/gojail", deb + packaged, packages + "dpkg -i gojail_*.deb gojail-slurm_*.deb"},
		{"/usr/lib/gojail", packaged, packages + "rpm -U --replacepkgs gojail-*.rpm"},
		{"/usr/lib/gojail", packaged + " /var/lib/rpm/x", packages + "rpm -U --replacepkgs gojail-*.rpm"},
		{"/usr/lib/gojail", deb + packaged + " /var/lib/rpm/x", packages + "dpkg -i gojail_*.deb gojail-slurm_*.deb"},
		{"/usr/lib/gojail", deb, "run in gojail's sources: make install PREFIX=/usr"},
		{"/usr/local/lib/gojail", deb + packaged, "run in gojail's sources: make install PREFIX=/usr/local"},
		{"/opt/our gojail/lib/gojail", "", "run in gojail's sources: make install PREFIX='/opt/our gojail'"},
		{"/opt/gojail", deb + packaged, "install gojail again on this node (its package, or make install)"},
	} {
		dir := t.TempDir()
		for _, file := range strings.Fields(test.files) {
			path := filepath.Join(dir, file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, nil, 0o644))
		}
		c := &checker{node: Node{LibDir: test.libDir, rootIn: dir}}
		assert.Equal(t, test.want, c.describeInstallation(), test)
	}
}
