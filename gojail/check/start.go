// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/slurm"
	"github.com/gojail/gojail/internal/slurmconf"
)

const (
	cgroupMount    = "/sys/fs/cgroup"
	cgroupDisabled = 0x180500 // the release from which on cgroup.conf(5) has CgroupPlugin=disabled
)

// checkStart reports why slurmd would not start with the files of Slurm's configuration, or would give this node fewer
// devices than slurm.conf says: a slurmd that runs shows neither before its next start. It asks slurmd (-G), with the
// rights of a user who owns nothing; what -G does not look at is in cgroup.conf.
func (c *checker) checkStart(conf node.SlurmConf, running bool) {
	lines, _ := slurmconf.Read(filepath.Join(conf.Dir, "slurm.conf"))
	here := slurmconf.FindNode(lines, c.node.Name)
	program := findSlurmdProgram(c)
	if c.watch || os.Geteuid() != 0 || here == nil || program == "" {
		return // a submit host, or a node that slurm.conf does not name
	}
	said, whole := c.askSlurmd(program, conf)
	fault, remedy := findStartFault(said, conf)
	if fault == "" {
		fault, remedy = findCgroupFault(conf, append(slices.Clone(conf.Plugins), node.ReadSlurm(c.config).Dirs...))
	}
	again := "run: systemctl restart slurmd"
	switch {
	case fault != "" && running:
		c.warn("slurmd", remedy+", and "+again, "slurmd runs, but cannot start again: %s", fault)
		return
	case fault != "":
		c.fail("slurmd", remedy+", and "+again, "slurmd cannot start: %s", fault)
		return
	case whole && !c.needsDevices(conf) && c.checkDevices(here, said, conf, again):
		return
	}
	for _, line := range said {
		if text, found := cutAny(line, "error: ", "warning: ", "WARNING: "); found && ofGres.MatchString(text) {
			c.warn("slurmd", "correct "+filepath.Join(conf.Dir, "gres.conf")+", and "+again, "slurmd says: %s", text)
			return
		}
	}
}

// findSlurmdProgram returns the path of slurmd beside Slurm's commands, or "".
func findSlurmdProgram(c *checker) string {
	_, dir := node.FindCommands(c.config)
	for _, path := range []string{filepath.Join(dir, "../sbin/slurmd"), filepath.Join(dir, "slurmd")} {
		if dir != "" && rootpath.Exists(path) {
			return path
		}
	}
	return ""
}

var (
	// spoken is where a line of slurmd begins after what LogTimeFormat= of slurm.conf(5), and from 26.05 on slurmd by
	// itself, write before.
	spoken = regexp.MustCompile(`\b(Gres Name=|fatal: |error: |warning: |WARNING: )`)
	// refused is in what slurmd says of a file that root may read: gres.conf with mode 0600, or the key of auth/slurm.
	refused = regexp.MustCompile(`(?i)permission denied|could not load key file`)
	ofGres  = regexp.MustCompile(`(?i)\bgres\b`)
)

// askSlurmd returns what slurmd says of its configuration, line by line, and whether it came to the end. It would wait
// 20 s for a missing device. What a user may not read leaves no conclusion, nor does a cgroup that only root may open.
func (c *checker) askSlurmd(program string, conf node.SlurmConf) (said []string, whole bool) {
	text, err := c.runForUsers(program, "-G", "-L", "/dev/null", "-f", filepath.Join(conf.Dir, "slurm.conf"),
		"-N", c.node.Name)
	return readWords(text, err)
}

// readWords returns the lines of what slurmd said without what stands before them.
func readWords(text string, err error) (said []string, whole bool) {
	for line := range strings.Lines(text) {
		at := spoken.FindStringIndex(line)
		switch {
		case strings.Contains(line, cgroupMount+"/"):
		case refused.MatchString(line):
			return nil, false
		case at != nil:
			said = append(said, strings.TrimSpace(line[at[0]:]))
		}
	}
	return said, err == nil
}

