// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

const (
	tableHead = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n" +
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n"
	footer = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 460.104 \n#\n# Collective test concluded: all_reduce_perf\n"
	row16G = " 17179869184    4294967296     float     sum      -1    65241  263.33  460.83       0    65207  263.47  461.07       0\n"
	row8G  = "  8589934592    2147483648     float     sum      -1    40241  100.10  181.00       0    40207  100.20  180.50     N/A\n"
)

// devices is the list of GPUs as the program writes it.
func devices(n int, model string) string {
	text := "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n# Using devices\n"
	for i := range n {
		text += fmt.Sprintf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [0000:%02x:00] %s\n", i, 0, 4711, "gpu7", i%8, 16+i%8, model)
	}
	return text + "#\n"
}

const h100 = "NVIDIA H100 80GB HBM3"

func TestParseOutput(t *testing.T) {
	o, err := parseOutput(devices(8, h100) + tableHead + row8G + row16G + footer)
	require.NoError(t, err)
	assert.Len(t, o.models, 8)
	assert.Equal(t, h100, o.models[7])
	assert.Equal(t, map[int64]float64{16 << 30: 461.07, 8 << 30: 181}, o.BusBW, "by size, the best of out-of-place and in-place, no average")
	assert.False(t, o.wrong || o.Failed)
}

// TestNVLinkDomains has the lines of NCCL's log (NCCL_DEBUG=INFO) by which the GPUs' domains are known.
func TestNVLinkDomains(t *testing.T) {
	const line = "gpu7:4711:4720 [%d] NCCL INFO MNNVL busId 0x%x000 fabric UUID %s cliqueId %s state %d healthMask 0x1aa\n"
	log := func(domains ...string) (text string) {
		for i, domain := range domains {
			uuid, clique, _ := strings.Cut(domain, " ")
			text += fmt.Sprintf(line, i, 16+i, uuid, clique, 3)
		}
		return text
	}
	s := settings.Defaults()
	s.GPUs = 1
	s.Expect = []settings.Expect{{GPU: "H100", GPUs: 1, Nodes: 2, Size: "16G", BusBW: 900}, {GPU: "H100", GPUs: 1, Nodes: 1, Size: "16G", BusBW: 900}}
	for name, c := range map[string]struct {
		log   string
		nodes int
		apart bool
	}{
		"no log":                  {"", 2, false},
		"another log":             {"gpu7:4711:4720 [0] NCCL INFO NCCL_MNNVL_ENABLE set by environment to 0.\n", 2, false},
		"one domain":              {log("a1b2.c3d4 0x7ffe", "a1b2.c3d4 0x7ffe"), 2, false},
		"two clusters":            {log("a1b2.c3d4 0x7ffe", "a1b2.c3d5 0x7ffe"), 2, true},
		"two cliques":             {log("a1b2.c3d4 0x7ffe", "a1b2.c3d4 0x1"), 2, true},
		"fabrics within nodes":    {log("0.0 0x0", "0.0 0x0"), 2, false},
		"with a time, and labels": {"0: [2026-11-29 01:02:03] " + log("a.b 0x1") + "1: [2026-11-29 01:02:03] " + log("a.c 0x1"), 2, true},
		"one node, two cliques":   {log("a1b2.c3d4 0x7ffe", "a1b2.c3d4 0x1"), 1, false},
	} {
		o, err := parseOutput(devices(c.nodes, h100) + c.log + tableHead + row16G + footer)
		require.NoError(t, err, name)
		j := judgeOutput(o, c.nodes, &s)
		assert.Equal(t, c.apart, j.Apart, name)
		assert.Equal(t, verdictBad, j.Verdict, name)
	}
}

