// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

func TestJudge(t *testing.T) {
	s := settings.Defaults()
	s.GPUs = 2
	s.Expect = []settings.Expect{
		{GPU: "H100", GPUs: 2, Nodes: 1, Size: "16G", BusBW: 460},
		{GPU: "h100", GPUs: 2, Nodes: 1, Size: "8G", BusBW: 400},
		{GPU: "H100", GPUs: 2, Nodes: 2, Size: "16G", BusBW: 100},
		{GPU: "H100 NVL", GPUs: 2, Nodes: 1, Size: "16G", BusBW: 100},
		{GPU: "A100", GPUs: 4, Nodes: 1, Size: "16G", BusBW: 1000},
	}
	both := func(big, small float64) testOutput {
		return testOutput{models: []string{h100, h100}, BusBW: map[int64]float64{16 << 30: big, 8 << 30: small, 1 << 30: 1}}
	}
	for name, test := range map[string]struct {
		output  testOutput
		nodes   int
		verdict Verdict
		text    string
	}{
		"good":                     {both(455, 390), 1, verdictGood, ""},
		"better than expected":     {both(500, 500), 1, verdictGood, ""},
		"a little slow":            {both(430, 390), 1, verdictSlow, "93 % of the expected bandwidth"},
		"just not bad":             {both(414, 400), 1, verdictSlow, "90 % of the expected bandwidth"},
		"bad":                      {both(413, 400), 1, verdictBad, "slow, 90 % of the expected bandwidth"},
		"bad in one of two sizes":  {both(460, 300), 1, verdictBad, "slow, 75 % of the expected bandwidth"},
		"no bandwidth at all":      {both(0, 400), 1, verdictBad, "slow, 0 % of the expected bandwidth"},
		"another closer row":       {testOutput{models: []string{"NVIDIA H100 NVL", "NVIDIA H100 NVL"}, BusBW: map[int64]float64{16 << 30: 99}}, 1, verdictGood, ""},
		"wrong":                    {testOutput{models: []string{h100, h100}, BusBW: map[int64]float64{16 << 30: 460, 8 << 30: 400}, wrong: true}, 1, verdictBad, "wrong results"},
		"its own threshold":        {testOutput{models: []string{h100, h100}, BusBW: map[int64]float64{16 << 30: 460, 8 << 30: 400}, Failed: true}, 1, verdictBad, "slower than NCCL_TESTS_MIN_BW"},
		"a size is missing":        {testOutput{models: []string{h100, h100}, BusBW: map[int64]float64{8 << 30: 1}}, 1, verdictNothing, "the output has no line of size 16G"},
		"a wrong one without size": {testOutput{models: []string{h100, h100}, BusBW: map[int64]float64{8 << 30: 1}, wrong: true}, 1, verdictBad, "wrong results"},
		"too few GPUs":             {both(460, 400), 2, verdictNothing, "it ran on 2 GPUs instead of 4"},
		"no such model":            {testOutput{models: []string{"NVIDIA\nL4", "NVIDIA\nL4"}}, 1, verdictNothing, "no [[nccl.expect]] matches NVIDIA?L4"},
		"two models":               {testOutput{models: []string{h100, "NVIDIA L4"}}, 1, verdictNothing, "the GPUs have different models: NVIDIA H100 80GB HBM3, NVIDIA L4"},
	} {
		j := judgeOutput(&test.output, test.nodes, &s)
		assert.Equal(t, test.verdict, j.Verdict, name)
		assert.Equal(t, test.text, j.Text, name)
	}
	four := both(95, 1)
	four.models = []string{h100, h100, h100, h100}
	assert.Equal(t, Judged{Verdict: verdictGood, BusBW: 95, Expected: 100, Size: "16G"}, judgeOutput(&four, 2, &s))
}
