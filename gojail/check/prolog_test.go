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
	n.writeFile(t, "plain", "#!/bin/sh\n", 0o644)
	n.writeFile(t, "crlf", "#!/bin/sh\r\n", 0o755)
	n.writeFile(t, "bsh", "#! /bin/bsh -e\n", 0o755)
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
			"replace Prolog=/opt/gojail/absent/prolog-1 by Prolog=LIB/prolog-1 in DIR/slurm/slurm.conf, and run: scontrol reconfigure",
		"Prolog=DIR/sitee":                      "FAIL  prolog: Prolog=DIR/sitee does not exist: every job fails and drains this node; put the script there on each node, or remove Prolog=DIR/sitee in DIR/slurm/slurm.conf, and run: scontrol reconfigure",
		"Prolog=LIB/prolog-1\nProlog=DIR/plain": "FAIL  prolog: Prolog=DIR/plain is not executable: every job fails and drains this node; run: chmod 755 DIR/plain",
		"Prolog=LIB/prolog-1\nEpilog=ended":     "FAIL  epilog: Epilog=ended does not exist: the end of each job drains this node; put the script there on each node, or remove Epilog=ended in DIR/slurm/slurm.conf, and run: scontrol reconfigure",
		"Prolog=LIB/prolog-1\nEpilog=none.d/*":  "",
		"Prolog=LIB/prolog-1\nProlog=DIR/lib":   "FAIL  prolog: Prolog=DIR/lib is not a regular file: every job fails and drains this node; put the script there on each node, or remove Prolog=DIR/lib in DIR/slurm/slurm.conf, and run: scontrol reconfigure",
		"Prolog=LIB/prolog-1\nProlog=DIR/crlf":  "FAIL  prolog: Prolog=DIR/crlf has lines that end with a carriage return, as Windows writes them: every job fails and drains this node; run: sed -i 's/\\r$//' DIR/crlf",
		"Prolog=LIB/prolog-1\nEpilog=DIR/bsh":   "FAIL  epilog: Epilog=DIR/bsh is a script of /bin/bsh, which does not exist: the end of each job drains this node; install it, or correct the first line of DIR/bsh",
	} {
		place := strings.NewReplacer("LIB", n.LibDir, "DIR", n.dir)
		n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nJobSubmitPlugins=gojail\n"+place.Replace(lines)+"\n", 0o644)
		assert.Equal(t, place.Replace(want), n.listFindings(), lines)
	}
}

// TestPrologOfASite: a script that only names gojail's Prolog in a comment does not run it, and one that ignores its exit status
// keeps no job from starting.
func TestPrologOfASite(t *testing.T) {
	n := newGoodNode(t)
	n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPluginDir="+n.dir+"/plugins\nJobSubmitPlugins=gojail\nProlog="+n.dir+"/site\n", 0o644)
	const missing = "WARN  prolog: slurm.conf does not name gojail's Prolog: on a node that does not load the plugin, jobs run outside their jail" +
		"; add Prolog=LIB/prolog-1 to slurm.conf, once all nodes have it; up to 22.05, where there is a Prolog already, run it at the start of that"
	const ignored = "WARN  prolog: DIR/site runs prolog-1 and ignores its exit status: on a node that does not load the plugin, jobs run outside their jail; write there: LIB/prolog-1 || exit 1"
	for script, want := range map[string]string{
		"# LIB/prolog-1 || exit 1\n":                                                missing,
		"\t# see LIB/prolog-1\nexit 0\n":                                            missing,
		"true # LIB/prolog-1 || exit 1\n":                                           missing,
		"LIB/prolog-10 || exit 1\n":                                                 missing,
		"LIB/prolog-1.old || exit 1\n":                                              missing,
		"LIB/prolog-1 || exit 1 # gojail\n":                                         "",
		"LIB/prolog-1\n":                                                            "",
		"exec LIB/prolog-1":                                                         "",
		"if ! LIB/prolog-1; then exit 1; fi\n":                                      "",
		"if [ $SLURM_JOB_PARTITION = jail ]; then\n\tLIB/prolog-1\nfi\n":            "",
		"LIB/prolog-1 && mkdir /scratch/$SLURM_JOB_ID\n":                            "",
		"LIB/prolog-1 \\\n|| exit 1\nmkdir /scratch/$SLURM_JOB_ID\n":                "",
		"LIB/prolog-1\nresult=$?\nmkdir /x\nexit $result\n":                         "",
		"LIB/prolog-1\nexit\n":                                                      "",
		"set -eu\nLIB/prolog-1\nexit 0\n":                                           "",
		"set -o errexit\nLIB/prolog-1\nexit 0\n":                                    "",
		"set -eu\nLIB/prolog-1 || true\nexit 0\n":                                   ignored,
		"LIB/prolog-1\nexit 0\n":                                                    ignored,
		"\"LIB/prolog-1\";\nmkdir /scratch/$SLURM_JOB_ID\n":                         ignored,
		"LIB/prolog-1 || :\n":                                                       ignored,
		"LIB/prolog-1 &\n":                                                          ignored,
		"case $SLURM_JOB_PARTITION in\njail)\n\tLIB/prolog-1\n\t;;\nesac\nexit 0\n": ignored,
	} {
		place := strings.NewReplacer("LIB", n.LibDir, "DIR", n.dir)
		n.writeFile(t, "site", place.Replace("#!/bin/sh\n"+script), 0o755)
		assert.Equal(t, place.Replace(want), n.listFindings(), script)
	}
	for first, want := range map[string]string{"#!/bin/sh -e": "", "#!/bin/bash -eu": "", "#!/bin/bash": ignored, "#!/usr/bin/env bash": ignored, "#!/usr/bin/python3": "", "": missing} {
		place := strings.NewReplacer("LIB", n.LibDir, "DIR", n.dir)
		n.writeFile(t, "site", first+place.Replace("\nLIB/prolog-1\nexit 0\n"), 0o755)
		assert.Equal(t, place.Replace(want), n.listFindings(), first)
	}
}
