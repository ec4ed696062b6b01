// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestUsersOfANameService: install.md's way to have the names of users in a jail that only the node's name service knows, a file with all of them.
func TestUsersOfANameService(t *testing.T) {
	c := sharedCluster(t)
	r := c.Root("sh", "-ec", "mkdir -p /var/lib/users; (getent passwd; echo carol:x:70001:70001::/home/carol:/bin/sh) >/var/lib/users/passwd")
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { c.Root("rm", "-r", "/var/lib/users") })
	configure(t, c, harness.DefaultConfig+`[jail.named]
root = "/srv/jails/other"
host = ["/etc/resolv.conf", "/etc/hosts", "/etc/group"]
[[jail.named.mounts]]
destination = "/etc/passwd"
source = "/var/lib/users/passwd"
options = ["bind", "ro"]
`)
	require.Zero(t, c.Gojail("n1", "init", "named").Code)
	r = c.Run(harness.Alice, "srun", "-wn1", "--jail=named", "sh", "-c", "id -un; getent passwd carol; touch /etc/passwd")
	assert.Equal(t, "alice\ncarol:x:70001:70001::/home/carol:/bin/sh", strings.TrimSpace(r.Stdout), r)
	assert.NotZero(t, r.Code, r)
}
