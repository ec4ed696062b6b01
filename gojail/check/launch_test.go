// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// TestCheckOfLaunch: srun looks for programs, and copies them, outside jails.
func TestCheckOfLaunch(t *testing.T) {
	jails := map[string]*config.Jail{
		"a": {Data: []string{"/scratch"}},
		"b": {Data: []string{}, Mounts: []config.Mount{{Type: "bind", Source: "/scratch", Destination: "/scratch"}, {Type: "bind", Source: "/x", Destination: "/local"}}},
	}
	for _, test := range []struct{ key, value, want string }{
		{"launchparameters", "", ""},
		{"launchparameters", "use_interactive_step,slurmstepd_memlock", ""},
		{"launchparameters", "use_interactive_step,test_exec", "LaunchParameters=test_exec"},
		{"bcastparameters", "Compression=lz4", ""},
		{"bcastparameters", "DestDir=", ""},
		{"bcastparameters", "DestDir=/scratch/bin/,Compression=lz4", ""},
		{"bcastparameters", "Compression=lz4,destdir=/tmp", "DestDir=/tmp, which is not the node's in jail a, b"},
		{"sbcastparameters", "DestDir=/local", "in jail a, b"},
	} {
		found := ""
		c := &checker{config: &config.Config{Path: "/etc/gojail/gojail.toml", Jails: jails}, report: func(f Finding) { found += f.Found }}
		c.checkLaunch(node.SlurmConf{Values: map[string]string{test.key: test.value}})
		if test.want == "" {
			assert.Empty(t, found, test)
		} else {
			assert.Contains(t, found, test.want, test)
		}
	}
}
