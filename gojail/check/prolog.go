// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkProlog checks that slurm.conf names gojail's Prolog. A node without the plugin runs jobs outside
// their jail, and reports nothing; slurmd fails a job and drains the node where a Prolog fails or is
// missing (slurmd_script in prep_script_slurmd.c).
func (c *checker) checkProlog(conf node.SlurmConf) {
	own := filepath.Join(c.node.LibDir, contract.Prolog)
	remedy := "add Prolog=" + own + " to slurm.conf, once all nodes have it; up to 22.05, where there is a Prolog already, run it at the start of that"
	patterns := ""
	for _, value := range conf.Prologs {
		path := value
		if !filepath.IsAbs(path) {
			path = filepath.Join(conf.Dir, path)
		}
		if filepath.Base(path) == contract.Prolog {
			if !rootpath.Exists(path) {
				c.fail("prolog", "install gojail there on this node, or correct slurm.conf", "Prolog=%s does not exist: every job fails and drains this node", value)
				return
			}
			c.ok("prolog", "%s fails each job on a node that does not load the plugin", path)
			return
		}
		files, _ := filepath.Glob(path)
		for _, file := range files {
			if runsProlog(file) {
				if strings.ContainsAny(value, "*?[") {
					patterns = value
					continue
				}
				c.ok("prolog", "%s runs %s", path, contract.Prolog)
				return
			}
		}
	}
	if patterns != "" {
		c.warn("prolog", remedy, "Prolog=%s matches gojail's Prolog on this node; on a node without that file it does not, and jobs run outside their jail", patterns)
		return
	}
	c.warn("prolog", remedy, "slurm.conf does not name gojail's Prolog: on a node that does not load the plugin, jobs run outside their jail")
}

// runsProlog reports whether a Prolog is gojail's, or a script that names it.
func runsProlog(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == contract.Prolog {
		return true
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return false
	}
	text, _ := os.ReadFile(path)
	return strings.HasPrefix(string(text), "#!") && strings.Contains(string(text), "/"+contract.Prolog)
}
