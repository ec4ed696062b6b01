// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const site = `
user = "nccl"
output = "/shared/nccl"
[[expect]]
gpu = "H100"
gpus = 8
nodes = 1
size = "16G"
busbw = 460.0
[[expect]]
gpu = "H100"
gpus = 8
nodes = 2
size = "16G"
busbw = 380
`

func parse(t *testing.T, text string) (*Settings, error) {
	s := Defaults()
	_, err := toml.Decode(text, &s)
	require.NoError(t, err, text)
	return &s, s.Check(func(key toml.Key, format string, args ...any) error {
		return fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...))
	})
}

func TestSettings(t *testing.T) {
	s, err := parse(t, site)
	require.NoError(t, err)
	require.NoError(t, s.CheckReady())
	assert.Equal(t, []Expect{{"H100", 8, 2, "16G", 380}}, s.ListExpected(2))
	assert.Equal(t, "all_reduce_perf", s.Command)
	s.GPUs = 4
	assert.ErrorContains(t, s.CheckReady(), "no [[nccl.expect]] with nodes = 1")
}

func TestSettingsThatAreNotReady(t *testing.T) {
	d := Defaults()
	require.NoError(t, d.Check(nil), "what is not used is in order")
	for without, want := range map[string]string{
		"user = \"nccl\"":           "nccl.user is missing",
		"output = \"/shared/nccl\"": "nccl.output is missing",
		"nodes = 1":                 "no [[nccl.expect]] with nodes = 1",
	} {
		s, err := parse(t, strings.Replace(site, without, map[bool]string{true: "nodes = 2"}[without == "nodes = 1"], 1))
		require.NoError(t, err)
		assert.ErrorContains(t, s.CheckReady(), want)
	}
	s, err := parse(t, strings.Replace(site, "nodes = 2", "nodes = 1", 1))
	require.NoError(t, err)
	assert.ErrorContains(t, s.CheckReady(), "or pairs = false")
	s.Pairs = false
	assert.NoError(t, s.CheckReady())
}

func TestSettingsRefuse(t *testing.T) {
	const row = "[[expect]]\ngpu = \"H100\"\ngpus = 8\nnodes = 1\nsize = \"16G\"\nbusbw = 460\n"
	for text, want := range map[string]string{
		`again = "-1h"`:                         `nccl.again: -1h0m0s: write a time from "0s"`,
		`time = "0s"`:                           `nccl.time: 0s: write a time from "1s"`,
		`wait = "30h"`:                          `nccl.wait: 30h0m0s`,
		`poll = "1ms"`:                          `nccl.poll: 1ms`,
		`gpus = 0`:                              `nccl.gpus: 0: write a number from 1 to 64`,
		`tasks = 3`:                             `nccl.tasks: 3 processes cannot share 8 GPUs evenly`,
		`tasks = 0`:                             `nccl.tasks: 0: write a number from 1`,
		`parallel = 0`:                          `nccl.parallel: 0`,
		`drains = -1`:                           `nccl.drains: -1`,
		`output = "shared"`:                     `nccl.output: "shared": write an absolute path`,
		`output = "/shared/%j"`:                 `nccl.output: "/shared/%j": write`,
		`here = "/a b"`:                         `nccl.here: "/a b": write`,
		`nodes = "n["`:                          `nccl.nodes: `,
		strings.Replace(row, "H100", "", 1):     `nccl.expect: 1: gpu is missing`,
		strings.Replace(row, "gpus = 8", "", 1): `nccl.expect: 1: gpus = 0: write`,
		row + strings.Replace(row, "= 1\n", "= 3\n", 1): `nccl.expect: 2: nodes = 3: write 1 for a node alone`,
		strings.Replace(row, "16G", "16T", 1):           `nccl.expect: 1: size = "16T": write bytes as in`,
		strings.Replace(row, "460", "0.0", 1):           `nccl.expect: 1: busbw = 0: write GB/s`,
		strings.Replace(row, "460", "nan", 1):           `nccl.expect: 1: busbw = NaN: write GB/s`,
	} {
		_, err := parse(t, text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "512": 512, "4K": 4096, "512M": 512 << 20, "16G": 16 << 30, "16g": 16 << 30} {
		n, err := ParseBytes(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, n)
	}
	for _, text := range []string{"", "G", "0", "-1G", "1.5G", "16GB", "99999G", "99999999999999999999"} {
		_, err := ParseBytes(text)
		assert.Error(t, err, text)
	}
}
