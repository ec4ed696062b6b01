// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wholePolicy is a policy of whole cards in lines 1 to 4.
const wholePolicy = "[[policy]]\nname = \"w\"\nnic.pf = [\"ens7\"]\nwhole = true\n"

// TestWholeCards writes keys beside whole = true; "" accepts them.
func TestWholeCards(t *testing.T) {
	const rail = "[[rail]]\nname = \"r0\"\npolicy = \"w\"\npools = [\"a\"]\n" // after four lines of policy and eight of pools
	for name, c := range map[string]struct{ text, want string }{
		"alone":              {wholePolicy, ""},
		"with its own":       {wholePolicy + "mtu = 9000\nlink = \"eth\"\nrdma = \"shared\"\npriority = 3\n", ""},
		"a VF by its root":   {strings.Replace(wholePolicy, `nic.pf = ["ens7"]`, `nic.root = ["00010000:01:00.1"]`, 1), ""},
		"a domain of six":    {strings.Replace(wholePolicy, `nic.pf = ["ens7"]`, `nic.root = ["ABCDEF:01:00.1"]`, 1), ""},
		"an alternative":     {strings.Replace(wholePolicy, "ens7", "enp134s0f0np0-long-name", 1), ""},
		"false":              {strings.Replace(wholePolicy, "whole = true", "whole = false\nvfs = 2", 1), ""},
		"RDMA without pools": {wholePolicy + "rdma = \"shared\"\n[[rail]]\nname = \"r\"\npolicy = \"w\"", ""},
		"a rail":             {wholePolicy + poolLines + rail, ""},
		"false alone":        {strings.Replace(wholePolicy, "true", "false", 1), `line 1: policy 1: vfs: missing; write how many VFs each PF gets, or whole = true for a card that is given as it is`},
		"vfs":                {wholePolicy + "vfs = 4", `line 5: policy 1: vfs: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"trust":              {wholePolicy + "trust = false", `line 5: policy 1: trust: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"spoof_check":        {wholePolicy + "spoof_check = true", `line 5: policy 1: spoof_check: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"vlan":               {wholePolicy + "vlan = 7", `line 5: policy 1: vlan: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"qos":                {wholePolicy + "qos = 0", `line 5: policy 1: qos: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"proto":              {wholePolicy + "proto = \"802.1Q\"", `line 5: policy 1: proto: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"min_rate":           {wholePolicy + "min_rate = 0", `line 5: policy 1: min_rate: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"max_rate":           {wholePolicy + "max_rate = 9", `line 5: policy 1: max_rate: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"InfiniBand trust":   {wholePolicy + "link = \"ib\"\ntrust = false", `line 6: policy 1: trust: is for VFs, and whole = true gives the card itself; leave out one of the two`},
		"InfiniBand mtu":     {wholePolicy + "link = \"ib\"\nmtu = 9000", `line 6: policy 1: mtu: 9000: IP over InfiniBand takes 72 to 4092: 4 less than the link's MTU, as in 2044 or 4092`},
		"a range":            {strings.Replace(wholePolicy, "ens7", "ens7#0-3", 1), `line 3: policy 1: nic.pf: "ens7#0-3": a card that is given whole has no VFs; write "ens7" alone`},
		"a rail's vlan":      {wholePolicy + poolLines + rail + "vlan = 7", `line 17: rail 1: vlan: the policy "w" gives whole cards, and only VFs are put into a VLAN; leave it out, and let the switch port tag`},
		"a rail's pkey":      {wholePolicy + "link = \"ib\"\n" + poolLines + rail + "pkey = 7", `line 18: rail 1: pkey: the policy "w" gives whole cards, and only VFs are put into a partition; leave it out, and set the partition of the port in the subnet manager`},
		"two rails":          {wholePolicy + poolLines + rail + strings.NewReplacer("r0", "r1", "[\"a\"]", "[\"b\"]").Replace(rail), `line 19: rail 2: policy: the rail "r0" of line 13 has the cards of "w" already, which are given whole; give each rail a policy of its own`},
		"no pools":           {wholePolicy + "[[rail]]\nname = \"r\"\npolicy = \"w\"", `line 5: rail 1: pools: missing; name the pools whose addresses the rail gives, such as ["r"] (only an InfiniBand rail, and one of whole cards with rdma, works without a pool)`},
		"and its VFs":        {wholePolicy + "[[policy]]\nname = \"v\"\nnic.pf = [\"ens7#0-1\"]\nvfs = 2", `line 7: policy 2: nic.pf: "ens7" is selected by the policy "w" of line 1 too; a card is given whole by one policy, or its VFs are`},
		"its VFs first":      {"[[policy]]\nname = \"v\"\nnic.pf = [\"ens7\"]\nvfs = 2\n" + wholePolicy, `line 7: policy 2: nic.pf: "ens7" is selected by the policy "v" of line 1 too; a card is given whole by one policy, or its VFs are`},
		"twice":              {wholePolicy + strings.Replace(wholePolicy, `"w"`, `"x"`, 1), `line 7: policy 2: nic.pf: "ens7" is selected by the policy "w" of line 1 too; a card is given whole by one policy, or its VFs are`},
		"twice by address": {"[[policy]]\nname = \"w\"\nnic.root = [\"00010000:01:00.0\"]\nwhole = true\n[[policy]]\nname = \"x\"\nnic.root = [\"10000:01:00.0\"]\nwhole = true",
			`line 7: policy 2: nic.root: "10000:01:00.0" is selected by the policy "w" of line 1 too; one PF needs one policy`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.text, "n1")
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			assert.EqualError(t, err, c.want)
		})
	}
}
