// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// readSlurmdsConf returns the slurm.conf that slurmd, and so slurmstepd, reads. With --conf-server that
// is the one that slurmctld sends, even if the node has another, which the commands read
// (_establish_configuration in slurmd.c). It warns if the two differ.
func (c *checker) readSlurmdsConf() node.SlurmConf {
	here, sent := c.config.Slurm.Conf, c.config.Slurm.Cache
	if sent == "" || here == sent || !slices.ContainsFunc(findProcesses("slurmd"), isFetchingConf) {
		return node.ReadSlurmConf(c.config)
	}
	for _, file := range []string{"slurm.conf", "plugstack.conf"} {
		if a, b := filepath.Join(here, file), filepath.Join(sent, file); !hasSameText(a, b) {
			c.warn("slurm", "remove "+here+"/*.conf, or start slurmd without --conf-server",
				"srun reads %s, but slurmd reads %s from slurmctld, which differs: a job may run outside the jail "+
					"that it names", a, b)
		}
	}
	fetched := *c.config
	fetched.Slurm.Conf = sent
	return node.ReadSlurmConf(&fetched)
}

// isFetchingConf reports whether a slurmd runs with --conf-server.
func isFetchingConf(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return slices.ContainsFunc(bytes.Split(text, []byte{0}), func(word []byte) bool {
		return bytes.Equal(word, []byte("--conf-server")) || bytes.HasPrefix(word, []byte("--conf-server="))
	})
}

// hasSameText reports whether two files have the same text. A missing file counts as an empty one.
func hasSameText(a, b string) bool {
	one, _ := os.ReadFile(a)
	other, _ := os.ReadFile(b)
	return bytes.Equal(one, other)
}

// checkConfigless reports a plugstack.conf that slurmctld cannot send, because it is not beside
// slurm.conf. Slurm loads no plugin if the file is missing, and reports nothing. It returns false if
// the file is missing here.
func (c *checker) checkConfigless(conf node.SlurmConf) bool {
	path := conf.Values["plugstackconfig"]
	if path == "" || !strings.Contains(strings.ToLower(conf.Values["slurmctldparameters"]), "enable_configless") {
		return true
	}
	const remedy = "remove PlugStackConfig from slurm.conf: slurmctld sends the plugstack.conf beside its slurm.conf"
	if !rootpath.Exists(path) {
		c.fail("plugstack", remedy, "PlugStackConfig=%s does not exist on this node: jobs run outside their jail", path)
		return false
	}
	c.warn("plugstack", remedy,
		"PlugStackConfig=%s with enable_configless: jobs run outside their jail on a node without that file", path)
	return true
}