// needsDevices reports whether gres.conf has slurmd look for GPUs in a way that needs more than a user's rights.
func (c *checker) needsDevices(conf node.SlurmConf) bool {
	for _, line := range node.ReadLines(filepath.Join(conf.Dir, "gres.conf"), c.node.Name) {
		switch strings.ToLower(line["autodetect"]) {
		case "", "off":
		case "nvml":
			devices, _ := filepath.Glob(c.node.path("/dev/nvidia*"))
			if slices.ContainsFunc(devices, isClosedToUsers) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// isClosedToUsers reports whether a device is there that users may not read and write.
func isClosedToUsers(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && !stat.IsDir() && stat.Mode().Perm()&6 != 6
}

// missingDevice is the path in what slurmd says of a device of gres.conf.
var missingDevice = regexp.MustCompile(`^error: Waiting for gres.conf file (\S+)$`)

// findStartFault returns the fault for which slurmd ends, and what to do; "": none.
func findStartFault(said []string, conf node.SlurmConf) (fault, remedy string) {
	var last string
	for _, line := range said {
		if device := missingDevice.FindStringSubmatch(line); device != nil {
			file := filepath.Join(conf.Dir, "gres.conf")
			remedy = "load its driver, or correct File= in " + file
			if strings.HasPrefix(device[1], "/dev/gojail/") {
				remedy = "compare " + file + " with what this prints: gojail gres"
			}
			return "gres.conf names " + device[1] + ", which does not exist", remedy
		}
		if text, found := strings.CutPrefix(line, "fatal: "); found {
			if last != "" {
				text = last + ": " + text
			}
			return text, "correct that file"
		}
		last, _ = strings.CutPrefix(line, "error: ")
	}
	return "", ""
}

// checkDevices reports devices of this node that slurm.conf names and slurmd does not find: slurmctld gives such a node
// no job. It returns whether there are any.
func (c *checker) checkDevices(here map[string]string, said []string, conf node.SlurmConf, again string) bool {
	found := map[string]int{}
	for _, line := range said {
		name, count := "", 0
		for _, word := range strings.Fields(line) {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "Name":
				name = value
			case "Count":
				count, _ = strconv.Atoi(value)
			}
		}
		if strings.HasPrefix(line, "Gres Name=") {
			found[name] += count
		}
	}
	wanted := map[string]int{}
	for _, g := range slurm.ReadGRES(here["gres"]) {
		if !g.NoConsume {
			wanted[g.Name] += max(g.Count, 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if found[name] >= wanted[name] {
			continue
		}
		c.fail("slurmd", fmt.Sprintf("write lines Name=%s with File= for all of them to %s, or correct Gres=%s in %s, "+
			"and %s", name, filepath.Join(conf.Dir, "gres.conf"), here["gres"], filepath.Join(conf.Dir, "slurm.conf"),
			again),
			"slurm.conf gives this node %d of %s, but slurmd finds %d with gres.conf: slurmctld gives the node no job",
			wanted[name], name, found[name])
		return true
	}
	return false
}

// findCgroupFault returns why no plugin of Slurm for cgroups starts with this cgroup.conf(5), and what to do; "": none.
func findCgroupFault(conf node.SlurmConf, plugins []string) (fault, remedy string) {
	file := filepath.Join(conf.Dir, "cgroup.conf")
	values := slurmconf.ReadKeys(file)
	plugin, mount := cmp.Or(values["cgroupplugin"], "autodetect"), cmp.Or(values["cgroupmountpoint"], cgroupMount)
	path, release := findNodesRelease(plugins)
	name := strings.ReplaceAll(plugin, "/", "_") + ".so"
	switch {
	case path == "" || plugin == "autodetect":
	case plugin == "disabled" && release >= cgroupDisabled:
		return "", ""
	case !slices.ContainsFunc(plugins, func(dir string) bool { return rootpath.Exists(filepath.Join(dir, name)) }):
		return fmt.Sprintf("CgroupPlugin=%s of cgroup.conf is no plugin of Slurm %s", plugin, release),
			"remove CgroupPlugin=" + plugin + " from " + file
	}
	if !usesCgroups(conf) {
		return "", ""
	}
	var fs unix.Statfs_t
	switch unified := unix.Statfs(mount, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC; {
	case mount != cgroupMount && !unified && !rootpath.Exists(filepath.Join(mount, "freezer")):
		return "CgroupMountpoint=" + mount + " of cgroup.conf has no cgroups",
			"remove CgroupMountpoint=" + mount + " from " + file
	case plugin == "cgroup/v2" && !unified, plugin == "cgroup/v1" && unified:
		return fmt.Sprintf("CgroupPlugin=%s of cgroup.conf is not what the node has mounted on %s", plugin, mount),
			"remove CgroupPlugin=" + plugin + " from " + file
	}
	return "", ""
}

// usesCgroups reports whether a plugin of slurm.conf needs cgroups. ProctrackType has proctrack/cgroup as its default.
func usesCgroups(conf node.SlurmConf) bool {
	track := conf.Values["proctracktype"]
	return track == "" || track == "proctrack/cgroup" || hasWord(conf.Values["taskplugin"], "task/cgroup") ||
		conf.Values["jobacctgathertype"] == "jobacct_gather/cgroup"
}

// cutAny returns a text without the first of the prefixes that it has.
func cutAny(text string, prefixes ...string) (rest string, found bool) {
	for _, prefix := range prefixes {
		if rest, found = strings.CutPrefix(text, prefix); found {
			return rest, true
		}
	}
	return text, false
}
