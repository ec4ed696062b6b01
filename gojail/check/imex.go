// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// The parts of NVIDIA's IMEX service on a node.
const (
	imexDriver = "nvidia-caps-imex-channels" // in /proc/devices
	imexUnit   = "nvidia-imex.service"
	imexConfig = "/etc/nvidia-imex/config.cfg"
	imexNodes  = "/etc/nvidia-imex/nodes_config.cfg" // default of IMEX_NODE_CONFIG_FILE in config.cfg
)

// checkIMEX reports what keeps CUDA programs from the NVLinks between nodes, if Slurm gives steps IMEX channels
// (switch/nvidia_imex). Nothing of it is a FAIL: a launch works, and programs on one node do. A site that starts the
// service with each job, by a Prolog, has not enabled its unit.
func (c *checker) checkIMEX(conf node.SlurmConf) {
	if !strings.EqualFold(conf.Values["switchtype"], "switch/nvidia_imex") || c.config.Login.Here {
		return
	}
	majors := readMajors(filepath.Join(c.node.proc(), "devices"))
	major, hasMajor := majors[imexDriver]
	set, isSet := findIMEXMajor(conf.Values["switchparameters"])
	isTaken := slices.Contains(slices.Collect(maps.Values(majors)), set)
	switch {
	case isSet && hasMajor && set != major, isSet && !hasMajor && isTaken:
		found := "/proc/devices has no " + imexDriver
		if hasMajor {
			found = "that of " + imexDriver + " in /proc/devices is " + strconv.Itoa(major)
		}
		c.report(Finding{Level: Warn, Subject: "imex", Alert: true,
			Remedy: describeEdit(conf, "remove imex_dev_major="+strconv.Itoa(set)+" from SwitchParameters"),
			Found: "imex_dev_major=" + strconv.Itoa(set) + ", but " + found +
				": each step gets a device of another driver, which its user may open"})
		return
	case !hasMajor && !rootpath.Exists(filepath.Join(c.node.proc(), "driver/nvidia")):
		c.ok("imex", "no NVIDIA driver is loaded on this node: its steps need no IMEX channel")
		return
	case !hasMajor:
		c.warn("imex", "update NVIDIA's driver; ignore this on a node whose NVLinks end at the node",
			"/proc/devices has no %s: steps get no IMEX channel that works", imexDriver)
		return
	}
	c.checkIMEXService(major)
}

// checkIMEXService reports a service that is enabled and does not run, or whose list of nodes lacks this one.
func (c *checker) checkIMEXService(major int) {
	enabled, runs := c.isEnabled(imexUnit), c.runsUnit(imexUnit)
	state := imexUnit + " is not enabled"
	switch {
	case enabled && !runs:
		c.report(Finding{Level: Warn, Subject: "imex", Alert: true,
			Remedy: "see: systemctl status " + imexUnit + "; nvidia-imex-ctl -N shows the nodes",
			Found:  imexUnit + " is enabled and does not run: CUDA programs on several nodes reach no NVLinks"})
		return
	case runs:
		state = imexUnit + " runs"
	}
	if (enabled || runs) && rootpath.Exists(c.node.path(imexConfig)) && !c.checkIMEXNodes() {
		return
	}
	c.ok("imex", "%s has major %d, %s", imexDriver, major, state)
}

// checkIMEXNodes reports whether the service's list of nodes has this one. It is a warning if not: a Prolog may write
// the list when a job starts.
func (c *checker) checkIMEXNodes() bool {
	path := imexNodes
	for _, line := range node.ConfLines(c.node.path(imexConfig)) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "IMEX_NODE_CONFIG_FILE" {
			path = cmp.Or(strings.TrimSpace(value), imexNodes)
		}
	}
	const remedy = "write the addresses of all nodes that NVLinks connect there, and run: systemctl restart " + imexUnit
	if !rootpath.Exists(c.node.path(path)) {
		c.warn("imex", remedy, "%s of %s does not exist: nvidia-imex connects no nodes", path, imexConfig)
		return false
	}
	list := node.ConfLines(c.node.path(path))
	if !namesThisHost(list) {
		c.warn("imex", remedy, "%s has no address of this node among its %d: nvidia-imex does not start", path,
			len(list))
		return false
	}
	return true
}

// namesThisHost reports whether a list has an address of this host, or a name, which only a name service understands.
func namesThisHost(list []string) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(list, func(word string) bool {
		word, _, _ = strings.Cut(word, "%") // the interface of a link-local address
		ip := net.ParseIP(word)
		return ip == nil || slices.ContainsFunc(own, func(one net.Addr) bool {
			prefix, ok := one.(*net.IPNet)
			return ok && prefix.IP.Equal(ip)
		})
	})
}

// findIMEXMajor returns imex_dev_major of SwitchParameters, as conf_get_opt_str and atoi of Slurm read it.
func findIMEXMajor(parameters string) (major int, isSet bool) {
	for word := range strings.SplitSeq(parameters, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(word), "=")
		if found && strings.EqualFold(key, "imex_dev_major") {
			major, _ = strconv.Atoi(value)
			return major, true
		}
	}
	return 0, false
}

// readMajors returns the major numbers of character devices by driver (/proc/devices).
func readMajors(path string) map[string]int {
	majors := map[string]int{}
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "Block devices") {
			break
		}
		if len(fields) == 2 {
			if major, err := strconv.Atoi(fields[0]); err == nil {
				majors[fields[1]] = major
			}
		}
	}
	return majors
}

// isEnabled reports whether another unit of this node wants a unit (systemctl(1), enable).
func (c *checker) isEnabled(unit string) bool {
	links, _ := filepath.Glob(c.node.path("/etc/systemd/system/*.*", unit))
	return len(links) > 0 && !c.isMasked(unit)
}

// runsUnit reports whether a unit has processes, in the cgroup that systemd makes for it. Its slice may be any.
func (c *checker) runsUnit(unit string) bool {
	for _, hierarchy := range []string{"", "systemd", "unified"} {
		for _, slice := range []string{"*.slice", "*.slice/*.slice"} {
			files, _ := filepath.Glob(c.node.path("/sys/fs/cgroup", hierarchy, slice, unit, "cgroup.procs"))
			for _, file := range files {
				if text, _ := os.ReadFile(file); len(text) > 0 {
					return true
				}
			}
		}
	}
	return false
}
