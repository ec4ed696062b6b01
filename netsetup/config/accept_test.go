// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// TestParseAccepts parses valid files that look like the rejected ones.
func TestParseAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"127 partitions":        manyRails(127),
		"one partition":         strings.ReplaceAll(manyRails(140), "pkey = ", "pkey = 7 #"),
		"the default partition": manyRails(127) + "[[rail]]\nname = \"d\"\npolicy = \"p\"\npkey = 0x7fff",
		"qos of rails' vlan":    strings.Replace(policyLines, "vfs = 4", "vfs = 4\nqos = 3", 1) + poolLines + strings.ReplaceAll(railLines, "policy =", "vlan = 5\npolicy ="),
		"a PF in two parts":     "[[policy]]\nname = \"a\"\nvfs = 8\nnic.pf = [\"e#0-3\"]\n[[policy]]\nname = \"b\"\nvfs = 8\nnic.pf = [\"e#4-7\"]",
		"a PF on other nodes":   policyLines + "nodes = \"n2\"\n[[policy]]\nname = \"c\"\nnic.pf = [\"ib0\"]\nvfs = 2\nnodes = \"n1\"",
		"a PF of two vendors":   "[[policy]]\nname = \"a\"\nvfs = 8\nnic = { pf = [\"e\"], vendor = \"15b3\" }\n[[policy]]\nname = \"b\"\nvfs = 8\nnic = { pf = [\"e\"], vendor = \"8086\" }",
		"a PF elsewhere":        policyLines + "[[policy]]\nname = \"c\"\nnic.pf = [\"ib0\"]\nvfs = 2\nnodes = \"n2\"",
		"qos of policy's vlan":  strings.Replace(policyLines, "vfs = 4", "vfs = 4\nqos = 3\nvlan = 9", 1) + poolLines + railLines,
		"link-local via":        "[[pool]]\nname = \"a\"\nsubnet = \"fd00::/64\"\ndirectory = \"/d\"\nroutes = [{ to = \"fd01::/16\", via = \"fe80::1\" }]",
		"a mode on other nodes": strings.ReplaceAll(policyLines+"nodes = \"n2\"\nrdma = \"shared\"", "[\"ens1\"]", "[\"ens1\"]\nrdma = \"exclusive\""),
		"gateway of a /31":      "[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/31\"\ngateway = \"10.1.0.0\"\nnodes = \"n1\"\nper_node = 1",
		"a /32":                 "[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/32\"\nnodes = \"n1\"\nper_node = 1",
		"both of a /31":         "[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/31\"\nnodes = \"n1\"\nper_node = 2",
		"both of a /127":        "[[pool]]\nname = \"a\"\nsubnet = \"fd00::/127\"\nnodes = \"n1\"\nper_node = 2",
		"own name as label":     policyLines + poolLines + railLines + "labels = [\"r1\"]",
		"default none":          "default = \"none\"",
		"two parts of a subnet": strings.Replace(poolLines, "10.2.0.0/24\"", "10.1.0.0/24\"\nranges = [\"10.1.0.9\"]", 1) + "[[pool]]\nname = \"c\"\nsubnet = \"10.3.0.0/24\"\ndirectory = \"/d\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "two parts of a subnet" {
				text = strings.Replace(text, "directory = \"/d/a\"", "directory = \"/d/a\"\nexclude = [\"10.1.0.9\"]", 1)
			}
			_, err := Parse(text, "n1")
			assert.NoError(t, err)
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: only root's files are read")
	}
	path := filepath.Join(t.TempDir(), "network.toml")
	require.NoError(t, os.WriteFile(path, []byte("\n[[rail]]\nname = \"a\"\ntable = 254\n"+policyLines), 0o644))
	_, err := Load(path, "n1")
	assert.EqualError(t, err, path+": line 2: rail 1: policy: missing; name the policy whose VFs the rail has: p, ib")
	require.NoError(t, os.WriteFile(path, []byte(policyLines), 0o644))
	c, err := Load(path, "n1")
	require.NoError(t, err)
	assert.Equal(t, path, c.Path)
	assert.Equal(t, "n1", c.Node)
	require.NoError(t, os.Chmod(path, 0o666))
	_, err = Load(path, "n1")
	assert.EqualError(t, err, path+": is writable by others (mode 0666); run: chmod go-w "+path)
	require.NoError(t, os.Remove(path))
	_, err = Load(path, "n1")
	assert.EqualError(t, err, path+": cannot read the network configuration: no such file or directory")
}

func FuzzParse(f *testing.F) {
	f.Add(wholeText, "gpu01")
	for _, test := range refused {
		if len(test.text) < 1000 {
			f.Add(test.text, "n1")
		}
	}
	f.Fuzz(func(t *testing.T, text, node string) {
		c, err := Parse(text, node)
		if err != nil {
			require.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err)
			return
		}
		for _, w := range c.ListWarnings() {
			require.False(t, strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", w)
		}
		for _, r := range c.Rails {
			require.NotNil(t, r.Policy)
			require.Contains(t, r.Labels, r.Name)
			r.ResolveTag()
		}
		for _, p := range c.Pools {
			require.NotZero(t, p.CountAddresses())
			for _, r := range p.ListUsable() {
				require.True(t, p.Subnet.Contains(r.First) && p.Subnet.Contains(r.Last))
				require.False(t, r.overlaps(Range{p.Gateway, p.Gateway}))
				for _, route := range p.Routes {
					require.False(t, route.Via.IsValid() && r.overlaps(Range{route.Via, route.Via}))
				}
			}
		}
		for _, label := range append(c.listLabels(), c.Default) {
			if _, err := c.FindRails(label); err != nil {
				require.ErrorContains(t, err, "is not on this node")
			}
		}
	})
}
