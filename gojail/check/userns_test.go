// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUsernsRefusals covers the settings of all kernels, of Debian's and of Ubuntu's.
func TestUsernsRefusals(t *testing.T) {
	for _, test := range []struct {
		name, value, root, users string // value of the setting, and what permits root and users
	}{
		{"", "", "", ""},
		{"user/max_user_namespaces", "0", "user.max_user_namespaces=65536", "user.max_user_namespaces=65536"},
		{"user/max_user_namespaces", "31000", "", ""},
		{"kernel/unprivileged_userns_clone", "0", "", "kernel.unprivileged_userns_clone=1"},
		{"kernel/unprivileged_userns_clone", "1", "", ""},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "", "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"kernel/apparmor_restrict_unprivileged_userns", "0", "", ""},
	} {
		dir := t.TempDir()
		if test.name != "" {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(test.name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, test.name), []byte(test.value+"\n"), 0o644))
		}
		assert.Equal(t, test.root, findUsernsRefusal(dir, false), "%s = %s, root", test.name, test.value)
		assert.Equal(t, test.users, findUsernsRefusal(dir, true), "%s = %s, users", test.name, test.value)
	}
}
