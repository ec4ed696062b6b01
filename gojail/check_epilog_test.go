// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCheckOfEpilogTimeout: slurmd drains a node where the end of a job takes longer than that.
func TestCheckOfEpilogTimeout(t *testing.T) {
	for lines, want := range map[string]string{
		"": "", "prologepilogtimeout=65534": "", "prologepilogtimeout=5": "", "prologepilogtimeout=INFINITE": "",
		"prologepilogtimeout=4":                   "PrologEpilogTimeout=4 in slurm.conf",
		"epilogtimeout=1":                         "EpilogTimeout=1 in slurm.conf",
		"epilogtimeout=60\nprologepilogtimeout=1": "", // of prologs, then
	} {
		conf := slurmConf{values: map[string]string{}}
		for line := range strings.Lines(lines) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			conf.values[key] = value
		}
		found := ""
		(&checker{config: &Config{Path: t.TempDir() + "/gojail.toml"}, report: func(f Finding) { found += f.Found }}).epilog(conf)
		if want == "" {
			assert.Empty(t, found, lines)
		} else {
			assert.Contains(t, found, want)
		}
	}
}
