// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkFeatures reports features of slurm.conf that use namespaces as gojail does.
// tests/slurm/features_test.go proves the conflicts.
func (c *checker) checkFeatures(conf node.SlurmConf) {
	if conf.Values["jobcontainertype"] == "job_container/tmpfs" && !c.checkEntireStep() {
		c.fail("features", "remove JobContainerType: each job has its own /tmp already; or, with Slurm 24.11, write "+
			"EntireStepInNS=true into job_container.conf",
			"JobContainerType=job_container/tmpfs opens its directory inside the jail: task epilogs fail")
	}
	if strings.Contains(strings.ToLower(conf.Values["launchparameters"]), "enable_nss_slurm") {
		c.warn("features", "see users of a name service in docs/install.md",
			"LaunchParameters=enable_nss_slurm has no effect in jails: SlurmdSpoolDir, where libnss_slurm looks, is "+
				"not shown there, and users that no other source knows are numbers")
	}
	c.checkLoginScripts(conf)
}

// checkLoginScripts warns if users must be in jails but slurmd may run their login scripts outside:
// "su - USER", before slurmstepd and the plugin exist (_get_user_env in slurmd/req.c). Up to 24.11
// GetEnvTimeout=0 prevents that; 25.05 ignores the key.
func (c *checker) checkLoginScripts(conf node.SlurmConf) {
	if c.config.AllowNone {
		return
	}
	if c.mustSubmit(conf) {
		if !hasSubmitPlugin(conf) {
			c.warn("features", c.describePluginDir(conf)+", and restart slurmctld",
				"JobSubmitPlugins of slurm.conf has gojail, but no directory of its PluginDir has %s on this host: "+
					"slurmctld does not start on a host where that is so", submitPlugin)
			return
		}
		c.ok("features", "JobSubmitPlugins has gojail: slurmd runs no login scripts of users on the node")
		return
	}
	if conf.Values["getenvtimeout"] == "0" {
		path, release := findNodesRelease(slices.Concat(conf.Plugins, node.ReadSlurm(c.config).Dirs))
		if path != "" && release < 0x190500 {
			c.ok("features", "GetEnvTimeout=0: slurmd %s runs no login scripts of users on the node", release)
			return
		}
	}
	c.warn("features", "set JobSubmitPlugins=gojail in slurm.conf, "+c.describePluginDir(conf)+
		", and restart slurmctld",
		"sbatch --get-user-env, --export=NONE and scrontab make slurmd run the user's ~/.bash_profile on the node, "+
			"outside the jail and the job's cgroup")
}

// mustSubmit reports whether slurm.conf names job_submit/gojail.
func (c *checker) mustSubmit(conf node.SlurmConf) bool {
	return slices.ContainsFunc(strings.Split(conf.Values["jobsubmitplugins"], ","), func(name string) bool {
		return strings.TrimPrefix(strings.TrimSpace(name), "job_submit/") == "gojail"
	})
}

// submitPlugin is the file of job_submit/gojail.
const submitPlugin = "job_submit_gojail.so"

// hasSubmitPlugin reports whether slurmctld finds job_submit/gojail, which each host with the plugin has.
func hasSubmitPlugin(conf node.SlurmConf) bool {
	return slices.ContainsFunc(conf.Plugins,
		func(dir string) bool { return rootpath.Exists(filepath.Join(dir, submitPlugin)) })
}

// describePluginDir returns what to write to slurm.conf so that slurmctld finds job_submit/gojail. A PluginDir replaces
// the built-in directory.
func (c *checker) describePluginDir(conf node.SlurmConf) string {
	switch {
	case slices.Contains(conf.Plugins, filepath.Clean(c.node.LibDir)):
		return "install gojail's plugin for this release of Slurm again"
	case len(conf.Plugins) > 0:
		return "append :" + c.node.LibDir + " to its PluginDir"
	}
	return "add PluginDir=DIR:" + c.node.LibDir + " with the DIR that scontrol show config shows as PluginDir"
}

// checkEntireStep reports whether slurmstepd itself runs in the container (job_container.conf(5), 24.05).
func (c *checker) checkEntireStep() bool {
	lines := node.ReadLines(filepath.Join(c.config.Slurm.Conf, "job_container.conf"), c.node.Name)
	return slices.ContainsFunc(lines, func(line map[string]string) bool { return isOn(line["entirestepinns"]) })
}
