// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckProlog(t *testing.T) {
	n := newGoodNode(t)
	n.writeFile(t, "site", "#!/bin/sh\n"+n.LibDir+"/prolog-1 || exit 1\n", 0o755)
	n.writeFile(t, "other", "#!/bin/sh\n", 0o755)
	const remedy = "; add Prolog=LIB/prolog-1 to slurm.conf, once all nodes have it; up to 22.05, where there is a Prolog already, run it at the start of that"
	const missing = "WARN  prolog: slurm.conf does not name gojail's Prolog: on a node that does not load the plugin, jobs run outside their jail" + remedy
	for lines, want := range map[string]string{
		"":                                      missing,
		"Prolog=DIR/other":                      missing,
		"PROLOG = LIB/prolog-1":                 "",
		"Prolog=../lib/prolog-1":                "",
		"Prolog=DIR/site":                       "",
		"Prolog=LIB/prolog-1\nProlog=DIR/other": "",
		"Prolog=DIR/s*": "WARN  prolog: Prolog=DIR/s* matches gojail's Prolog on this node; on a node without that file it does not, " +
			"and jobs run outside their jail" + remedy,
		"Prolog=/opt/gojail/absent/prolog-1": "FAIL  prolog: Prolog=/opt/gojail/absent/prolog-1 does not exist: every job fails and drains this node; " +
			"install gojail there on this node, or correct slurm.conf",
	} {
		place := strings.NewReplacer("LIB", n.LibDir, "DIR", n.dir)
		n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nJobSubmitPlugins=gojail\n"+place.Replace(lines)+"\n", 0o644)
		assert.Equal(t, place.Replace(want), n.listFindings(), lines)
	}
}