func TestOutputInOtherShapes(t *testing.T) {
	whole := devices(2, h100) + tableHead + row16G + footer
	labelled := ""
	for line := range strings.Lines(whole) {
		labelled += "0: " + line + "1: gpu8:4712:4712 [0] NCCL INFO Channel 00/16 : 0 1\n"
	}
	old := strings.ReplaceAll(whole, " Group  0", "")
	perIteration := devices(2, h100) +
		"#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%           timestamp\n" +
		" 17179869184 4294967296 float sum -1 65241 263.33 460.83 0 1 2 3 4 65207 263.47 461.07 0 1 2 3 4 2026-11-21 17:00:00\n" + footer
	for name, text := range map[string]string{"labels of srun": labelled, "an older release": old, "per iteration": perIteration,
		"carriage returns": strings.ReplaceAll(whole, "\n", "\r\n"), "noise": "srun: job 7 queued\n17179869184 is a number\n" + whole + "\xff\x00"} {
		o, err := parseOutput(text)
		require.NoError(t, err, name)
		assert.Equal(t, map[int64]float64{16 << 30: 461.07}, o.BusBW, name)
		assert.Len(t, o.models, 2, name)
	}
}

func TestWrongResults(t *testing.T) {
	for name, text := range map[string]string{
		"out of place": strings.Replace(row16G, "460.83       0", "460.83      17", 1),
		"in place":     strings.Replace(row16G, "461.07       0", "461.07       1", 1),
		"many":         strings.Replace(row16G, "461.07       0", "461.07 1.2e+07", 1),
	} {
		o, err := parseOutput(devices(8, h100) + tableHead + text + footer)
		require.NoError(t, err, name)
		assert.True(t, o.wrong, name)
	}
	o, err := parseOutput(devices(8, h100) + tableHead + row16G + strings.Replace(footer, ": 0 OK", ": 3 FAILED", 1))
	require.NoError(t, err)
	assert.True(t, o.wrong)
	o, err = parseOutput(devices(8, h100) + tableHead + row16G + strings.Replace(footer, "460.104 ", "460.104 FAILED", 1))
	require.NoError(t, err)
	assert.True(t, o.Failed && !o.wrong)
}

func TestOutputThatSaysNothing(t *testing.T) {
	whole := devices(8, h100) + tableHead + row16G + footer
	for want, text := range map[string]string{
		"it is not output":                   "srun: error: n1: task 0: Exited with exit code 2\n",
		"the output is truncated":            strings.TrimSuffix(whole, footer),
		"has no GPUs or no figures":          devices(8, h100) + footer,
		"the processes are not connected":    devices(8, h100) + whole,
		"results of more than one run":       whole + footer,
		`17179869184 bytes has "nan"`:        strings.Replace(whole, "461.07", "nan", 1),
		`17179869184 bytes has "-1.0"`:       strings.Replace(whole, "461.07", "-1.0", 1),
		`17179869184 bytes has "4610000000"`: strings.Replace(whole, "461.07", "4610000000000000000000x", 1),
		"no columns busbw and #wrong":        strings.ReplaceAll(whole, "#wrong", " error"),
	} {
		_, err := parseOutput(text)
		assert.ErrorContains(t, err, want[:min(len(want), 30)], want)
	}
	// A torn line is ignored, and its figure is missing for the judgement.
	o, err := parseOutput(strings.Replace(whole, row16G, row8G+row16G[:60]+"\n"+row16G[60:], 1))
	require.NoError(t, err)
	assert.NotContains(t, o.BusBW, int64(16<<30))
}

func FuzzParseOutput(f *testing.F) {
	whole := devices(2, h100) + tableHead + row16G + footer
	for _, seed := range []string{"", whole, whole[:len(whole)/2], strings.ReplaceAll(whole, "\n", "\r\n"), "0: " + whole, tableHead + footer} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseOutput(text)
		if err != nil {
			assert.Nil(t, o)
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		assert.NotEmpty(t, o.models)
		for size, busbw := range o.BusBW {
			assert.Positive(t, size)
			assert.GreaterOrEqual(t, busbw, 0.0)
		}
		s := settings.Defaults()
		s.GPUs = len(o.models)
		s.Expect = []settings.Expect{{GPU: "", GPUs: s.GPUs, Nodes: 1, Size: "16G", BusBW: 460}}
		j := judgeOutput(o, 1, &s)
		assert.NotEmpty(t, j.Verdict)
		assert.NotContains(t, j.String(), "\n")
	})
}
