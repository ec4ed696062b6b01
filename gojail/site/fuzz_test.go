// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/config/configtest"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/rootpath"
)

func FuzzParseConfig(f *testing.F) {
	f.Add(configtest.Whole(f))
	f.Add("default = \"none\"\nallow_none = true\n[jail]\n\"a\\\"b\" = 1")
	f.Add("[[jail.a.mounts]]\nx.y = 1")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.ParseConfig(text, "n1")
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, j := range c.Jails {
			require.NoError(t, rootpath.CheckClean(j.Root))
			plan.Jail(c, j, &node.HostFacts{})
			plan.Stage(c, j, &node.HostFacts{})
		}
		site, err := compile(c, noFacts(), nil, nil, fixedTime)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(site, "\nend\n"))
	})
}
