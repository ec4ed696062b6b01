// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/tests/harness"
)

// Where things are in the machine of the cluster.
const (
	partsDir  = "/opt/bench"      // the peers, built
	treeDir   = "/mnt/tree"       // prepared's tree, in that slurmd's mount namespace
	heldFile  = "/run/bench.held" // pid of the process in setns' namespace
	jailRoot  = "/srv/jails/debian"
	shimPath  = harness.Prefix + "/lib/gojail/spank_gojail.so"
	otherDir  = "/opt/other" // the other version of gojail
	stateDir  = "/run/gojail/%n"
	jailsName = "debian"
)

// candidate is one way to run a step; its name is that of its node.
type candidate struct {
	name    string
	about   string
	source  string   // peers/SOURCE.c, its plugin
	cflags  []string // to build it with
	plugin  string   // the line of plugstack.conf after "required"
	options []string // of srun
	wrapper []string // goes before the command
	jailed  bool     // the command sees the jail
	tree    bool     // slurmd's mount namespace has the prepared tree
	gojail  bool     // needs gojail itself
	own     bool     // is in a jail of gojail's
	of      string   // "" or isolation: the comparison that it is for; plain ones are for both
}

// listCandidates returns the candidates. The others are compared with the first.
func listCandidates() []candidate {
	return []candidate{
		{name: "plain", about: "Slurm without a plugin"},
		{name: "plain2", about: "the same once more (A/A)"},
		{name: "noop", about: "plugin with gojail's hooks, empty, but job_epilog",
			source: "noop", plugin: partsDir + "/noop.so"},
		{name: "noopepilog", about: "the same and job_epilog",
			source: "noop", cflags: []string{"-DWITH_EPILOG"}, plugin: partsDir + "/noopepilog.so"},
		{name: "prepared", about: "plugin: slurmstepd pivots into a tree mounted beforehand", jailed: true, tree: true,
			source: "prepared", plugin: partsDir + "/prepared.so " + treeDir},
		{name: "setns", about: "plugin: the task joins a namespace held by a process (the floor)", jailed: true,
			source: "setns", plugin: partsDir + "/setns.so HELD"},
		{name: "bwrap", about: "no plugin: srun bwrap ... COMMAND", jailed: true, wrapper: formatBwrapArguments()},
		{name: "gojail", about: "gojail, --jail: own /tmp and /dev/shm per job", jailed: true, gojail: true, own: true,
			plugin: shimPath + " state=" + stateDir, options: []string{"--jail=" + jailsName}},
		{name: "gojailnone", about: "gojail loaded, a step without a jail", gojail: true,
			plugin: shimPath + " state=" + stateDir},
	}
}

// otherVersion is another version of gojail, with the same configuration.
var otherVersion = candidate{name: "other", about: "the version of gojail that -other names, as gojail", jailed: true, gojail: true, own: true,
	plugin: otherDir + "/spank_gojail.so state=" + stateDir, options: []string{"--jail=" + jailsName}}

// isolated are jails that differ in what they keep from the tasks, as gojail.toml has it.
var isolated = []struct{ name, about, config string }{
	{"open", "nothing of it", off},
	{"pids", "PID namespace, its /proc, hidepid", strings.Replace(off, "namespaces = []", `namespaces = ["pid"]`, 1)},
	{"ipc", "IPC and UTS namespace", strings.Replace(off, "namespaces = []", `namespaces = ["ipc", "uts"]`, 1)},
	{"rights", "no_new_privs, capabilities, seccomp", "namespaces = []\nhidepid = false\n"},
	{"root", "all of it, and --jail-root", "jail_root = [\"self\"]\n"},
}

const off = "namespaces = []\nhidepid = false\ncgroups = \"node\"\nno_new_privs = false\ncapabilities = [\"ALL\"]\nseccomp = \"none\"\n"

// listIsolations returns candidates that show the cost of each kind of isolation; gojail has all of them by default.
func listIsolations() (list []candidate) {
	for _, j := range isolated {
		c := candidate{name: "gojail" + j.name, about: "gojail: " + j.about, jailed: true, gojail: true, own: true, of: "isolation",
			plugin: shimPath + " state=" + stateDir, options: []string{"--jail=" + j.name}}
		if j.name == "root" {
			c.options = append(c.options, "--jail-root")
		}
		list = append(list, c)
	}
	return list
}

// formatConfig returns the gojail.toml of the cluster.
func formatConfig() string {
	config := harness.DefaultConfig
	for _, j := range isolated {
		config += fmt.Sprintf("[jail.%s]\nroot = %q\n%s", j.name, jailRoot, j.config)
	}
	return config
}

// chooseCandidates returns plain and the listed candidates. Without a list it returns those of the
// comparison. It adds the other version, if there is one.
func chooseCandidates(only, of, other string) ([]candidate, error) {
	list, err := chooseByName(only, of)
	if err == nil && other != "" {
		list = append(list, otherVersion)
	}
	return list, err
}

func chooseByName(only, of string) ([]candidate, error) {
	all := append(listCandidates(), listIsolations()...)
	if of == "isolation" && only == "" {
		both := []string{"plain", "plain2", "gojail"}
		return slices.DeleteFunc(all, func(c candidate) bool { return c.of != of && !slices.Contains(both, c.name) }), nil
	}
	if of == "" && only == "" {
		return listCandidates(), nil
	}
	if of != "" && of != "isolation" {
		return nil, fmt.Errorf("-of %s: there is no such comparison; write isolation, or leave it out", of)
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c candidate) bool { return c.name == name }) {
			return nil, fmt.Errorf("-only %s: there is no candidate %q", only, name)
		}
	}
	return slices.DeleteFunc(all, func(c candidate) bool {
		return c.name != "plain" && !slices.Contains(names, c.name)
	}), nil
}

// confPath returns the path of the node's slurm.conf.
func (c candidate) confPath() string { return "/etc/slurm/" + c.name + "/slurm.conf" }

// pluginPath returns the path of its plugin, or "".
func (c candidate) pluginPath() string {
	file, _, _ := strings.Cut(c.plugin, " ")
	return file
}
