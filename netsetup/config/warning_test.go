// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct{ node, text, want string }{
		"one subnet": {"n1", `
[[pool]]
name = "a"
subnet = "10.0.0.0/24"
ranges = ["10.0.0.1-10.0.0.9"]
directory = "/d/a"
[[pool]]
name = "b"
subnet = "10.0.0.0/24"
ranges = ["10.0.0.10-10.0.0.19"]
directory = "/d/b"
[[policy]]
name = "p"
nic.pf = ["e"]
vfs = 2
` + railLines, `line 7: rail "r0" and rail "r1" share the subnet 10.0.0.0/24: programs that choose an interface by the main routing table use one of them for all traffic; give each its own subnet
line 16: without [control], a job with a network cannot reach slurmctld: srun fails inside it`},
		"derived": {"n3", `
[[pool]]
name = "a"
subnet = "10.0.0.0/24"
nodes = "n[1-2]"
per_node = 1
routes = [{ to = "10.2.0.0/16" }]
[[pool]]
name = "b"
subnet = "10.0.1.0/24"
directory = "/d/b"
routes = [{ to = "10.2.0.0/16" }]
[[pool]]
name = "c"
subnet = "10.0.2.0/24"
directory = "/d/c"
[[pool]]
name = "unused"
subnet = "10.0.3.0/24"
directory = "/d/c"
[[policy]]
name = "p"
nic.pf = ["e"]
vfs = 2
` + railLines + `[control]
pool = "c"
`, `line 17: pool "unused": no rail uses it
line 25: rail "r0": this node, n3, is not in nodes of the pool "a": a job that asks for the rail fails here
line 2: pool "a": per_node is 1, but the policy "p" makes 2 VFs on a PF: the last ones have no address
line 8: rails "r0" and "r1" both have a route to 10.2.0.0/16: programs that do not bind to an address use the first`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(test.text, test.node)
			require.NoError(t, err)
			assert.Equal(t, test.want, strings.Join(c.ListWarnings(), "\n"))
		})
	}
}
