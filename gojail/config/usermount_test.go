// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/rootpath"
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
		"/data":                                  "must be SOURCE:DESTINATION",
		"/a:/b:ro:x":                             "must be SOURCE:DESTINATION",
		",":                                      "must be SOURCE:DESTINATION",
		":/b":                                    "source the path is empty",
		"a:/b":                                   `source "a": must be an absolute path`,
		"/a:b":                                   `destination "b": must be an absolute path`,
		"/a:/b/../c":                             `destination "/b/../c": write it as "/c"`,
		"/a:/":                                   `destination "/" is not allowed`,
		"/a:/b:RO":                               `unknown option "RO"`,
		"/a:/b,/c:/b":                            "would hide the earlier mount on /b",
		"/a:/b/c,/a:/b":                          "would hide the earlier mount on /b/c",
		"/a\n:/b":                                "unprintable character",
		"/a\u009b:/b":                            `"/a\u009b": contains an unprintable character`,
		"/a\x9b:/b":                              `"/a\x9b": contains an unprintable character`,
		"/a:/b\u202e":                            `"/b\u202e": contains an unprintable character`,
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
	assert.ErrorContains(t, err, "too many mounts: 25; at most 24")
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
			require.NoError(t, rootpath.CheckClean(m.Source))
			require.NoError(t, rootpath.CheckClean(m.Destination))
			require.NotContains(t, m.Source+m.Destination, ":")
		}
	})
}
