// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var hostLists = map[string]string{
	"login":                           "login",
	"b,a":                             "b a",
	"a[01-3]":                         "a01 a02 a03",
	"a[1-010]":                        "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10",
	"a[08-11]":                        "a08 a09 a10 a11",
	"a[8-11]":                         "a8 a9 a10 a11",
	"a[099-101,7]":                    "a099 a100 a101 a7",
	"a[1,02,003]":                     "a1 a02 a003",
	"a[2,1],a1":                       "a2 a1 a1",
	"a[00-0]":                         "a00",
	"[1-3]":                           "1 2 3",
	"a[1-2][3-4]":                     "a13 a14 a23 a24",
	"a[1-11][1-2]":                    "a11 a12 a21 a22 a31 a32 a41 a42 a51 a52 a61 a62 a71 a72 a81 a82 a91 a92 a101 a102 a111 a112",
	"gpu[01-04,7],login,r[1-2]n[1-3]": "gpu01 gpu02 gpu03 gpu04 gpu7 login r1n1 r1n2 r1n3 r2n1 r2n2 r2n3",
	"a[1-2]b[1-2]c[1-2]":              "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2",
	"a-[1-2].x_[0-1]":                 "a-1.x_0 a-1.x_1 a-2.x_0 a-2.x_1",
}

func TestHostListHasTheOrderOfSlurm(t *testing.T) {
	for text, want := range hostLists {
		t.Run(text, func(t *testing.T) {
			h, err := Parse(text)
			require.NoError(t, err)
			assert.Equal(t, text, h.String())
			names := strings.Fields(want)
			assert.Equal(t, len(names), h.Len())
			for i := len(names) - 1; i >= 0; i-- {
				at, in := h.Index(names[i])
				assert.True(t, in, names[i])
				assert.Equal(t, names[at], names[i])
				assert.LessOrEqual(t, at, i, "the first of its places")
			}
			for _, name := range []string{"", "a", "a0", "a000", "gpu1", "gpu007", "gpu5", "logi", "login2", "r3n1", "r1n", "r1n11", "a1-1", " a1", "a+1"} {
				_, in := h.Index(name)
				assert.Equal(t, strings.Contains(" "+want+" ", " "+name+" "), in, name)
			}
		})
	}
}

// TestHostListAgreesWithScontrol compares the table above with Slurm itself.
func TestHostListAgreesWithScontrol(t *testing.T) {
	scontrol, err := exec.LookPath("scontrol")
	if err != nil {
		t.Skip("scontrol is not installed")
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	require.NoError(t, os.WriteFile(conf, []byte("ClusterName=x\nSlurmctldHost=x\nNodeName=x\n"), 0o644))
	for text, want := range hostLists {
		cmd := exec.Command(scontrol, "show", "hostnames", text)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Equal(t, want, strings.Join(strings.Fields(string(out)), " "), text)
	}
}

func TestHostListRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "the list of nodes is empty",
		",a":                                   `"": empty name; is there an extra comma?`,
		"a,":                                   "empty name",
		"a b":                                  `"a b": " " cannot be in a node's name`,
		"a, b":                                 `" b": " " cannot be in a node's name`,
		"a]":                                   `"]" cannot be in`,
		"gpu[1-3":                              `"gpu[1-3": a "[" without "]"`,
		"a[]":                                  `"a[]": "" in brackets: write a number or a range`,
		"a[1-2,5-]":                            `"5-" in brackets: write a number`,
		"a[x]":                                 `"x" in brackets: write a number`,
		"a[[1]":                                `"[1" in brackets: write a number`,
		"a[1-2-3]":                             `"1-2-3" in brackets: write a number`,
		"a[3-1]":                               `"3-1" in brackets: the end is less than the start`,
		"a[1-2]b":                              `"a[1-2]b": "b" after a bracket`,
		"a[1-65537]":                           "more than 65536 nodes, which is also Slurm's limit",
		"a[1-2]b[1-2]c[1-2]d[1-2]e[1-2]f[1-2]": "more than 5 brackets",
		"a[1-60000]b[1-60000]":                 "more than 1048576 nodes",
		"a[1-9999]b[1-99],c[1-9999]b[1-99]":    "more than 1048576 nodes",
		"a[1234567890123456789]":               "more than 18 digits",
		"a\n":                                  "cannot be in a node's name",
	} {
		_, err := Parse(text)
		if assert.ErrorContains(t, err, want, text) {
			assert.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestHostListIsNotExpanded(t *testing.T) {
	h, err := Parse("a[000000000000000001-000000000000065536]b[1-16]")
	require.NoError(t, err)
	assert.Equal(t, 1<<20, h.Len())
	at, in := h.Index("a000000000000065536b16")
	assert.True(t, in)
	assert.Equal(t, 1<<20-1, at)
	assert.Zero(t, testing.AllocsPerRun(10, func() { h.Contains("a1b1") }))
}

// expand lists the names one by one, in the order of Index.
func (l List) expand() []string {
	var all []string
	for _, p := range l.names {
		if p.brackets == nil {
			all = append(all, p.plain)
			continue
		}
		for i := range p.len {
			all = append(all, p.nth(i))
		}
	}
	return all
}

func (p hostPattern) nth(i int) string {
	last := len(p.brackets) - 1
	texts := make([]string, len(p.brackets))
	take := func(b int) {
		texts[b] = p.brackets[b].nth(i % p.brackets[b].len)
		i /= p.brackets[b].len
	}
	take(last)
	for b := range last {
		take(b)
	}
	return strings.Join(texts, "")
}

func (b hostBracket) nth(i int) string {
	r := b.ranges[0]
	for _, next := range b.ranges {
		if next.first <= i {
			r = next
		}
	}
	return fmt.Sprintf("%s%0*d", b.before, r.width, r.low+uint64(i-r.first))
}

func FuzzHostList(f *testing.F) {
	for text := range hostLists {
		f.Add(text, "a1")
	}
	f.Add("a[1-2", "a[1-2")
	f.Add("a[1-12][1-12]", "a111")
	f.Fuzz(func(t *testing.T, text, node string) {
		h, err := Parse(text)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.False(t, strings.ContainsFunc(err.Error(), unicode.IsControl))
			require.Zero(t, h.Len())
			return
		}
		if h.Len() > 2000 {
			h.Contains(node)
			return
		}
		first := map[string]int{}
		all := h.expand()
		require.Len(t, all, h.Len())
		for i := len(all) - 1; i >= 0; i-- {
			first[all[i]] = i
		}
		for name, want := range first {
			at, in := h.Index(name)
			require.True(t, in, name)
			require.Equal(t, want, at, name)
		}
		_, want := first[node]
		require.Equal(t, want, h.Contains(node))
	})
}
