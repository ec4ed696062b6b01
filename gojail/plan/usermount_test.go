// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
)

func TestPermit(t *testing.T) {
	c, err := config.ParseConfig(`default = "a"
[slurm]
spool = "/var/spool/n1/slurmd"
munge = "/opt/munge/socket"
host = ["/shared/pmix", "/cm/shared/apps/slurm"]
[jail.a]
root = "/j"
[[jail.a.user_mounts]]
source = "/data"
[[jail.a.user_mounts]]
source = "/ref"
destination = "/mnt"
readonly = true
[jail.b]
root = "/j"
`, "")
	require.NoError(t, err)
	for _, test := range []struct {
		jail, source, destination string
		readonly                  bool
		want                      string // empty: permitted
	}{
		{"a", "/data", "/x", false, ""},
		{"a", "/data/sub", "/home/me/x", true, ""},
		{"a", "/ref/x", "/mnt/x", true, ""},
		{"a", "/database", "/x", false, "/database may not be mounted in jail a; permitted: /data, /ref"},
		{"a", "/etc", "/x", true, "/etc may not be mounted"},
		{"a", "/ref/x", "/mnt/x", false, "only read-only; use /ref/x:/mnt/x:ro"},
		{"a", "/ref/x", "/x", true, "only at or below /mnt, not on /x"},
		{"a", "/data", "/etc/pam.d", false, "cannot mount on /etc/pam.d: it would hide or change /etc of the jail"},
		{"a", "/data", "/usr", false, "cannot mount on /usr"},
		{"a", "/data", "/proc/1", false, "cannot mount on /proc/1"},
		{"a", "/data", "/var", false, "hide or change /var/spool/n1/slurmd"},
		{"a", "/data", "/tmp/x", false, "cannot mount on /tmp/x"},
		{"b", "/data", "/x", false, "jail b does not permit --jail-mount"},
		{"a", "/data", "/nix/store", false, "cannot mount on /nix/store"},
		{"a", "/data", "/shared/pmix/lib/pmix", false,
			"cannot mount on /shared/pmix/lib/pmix: the node's Slurm and gojail use their own /shared/pmix; choose another directory"},
		{"a", "/data", "/shared", false, "use their own /shared/pmix"},
		{"a", "/data", "/shared/data", false, ""},
		{"a", "/data", "/cm", false, "use their own /cm/shared/apps/slurm"},
		{"a", "/data", "/site/state/x", false, "use their own /site/state"},
		{"a", "/data", "/plugins", false, "use their own /plugins"},
		{"a", "/data", "/commands/bin", false, "use their own /commands/bin"},
		{"a", "/data", "/opt/munge", false, "cannot mount on /opt/munge"},
		{"a", "/data", "/var/lib/gojail/jobs", false, "use their own /var/lib/gojail"},
		{"a", "/data", "/var/lib", false, ""},
	} {
		trusted := TrustedPaths(c, "/site/state", []string{"/plugins/slurm"}, []string{"/commands/bin/srun", "/srun"})
		err := c.Permit(c.Jails[test.jail], test.source, test.destination, test.readonly, trusted)
		if test.want == "" {
			assert.NoError(t, err, "%v", test)
		} else {
			assert.ErrorContains(t, err, test.want)
		}
	}
}
