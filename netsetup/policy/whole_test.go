// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// TestWholeCards lists the functions of each policy: of ens1f0 with VFs ens1f0v0 to ens1f0v3, and of ens2f0, which has another
// name and two VFs.
func TestWholeCards(t *testing.T) {
	whole := func(name string, priority int, s config.Selector) *config.Policy {
		return &config.Policy{Name: name, Whole: true, Priority: priority, NIC: s}
	}
	vfs := func(name string, priority int, s config.Selector) *config.Policy {
		return &config.Policy{Name: name, VFs: 2, Priority: priority, NIC: s}
	}
	vendor := config.Selector{Vendor: "15b3"}
	for name, c := range map[string]struct {
		policies []*config.Policy
		want     []string // functions of each policy
		err      string
		warning  string
	}{
		"a card":                  {[]*config.Policy{whole("w", 50, on("ens1f0"))}, []string{"w ens1f0"}, "", ""},
		"by vendor, not the VFs":  {[]*config.Policy{whole("w", 50, vendor)}, []string{"w ens2f0", "w ens1f0"}, "", ""},
		"VFs by name and address": {[]*config.Policy{whole("w", 50, on("ens1f0v1")), whole("x", 50, config.Selector{Root: []string{"0000:86:01.3"}})}, []string{"w ens1f0v1", "x ens1f0v3"}, "", ""},
		"one card of all":         {[]*config.Policy{vfs("v", 50, vendor), whole("w", 10, on("ens1f0"))}, []string{"v ens2f0v0", "v ens2f0v1", "w ens1f0"}, "", ""},
		"VFs of one card":         {[]*config.Policy{vfs("v", 10, on("ens1f0")), whole("w", 50, vendor)}, []string{"w ens2f0", "v ens1f0v0", "v ens1f0v1"}, "", ""},
		"an alternative name":     {[]*config.Policy{whole("w", 50, on("rail0"))}, []string{"w ens2f0"}, "", ""},
		"both":                    {[]*config.Policy{vfs("v", 50, vendor), whole("w", 50, on("ens1f0"))}, nil, `policies "v" (line 10) and "w" (line 20) both have ens1f0, with priority 50; a card is given whole by one policy, or its VFs are`, ""},
		"whole twice":             {[]*config.Policy{whole("v", 50, vendor), whole("w", 50, on("ens1f0"))}, nil, `policies "v" (line 10) and "w" (line 20) both have ens1f0`, ""},
		"a VF and its card":       {[]*config.Policy{whole("v", 50, on("ens1f0")), whole("w", 50, on("ens1f0v0"))}, nil, `policy "w" (line 20) gives ens1f0v0 whole, a VF of ens1f0, which policy "v" (line 10) has; leave out one of the two`, ""},
		"a VF of a policy":        {[]*config.Policy{vfs("v", 50, on("ens1f0")), whole("w", 50, on("ens1f0v0"))}, nil, `policy "w" (line 20) gives ens1f0v0 whole, a VF of ens1f0`, ""},
		"a name that is gone":     {[]*config.Policy{whole("w", 50, on("ens1f0", "ens2f0np0"))}, []string{"w ens1f0"}, "", `network.toml:10: policy "w" names pf ens2f0np0, which gpu01 does not have; the node has ens2f0 (also rail0; root 0000:3b:00.0, vendor 15b3, device 1017), ens1f0 (root 0000:86:00.0`},
		"an address that is gone": {[]*config.Policy{whole("w", 50, config.Selector{Root: []string{"0000:86:00.0", "10000:01:00.0"}})}, []string{"w ens1f0"}, "", `names root 10000:01:00.0, which gpu01 does not have`},
		"no name at all":          {[]*config.Policy{whole("w", 50, on("ens7f0"))}, nil, "", `policy "w" matches no network card of gpu01: it selects pf ens7f0, but the node has ens2f0 (also rail0;`},
	} {
		t.Run(name, func(t *testing.T) {
			inv := readInventory(t)
			inv.PFs[0].AltNames = []string{"rail0"}
			cards, warnings, err := policy.FindCards(site(c.policies...), inv)
			if c.err != "" {
				assert.ErrorContains(t, err, c.err)
				return
			}
			assert.NoError(t, err)
			var got []string
			for _, card := range cards {
				for _, p := range card.ListEffective() {
					for _, f := range card.ListFunctions(p) {
						got = append(got, p.Name+" "+describe(f))
					}
				}
			}
			assert.Equal(t, c.want, got)
			if c.warning == "" {
				assert.Empty(t, warnings)
			} else {
				assert.Contains(t, strings.Join(warnings, "\n"), c.warning)
			}
		})
	}
}

func describe(f *inventory.VF) string {
	if f == nil {
		return "missing"
	}
	return f.Name()
}
