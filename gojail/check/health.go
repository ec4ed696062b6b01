// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/node"
)

// healthProgram is the name of gojail's HealthCheckProgram, and healthTotal its time limit, unless health.toml has
// another.
const (
	healthProgram = "gojail-healthcheck"
	healthTotal   = 20 * time.Second
)

// checkHealthProgram reports settings of slurm.conf with which slurmd does not run gojail's health check, or so rarely
// that its checks, most of which need several bad runs in a row, never drain the node.
func (c *checker) checkHealthProgram(conf node.SlurmConf) {
	program := conf.Values["healthcheckprogram"]
	if filepath.Base(program) != healthProgram {
		return
	}
	only := ""
	for word := range strings.SplitSeq(conf.Values["healthchecknodestate"], ",") {
		switch word = strings.ToUpper(strings.TrimSpace(word)); word {
		case "START_ONLY", "REBOOT_ONLY":
			only = word
		}
	}
	interval, _ := strconv.Atoi(conf.Values["healthcheckinterval"])
	timeout, err := strconv.Atoi(conf.Values["healthchecktimeout"])
	lack := findProgramLack(program)
	switch {
	case lack.why != "":
		c.warn("health", "install it on each node, or "+describeEdit(conf, "remove HealthCheckProgram="+program),
			"HealthCheckProgram=%s %s: nothing checks this node", program, lack.why)
	case only != "":
		c.warn("health", describeEdit(conf, "write HealthCheckNodeState=ANY,CYCLE and HealthCheckInterval=60"),
			"HealthCheckNodeState=%s: %s runs only when slurmd starts or the node has booted, and a check that "+
				"needs several bad runs never drains", only, healthProgram)
	case interval <= 0:
		c.warn("health", describeEdit(conf, "write HealthCheckInterval=60"),
			"without HealthCheckInterval slurmd never runs HealthCheckProgram=%s", program)
	case err == nil && timeout > 0 && time.Duration(timeout)*time.Second <= healthTotal:
		c.warn("health", describeEdit(conf, "write HealthCheckTimeout=30")+"; or write a shorter total to health.toml",
			"HealthCheckTimeout=%d: slurmd kills %s, which may take %v (total in health.toml)", timeout, healthProgram,
			healthTotal)
	default:
		c.ok("health", "slurmd runs %s", program)
	}
}
