// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseUserMounts(t *testing.T) {
	mounts, err := ParseUserMounts("/data/x:/mnt/x,/data/y:/mnt/y:ro,/data/z:/mnt/z:rw")
	require.NoError(t, err)
	assert.Equal(t, []UserMount{
		{"/data/x", "/mnt/x", false}, {"/data/y", "/mnt/y", true}, {"/data/z", "/mnt/z", false},
	}, mounts)
	mounts, err = ParseUserMounts("")
	require.NoError(t, err)
	assert.Empty(t, mounts)
}

func TestParseUserMountsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"/data":                                  "write it as SOURCE:DESTINATION",
		"/a:/b:ro:x":                             "write it as SOURCE:DESTINATION",
		",":                                      "write it as SOURCE:DESTINATION",
		":/b":                                    "source the path is empty",
		"a:/b":                                   `source "a": must be an absolute path`,
		"/a:b":                                   `destination "b": must be an absolute path`,
		"/a:/b/../c":                             `destination "/b/../c": write it as "/c"`,
		"/a:/":                                   `destination "/" itself`,
		"/a:/b:RO":                               `"RO" is neither ro nor rw`,
		"/a:/b,/c:/b":                            "would hide the mount on /b",
		"/a:/b/c,/a:/b":                          "would hide the mount on /b/c",
		"/a\n:/b":                                "control character",
		"/a\u009b:/b":                            `"/a\u009b": contains a control character`,
		"/a\x9b:/b":                              `"/a\x9b": contains a control character`,
		"/a:/b\u202e":                            `"/b\u202e": contains a control character or another that cannot be shown`,
		strings.Repeat("/a:/b/x,", 30) + "/a:/c": "would hide",
	} {
		_, err := ParseUserMounts(text)
		assert.ErrorContains(t, err, want, text)
	}
	many := make([]string, userMountsMax+1)
	for i := range many {
		many[i] = "/a:/b/" + strings.Repeat("x", i+1)
	}
	_, err := ParseUserMounts(strings.Join(many, ","))
	assert.ErrorContains(t, err, "25 mounts; at most 24")
}

func TestPermit(t *testing.T) {
	c, err := parseConfig(`default = "a"
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
		{"a", "/database", "/x", false, "/database may not be mounted in jail a; permitted are: /data, /ref"},
		{"a", "/etc", "/x", true, "/etc may not be mounted"},
		{"a", "/ref/x", "/mnt/x", false, "only read-only; write /ref/x:/mnt/x:ro"},
		{"a", "/ref/x", "/x", true, "only on /mnt and below, not on /x"},
		{"a", "/data", "/etc/pam.d", false, "nothing may be mounted on /etc/pam.d: it would cover or change /etc of the jail"},
		{"a", "/data", "/usr", false, "nothing may be mounted on /usr"},
		{"a", "/data", "/proc/1", false, "nothing may be mounted on /proc/1"},
		{"a", "/data", "/var", false, "cover or change /var/spool/n1/slurmd"},
		{"a", "/data", "/tmp/x", false, "nothing may be mounted on /tmp/x"},
		{"b", "/data", "/x", false, "jail b permits no --jail-mount"},
		{"a", "/data", "/nix/store", false, "nothing may be mounted on /nix/store"},
		{"a", "/data", "/shared/pmix/lib/pmix", false,
			"nothing may be mounted on /shared/pmix/lib/pmix: the node's Slurm and gojail use their own /shared/pmix; choose another directory"},
		{"a", "/data", "/shared", false, "use their own /shared/pmix"},
		{"a", "/data", "/shared/data", false, ""},
		{"a", "/data", "/cm", false, "use their own /cm/shared/apps/slurm"},
		{"a", "/data", "/site/state/x", false, "use their own /site/state"},
		{"a", "/data", "/plugins", false, "use their own /plugins"},
		{"a", "/data", "/commands/bin", false, "use their own /commands/bin"},
		{"a", "/data", "/opt/munge", false, "nothing may be mounted on /opt/munge"},
		{"a", "/data", "/var/lib/gojail/jobs", false, "use their own /var/lib/gojail"},
		{"a", "/data", "/var/lib", false, ""},
	} {
		trusted := c.trustedPaths("/site/state", []string{"/plugins/slurm"}, []string{"/commands/bin/srun", "/srun"})
		err := c.Permit(c.Jails[test.jail], test.source, test.destination, test.readonly, trusted)
		if test.want == "" {
			assert.NoError(t, err, "%v", test)
		} else {
			assert.ErrorContains(t, err, test.want)
		}
	}
}

func FuzzParseUserMounts(f *testing.F) {
	f.Add("/a:/b:ro,/c:/d")
	f.Add("::,:")
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := ParseUserMounts(text)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.LessOrEqual(t, len(mounts), userMountsMax)
		for _, m := range mounts {
			require.NoError(t, cleanPath(m.Source))
			require.NoError(t, cleanPath(m.Destination))
			require.NotContains(t, m.Source+m.Destination, ":")
		}
	})
}
