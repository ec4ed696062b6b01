// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// TestCheckOfIMEX has what may be on a node of a cluster with switch/nvidia_imex, and without. Nothing of it is a
// failure, which would drain the node.
func TestCheckOfIMEX(t *testing.T) {
	const (
		imex    = "switch/nvidia_imex"
		memory  = "Character devices:\n  1 mem\n  5 /dev/tty\n"
		block   = "\nBlock devices:\n  7 loop\n235 nvidia-caps-imex-channels\n"
		driver  = memory + "195 nvidia\n" + block
		racks   = memory + "195 nvidia\n235 nvidia-caps-imex-channels\n" + block
		wanted  = "etc/systemd/system/multi-user.target.wants/nvidia-imex.service"
		unit    = "->/usr/lib/systemd/system/nvidia-imex.service"
		procs   = "sys/fs/cgroup/system.slice/nvidia-imex.service/cgroup.procs"
		cfg     = "etc/nvidia-imex/config.cfg"
		nodes   = "etc/nvidia-imex/nodes_config.cfg"
		runs    = "OK    imex: nvidia-caps-imex-channels has major 235, nvidia-imex.service runs"
		isOff   = "OK    imex: nvidia-caps-imex-channels has major 235, nvidia-imex.service is not enabled"
		stopped = "WARN! imex: nvidia-imex.service is enabled and does not run: "
		others  = "WARN  imex: /etc/nvidia-imex/nodes_config.cfg has no address of this node among its 2: nvidia-imex does not start; "
		absent  = "WARN  imex: /etc/nvidia-imex/nodes_config.cfg of /etc/nvidia-imex/config.cfg does not exist: "
	)
	service := func(list string) map[string]string {
		return map[string]string{wanted: unit, procs: "4711\n", cfg: "# of IMEX\nLOG_LEVEL=4\nIMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg\n", nodes: list}
	}
	for name, test := range map[string]struct {
		kind, parameters string // SwitchType and SwitchParameters
		devices          string // of /proc/devices
		hasDriver        bool
		files            map[string]string
		want             string // the beginning; "": no finding
	}{
		"no switch":                        {"", "", racks, true, map[string]string{wanted: unit}, ""},
		"another switch":                   {"switch/none", "imex_dev_major=7", racks, true, map[string]string{wanted: unit}, ""},
		"a node without a driver":          {imex, "", memory, false, nil, "OK    imex: no NVIDIA driver is loaded"},
		"the same with a major":            {imex, "imex_dev_major=235,imex_channel_count=8", memory, false, nil, "OK    imex: no NVIDIA driver is loaded"},
		"a major of something else":        {imex, "imex_dev_major=1", memory, false, nil, "WARN! imex: imex_dev_major=1, but /proc/devices has no nvidia-caps-imex-channels: each step gets a device of another driver"},
		"a block device's number":          {imex, "imex_dev_major=7", memory + block, false, nil, "OK    imex: no NVIDIA driver"},
		"an old driver":                    {imex, "", driver, true, nil, "WARN  imex: /proc/devices has no nvidia-caps-imex-channels: steps get no IMEX channel that works"},
		"no /proc/devices":                 {imex, "", "", true, nil, "WARN  imex: /proc/devices has no nvidia-caps-imex-channels"},
		"the driver's major":               {"Switch/NVIDIA_imex", "imex_channel_count=8, imex_dev_major=235", racks, true, nil, isOff},
		"another major":                    {imex, "imex_dev_major=234", racks, true, nil, "WARN! imex: imex_dev_major=234, but that of nvidia-caps-imex-channels in /proc/devices is 235: "},
		"no number":                        {imex, "imex_dev_major=x", racks, true, nil, "WARN! imex: imex_dev_major=0, but that of"},
		"not installed":                    {imex, "", racks, true, nil, isOff},
		"started by a Prolog":              {imex, "", racks, true, map[string]string{procs: "12\n"}, runs},
		"stopped by an Epilog":             {imex, "", racks, true, map[string]string{cfg: "", nodes: "240.9.8.1\n"}, isOff},
		"masked":                           {imex, "", racks, true, map[string]string{wanted: unit, "etc/systemd/system/nvidia-imex.service": "->/dev/null"}, isOff},
		"enabled, it runs":                 {imex, "", racks, true, map[string]string{wanted: unit, procs: "12\n"}, runs},
		"enabled, in another slice":        {imex, "", racks, true, map[string]string{wanted: unit, strings.Replace(procs, "system.slice", "systemd/gpu.slice/gpu-x.slice", 1): "12\n"}, runs},
		"enabled, it does not":             {imex, "", racks, true, map[string]string{wanted: unit}, stopped},
		"enabled, its cgroup is empty":     {imex, "", racks, true, map[string]string{wanted: unit, procs: ""}, stopped},
		"its nodes":                        {imex, "", racks, true, service("240.9.8.1\n127.0.0.1\n"), runs},
		"with an address of IPv6":          {imex, "", racks, true, service("2001:db8::1\n::1%lo\n"), "OK"},
		"without this one":                 {imex, "", racks, true, service("240.9.8.1\n# 127.0.0.1\n240.9.8.2\n"), others},
		"names":                            {imex, "", racks, true, service("compute-domain-daemon-0000\n240.9.8.2\n"), runs},
		"an empty list":                    {imex, "", racks, true, service("\n"), "WARN  imex: /etc/nvidia-imex/nodes_config.cfg has no address of this node among its 0: "},
		"no list":                          {imex, "", racks, true, map[string]string{procs: "12\n", cfg: "IMEX_NODE_CONFIG_FILE=\n"}, absent},
		"a configuration somewhere else":   {imex, "", racks, true, map[string]string{procs: "12\n"}, runs},
		"a list somewhere else":            {imex, "", racks, true, map[string]string{procs: "12\n", cfg: "IMEX_NODE_CONFIG_FILE = /shared/nodes\n", "shared/nodes": "127.0.0.1\n"}, runs},
		"a list somewhere else, not there": {imex, "", racks, true, map[string]string{procs: "12\n", cfg: "IMEX_NODE_CONFIG_FILE=/shared/nodes\n", nodes: "127.0.0.1\n"}, "WARN  imex: /shared/nodes of /etc/"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &checkedNode{dir: t.TempDir()}
			n.writeSystem(t, test.files)
			n.procIn = filepath.Join(n.dir, "proc")
			require.NoError(t, os.MkdirAll(n.procIn, 0o755))
			if test.hasDriver {
				require.NoError(t, os.MkdirAll(n.procIn+"/driver/nvidia", 0o755))
			}
			if test.devices != "" {
				n.writeFile(t, "proc/devices", test.devices, 0o444)
			}
			var found []string
			c := &checker{node: n.Node, config: &config.Config{}, report: func(f Finding) {
				text := f.String()
				if f.Alert {
					text = strings.Replace(text, "WARN ", "WARN!", 1)
				}
				found = append(found, text)
			}}
			conf := node.SlurmConf{Dir: "/etc/slurm", Values: map[string]string{"switchtype": test.kind, "switchparameters": test.parameters}}
			c.checkIMEX(conf)
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.True(t, strings.HasPrefix(found[0], test.want), found[0])
			c.config.Login.Here = true // no step runs there
			c.checkIMEX(conf)
			assert.Len(t, found, 1)
		})
	}
}
