// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

var site, on = fakesys.NewConfig, fakesys.SelectPFs

func readInventory(t *testing.T) *inventory.Inventory {
	t.Helper()
	n := fakesys.New(t)
	n.AddCard(fakesys.Ens1f0.WithVFs(4))
	n.AddCard(fakesys.Ens2f0.WithVFs(2))
	return n.ReadInventory()
}

// listOwners returns the policy of each VF: "aab-" for VF 0 to 3.
func listOwners(c policy.Card) string {
	var text strings.Builder
	for _, p := range c.VFs {
		if p == nil {
			text.WriteByte('-')
		} else {
			text.WriteString(p.Name)
		}
	}
	return text.String()
}

func TestWhosePolicy(t *testing.T) {
	inv := readInventory(t)
	inv.PFs[1].AltNames = []string{"rail0"}
	other, err := hostlist.Parse("cpu[01-09]")
	require.NoError(t, err)
	a := func(name string, vfs, priority int, s config.Selector) *config.Policy {
		return &config.Policy{Name: name, VFs: vfs, Priority: priority, NIC: s}
	}
	for name, c := range map[string]struct {
		policies []*config.Policy
		want     map[string]string
		warning  string
	}{
		"one":                    {[]*config.Policy{a("a", 4, 50, on("ens1f0"))}, map[string]string{"ens1f0": "aaaa"}, ""},
		"an alternative name":    {[]*config.Policy{a("a", 1, 50, on("rail0"))}, map[string]string{"ens1f0": "a"}, ""},
		"ranges":                 {[]*config.Policy{a("a", 6, 50, on("ens1f0#0-1")), a("b", 6, 50, on("ens1f0#4-5"))}, map[string]string{"ens1f0": "aa--bb"}, ""},
		"the lower number wins":  {[]*config.Policy{a("a", 4, 50, on("ens1f0")), a("b", 4, 10, on("ens1f0#1-2"))}, map[string]string{"ens1f0": "abba"}, ""},
		"the lower one is first": {[]*config.Policy{a("b", 4, 10, on("ens1f0#1-2")), a("a", 4, 50, on("ens1f0"))}, map[string]string{"ens1f0": "abba"}, ""},
		"a longer one behind it": {[]*config.Policy{a("a", 2, 10, on("ens1f0")), a("b", 4, 50, on("ens1f0"))}, map[string]string{"ens1f0": "aabb"}, ""},
		"by vendor":              {[]*config.Policy{a("a", 1, 0, config.Selector{Vendor: "15b3"})}, map[string]string{"ens1f0": "a", "ens2f0": "a"}, ""},
		"every field counts":     {[]*config.Policy{a("a", 1, 0, config.Selector{Vendor: "15b3", Device: "1017", Root: []string{"0000:3b:00.0"}})}, map[string]string{"ens2f0": "a"}, ""},
		"nothing":                {[]*config.Policy{a("a", 1, 0, config.Selector{Vendor: "8086"})}, map[string]string{}, "network.toml:10: policy \"a\" matches no network card of gpu01"},
		"an empty selector":      {[]*config.Policy{a("a", 1, 0, config.Selector{})}, map[string]string{}, "matches no network card"},
		"another node's":         {[]*config.Policy{{Name: "a", VFs: 1, Nodes: other, NIC: on("nothing")}}, map[string]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cards, warnings, err := policy.FindCards(site(c.policies...), inv)
			require.NoError(t, err)
			got := map[string]string{}
			for _, card := range cards {
				got[card.PF.Name()] = listOwners(card)
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

func TestRailVFs(t *testing.T) {
	inv := readInventory(t)
	a := &config.Policy{Name: "a", VFs: 4, NIC: on("ens1f0#0-1", "ens2f0")}
	b := &config.Policy{Name: "b", VFs: 4, NIC: on("ens1f0#2-3")}
	cfg := site(a, b)
	cfg.Rails = []*config.Rail{{Name: "first", Policy: a}, {Name: "second", Policy: b}, {Name: "third", Policy: a}}
	vfs, err := policy.FindRailVFs(cfg, inv)
	require.NoError(t, err)
	names := func(rail int) (all []string) {
		for _, vf := range vfs[cfg.Rails[rail]] {
			all = append(all, vf.Name())
		}
		return all
	}
	assert.Equal(t, []string{"ens2f0v0", "ens2f0v1", "ens1f0v0", "ens1f0v1"}, names(0), "ens2f0 has only two of its four")
	assert.Equal(t, []string{"ens1f0v2", "ens1f0v3"}, names(1))
	assert.Equal(t, names(0), names(2))
	b.NIC = on("ens1f0#1-3")
	_, err = policy.FindRailVFs(cfg, inv)
	assert.ErrorContains(t, err, "both have VF 1 of ens1f0")
}
