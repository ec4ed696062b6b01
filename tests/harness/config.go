// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DefaultConfig is the gojail.toml of a cluster that asks for none of its own:
// no jail unless the user names one, two jails, /data may be mounted.
var DefaultConfig = `default    = "none"
allow_none = true
scratch    = "/var/lib/gojail/%n"
deadline   = "` + (5 * time.Second * Slow).String() + `"

[slurm]
spool = "/var/spool/slurmd/%n"

[jail.debian]
root = "/srv/jails/debian"
[[jail.debian.user_mounts]]
source = "/data"

[jail.other]
root = "/srv/jails/other"
`

// ConfigPath is gojail.toml inside the machine.
const ConfigPath = "/etc/gojail/gojail.toml"

const (
	siteBegin = "# ---- this site ----"
	siteEnd   = "# ---- end of this site ----"
)

// siteLines returns the site section of slurm.conf.example with the values of a private cluster. Both slurmd
// share one machine, so each has its own port.
func (c *Cluster) siteLines() map[string]string {
	var nodes []string
	for i, node := range Nodes {
		nodes = append(nodes, fmt.Sprintf("%s NodeAddr=%s Port=%d CPUs=%d State=UNKNOWN", node, Address, 6818+i, c.options.CPUs))
	}
	return map[string]string{
		"ClusterName":           "private",
		"SlurmctldHost":         "head(" + Address + ")",
		"NodeName":              strings.Join(nodes, "\nNodeName="),
		"PartitionName":         "main Nodes=" + strings.Join(Nodes, ",") + " Default=YES MaxTime=INFINITE State=UP",
		"SlurmdParameters":      "config_overrides",
		"KillWait":              "2",
		"ProctrackType":         "proctrack/linuxproc",
		"TaskPlugin":            "task/none",
		"JobAcctGatherType":     "jobacct_gather/none",
		"AccountingStorageType": "accounting_storage/none",
		"MpiDefault":            "none",
		"SlurmdSpoolDir":        "/var/spool/slurmd/%n",
	}
}

// writeSlurmConf makes the machine's slurm.conf, plugstack.conf and gojail.toml.
func (c *Cluster) writeSlurmConf() error {
	text, err := os.ReadFile(filepath.Join(c.repo, "slurm.conf.example"))
	if err != nil {
		return err
	}
	conf, err := fillSite(string(text), c.siteLines())
	if err != nil {
		return fmt.Errorf("cluster: slurm.conf.example: %w", err)
	}
	if c.options.Constrain {
		_, lines := formatConstraints()
		for key, value := range lines {
			conf = setLine(conf, key, value)
		}
	}
	if c.options.Accounting {
		for key, value := range accountingLines {
			conf = setLine(conf, key, value)
		}
	}
	if c.options.NoConf {
		conf = setLine(conf, "SlurmctldParameters", "enable_configless")
	}
	conf = setLine(conf, "SchedulerParameters", "batch_sched_delay=0") // instead of three seconds for each batch job
	for key, value := range c.options.SlurmConf {
		conf = setLine(conf, key, value)
	}
	if conf, err = c.useOwnAuth(conf); err != nil {
		return err
	}
	if text, err = os.ReadFile(filepath.Join(c.repo, "plugstack.conf.example")); err != nil {
		return err
	}
	plugstack := ""
	if c.options.Plugin {
		plugstack = "required " + Prefix + "/lib/gojail/spank_gojail.so state=/run/gojail/%n"
	}
	begin, _, found := strings.Cut(string(text), siteBegin)
	if !found {
		return fmt.Errorf("cluster: plugstack.conf.example has no line %q", siteBegin)
	}
	etc := filepath.Join(c.root, "etc")
	if err := replaceFile(filepath.Join(c.root, c.confDir(), "plugstack.conf"), begin+plugstack+"\n", 0o644); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(etc, "gojail/gojail.toml"), c.options.Config, 0o644); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(etc, "pam.d/slurm"), "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n", 0o644); err != nil {
		return err
	}
	if err := c.writeCgroupConf(); err != nil {
		return err
	}
	if err := c.writeSlurmdbdConf(); err != nil {
		return err
	}
	return replaceFile(filepath.Join(c.root, c.confDir(), "slurm.conf"), conf, 0o644)
}

// confDir returns the directory of slurm.conf in the machine. With NoConf only slurmctld uses it.
func (c *Cluster) confDir() string {
	if c.options.NoConf {
		return "/srv/slurmctld"
	}
	return "/etc/slurm"
}

func (c *Cluster) writeCgroupConf() error {
	text := ""
	switch {
	case c.options.Files["/etc/slurm/cgroup.conf"] != "":
		return nil
	case c.options.Constrain:
		text, _ = formatConstraints()
	case isUnified():
		text = "IgnoreSystemd=yes\n"
	default:
		return nil
	}
	return replaceFile(filepath.Join(c.root, c.confDir(), "cgroup.conf"), text, 0o644)
}

// fillSite replaces every line of the site section; the section and values name the same keys.
func fillSite(example string, values map[string]string) (string, error) {
	before, rest, found := strings.Cut(example, siteBegin)
	site, after, closed := strings.Cut(rest, siteEnd)
	if !found || !closed {
		return "", fmt.Errorf("the lines %q and %q are missing", siteBegin, siteEnd)
	}
	var lines, used []string
	for line := range strings.Lines(site) {
		key, _, isValue := strings.Cut(line, "=")
		if !isValue || strings.HasPrefix(line, "#") {
			continue
		}
		value, known := values[key]
		if !known {
			return "", fmt.Errorf("the tests have no value of their own for %s in the site section", key)
		}
		lines, used = append(lines, key+"="+value), append(used, key)
	}
	for key := range values {
		if !slices.Contains(used, key) {
			return "", fmt.Errorf("the site section lacks %s", key)
		}
	}
	return before + strings.Join(lines, "\n") + after, nil
}

// setLine replaces the line of a key, or adds one.
func setLine(conf, key, value string) string {
	lines := strings.Split(strings.TrimRight(conf, "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, key+"=") })
	return strings.Join(append(lines, key+"="+value), "\n") + "\n"
}
