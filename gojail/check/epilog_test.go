// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// TestCheckOfEpilogTimeout: slurmd drains a node where the end of a job takes longer than that.
func TestCheckOfEpilogTimeout(t *testing.T) {
	for lines, want := range map[string]string{
		"": "", "prologepilogtimeout=65534": "", "prologepilogtimeout=5": "", "prologepilogtimeout=INFINITE": "",
		"prologepilogtimeout=4":                   "PrologEpilogTimeout=4 in slurm.conf",
		"epilogtimeout=1":                         "EpilogTimeout=1 in slurm.conf",
		"epilogtimeout=60\nprologepilogtimeout=1": "", // of prologs, then
	} {
		conf := node.SlurmConf{Values: map[string]string{}}
		for line := range strings.Lines(lines) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			conf.Values[key] = value
		}
		found := ""
		(&checker{config: &config.Config{Path: t.TempDir() + "/gojail.toml"}, report: func(f Finding) { found += f.Found }}).checkEpilog(conf)
		if want == "" {
			assert.Empty(t, found, lines)
		} else {
			assert.Contains(t, found, want)
		}
	}
}
