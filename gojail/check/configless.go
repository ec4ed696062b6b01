// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// readSlurmdsConf is what slurmd reads, and so slurmstepd. With --conf-server that is what slurmctld
// sends, whatever slurm.conf the node has: commands take that one (_establish_configuration in slurmd.c).
func (k *checker) readSlurmdsConf() node.SlurmConf {
	here, sent := k.config.Slurm.Conf, k.config.Slurm.Cache
	if sent == "" || here == sent || !slices.ContainsFunc(findProcesses("slurmd"), isFetchingConf) {
		return node.ReadSlurmConf(k.config)
	}
	for _, file := range []string{"slurm.conf", "plugstack.conf"} {
		if a, b := filepath.Join(here, file), filepath.Join(sent, file); !hasSameText(a, b) {
			k.warn("slurm", "remove "+here+"/*.conf, or start slurmd without --conf-server",
				"srun takes %s, slurmd what slurmctld sends, %s, which is another: a job may run outside the jail that it names", a, b)
		}
	}
	c := *k.config
	c.Slurm.Conf = sent
	return node.ReadSlurmConf(&c)
}

func isFetchingConf(pid string) bool {
	text, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	return slices.ContainsFunc(bytes.Split(text, []byte{0}), func(word []byte) bool {
		return bytes.Equal(word, []byte("--conf-server")) || bytes.HasPrefix(word, []byte("--conf-server="))
	})
}

// hasSameText tells of no file as of an empty one.
func hasSameText(a, b string) bool {
	one, _ := os.ReadFile(a)
	other, _ := os.ReadFile(b)
	return bytes.Equal(one, other)
}

// checkConfigless looks for what slurmctld cannot send: a plugstack.conf at another place than
// beside its slurm.conf. Where it is missing, Slurm loads no plugin, and says nothing.
func (k *checker) checkConfigless(conf node.SlurmConf) bool {
	path := conf.Values["plugstackconfig"]
	if path == "" || !strings.Contains(strings.ToLower(conf.Values["slurmctldparameters"]), "enable_configless") {
		return true
	}
	const remedy = "take PlugStackConfig out of slurm.conf: slurmctld sends the plugstack.conf that lies beside its slurm.conf"
	if !rootpath.Exists(path) {
		k.fail("plugstack", remedy, "PlugStackConfig=%s is not on this node: jobs run outside their jail", path)
		return false
	}
	k.warn("plugstack", remedy, "PlugStackConfig=%s with enable_configless: jobs run outside their jail on a node without that file", path)
	return true
}
