// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// runShell runs a command in the namespace.
func runShell(t testing.TB, n *link.Namespace, line string) string {
	t.Helper()
	var out []byte
	err := netns.RunInside(n.FD(), func() (err error) {
		out, err = exec.Command("sh", "-c", line).CombinedOutput()
		return err
	})
	require.NoError(t, err, "%s: %s", line, out)
	return string(out)
}
