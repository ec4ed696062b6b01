// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/tests/harness"
)

// cpusPerNode lets a node run all of its job's launches; more than the machine has is fine.
const cpusPerNode = 16

// machine is the private cluster with a node for each candidate.
type machine struct {
	*harness.Cluster
	repo   string
	chosen []candidate
	groups map[string]group
	clean  func() // removes the cgroups
	watch  *stopwatch
}

// startMachine builds the peers and starts the cluster with every node idle.
func startMachine(chosen []candidate, cgroups bool, other string) (*machine, error) {
	repo, err := harness.Repository()
	if err != nil {
		return nil, err
	}
	m := &machine{repo: repo, chosen: chosen}
	if m.groups, m.clean, err = makeGroups(chosen, cgroups); err != nil {
		return nil, err
	}
	gojail := slices.ContainsFunc(chosen, func(c candidate) bool { return c.gojail })
	m.Cluster, err = harness.UpHead(harness.Options{
		Plugin: gojail, Jails: []string{jailsName}, SlurmConf: m.slurmConf(cgroups), Config: formatConfig(),
	})
	if err != nil {
		m.clean()
		return nil, err
	}
	steps := []func() error{m.buildPeers, func() error { return m.installOther(other) }, m.makeView, m.startNodes, m.startStopwatch}
	for _, step := range steps {
		if err := step(); err != nil {
			m.stop()
			return nil, err
		}
	}
	return m, nil
}

// stop ends the cluster and removes its files and cgroups.
func (m *machine) stop() {
	if m.watch != nil {
		m.watch.close()
	}
	if err := m.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	m.clean()
}

// slurmConf returns the keys in which the controller's slurm.conf differs from that of the tests.
func (m *machine) slurmConf(cgroups bool) map[string]string {
	var nodes, names []string
	for i, c := range m.chosen {
		names = append(names, c.name)
		nodes = append(nodes, fmt.Sprintf("%s NodeAddr=%s Port=%d CPUs=%d State=UNKNOWN",
			c.name, harness.Address, 6900+i, cpusPerNode))
	}
	conf := map[string]string{
		"NodeName":        strings.Join(nodes, "\nNodeName="),
		"PartitionName":   "main Nodes=" + strings.Join(names, ",") + " Default=YES MaxTime=INFINITE State=UP",
		"PlugStackConfig": "/etc/slurm/plugstack.conf",
		"DebugFlags":      "NO_CONF_HASH", // each node has a slurm.conf of its own
	}
	if cgroups {
		conf["ProctrackType"], conf["TaskPlugin"] = "proctrack/cgroup", "task/cgroup"
	}
	return conf
}

// installOther copies the other version's plugin, launcher and library into the machine.
func (m *machine) installOther(repo string) error {
	if repo == "" {
		return nil
	}
	out, err := exec.Command("cp", "-a", filepath.Join(repo, "build/lib/gojail"), m.Path(otherDir)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("bench: -other %s: build it with make all: %w: %s", repo, err, out)
	}
	return nil
}

// buildPeers compiles peers/*.c into the machine.
func (m *machine) buildPeers() error {
	if err := os.MkdirAll(m.Path(partsDir), 0o755); err != nil {
		return err
	}
	if err := m.compile("stopwatch", "peers/stopwatch.c"); err != nil {
		return err
	}
	for _, c := range m.chosen {
		if c.source == "" {
			continue
		}
		flags := append([]string{"-fPIC", "-shared"}, c.cflags...)
		if err := m.compile(filepath.Base(c.pluginPath()), append(flags, "peers/"+c.source+".c")...); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) compile(name string, args ...string) error {
	return compile(m.repo, filepath.Join(m.Path(partsDir), name), args...)
}

func compile(repo, to string, args ...string) error {
	gcc := exec.Command("gcc", append([]string{"-O2", "-std=gnu11", "-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`, "-Wall", "-Wextra", "-Werror", "-o", to}, args...)...)
	gcc.Dir = filepath.Join(repo, "tests/bench")
	if out, err := gcc.CombinedOutput(); err != nil {
		return fmt.Errorf("bench: gcc %s: %w\n%s", filepath.Base(to), err, out)
	}
	return nil
}

// makeView prepares the jail for the peers' tree, and setns' held namespace.
func (m *machine) makeView() error {
	if err := m.makeTargets(); err != nil {
		return err
	}
	// gojail init ran for the head; the spool directory has the node's name in it.
	for _, c := range m.chosen {
		if err := os.MkdirAll(m.Path(jailRoot+"/var/spool/slurmd/"+c.name), 0o755); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(m.chosen, func(c candidate) bool { return c.name == "setns" }) {
		return nil
	}
	script := "set -e\n" + formatTreeScript(treeDir) + "echo $$ >" + heldFile + "\ncd " + treeDir +
		"\npivot_root . .\numount -l .\nexec sleep infinity </dev/null >/dev/null 2>&1\n"
	r := m.Root("sh", "-c", "setsid unshare --mount --propagation private sh -c \"$0\" </dev/null 2>/tmp/held.err >/tmp/held.err &", script)
	ready := harness.Poll(10*time.Second, func() bool { return len(m.readHeldMounts()) > 0 })
	if !ready {
		text, _ := os.ReadFile(m.Path("/tmp/held.err"))
		return fmt.Errorf("bench: the namespace of setns was not made: %s\n%s", r, text)
	}
	return nil
}

// readHeldMounts returns the mountinfo of setns' namespace, or "" until it is complete.
func (m *machine) readHeldMounts() string {
	pid, err := m.findHeldPid()
	if err != nil {
		return ""
	}
	if name, _ := os.ReadFile(m.Path(fmt.Sprintf("/proc/%d/comm", pid))); strings.TrimSpace(string(name)) != "sleep" {
		return ""
	}
	text, _ := os.ReadFile(m.Path(fmt.Sprintf("/proc/%d/mountinfo", pid)))
	return string(text)
}

func (m *machine) findHeldPid() (int, error) {
	text, err := os.ReadFile(m.Path(heldFile))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// startNodes writes each node's configuration and starts its slurmd.
func (m *machine) startNodes() error {
	conf, err := os.ReadFile(m.Path("/etc/slurm/slurm.conf"))
	if err != nil {
		return err
	}
	for _, c := range m.chosen {
		if err := m.startNode(c, string(conf)); err != nil {
			return err
		}
	}
	idle := func() bool {
		states := strings.Fields(m.Root("sinfo", "-h", "-N", "-o", "%T").Stdout)
		return len(states) == len(m.chosen) && !slices.ContainsFunc(states, func(s string) bool { return s != "idle" })
	}
	if !harness.Poll(harness.Timeout, idle) {
		return fmt.Errorf("bench: the nodes are not idle:\n%s", m.Root("sinfo", "-N", "-l"))
	}
	return nil
}

func (m *machine) startNode(c candidate, conf string) error {
	plugstack := "/etc/slurm/" + c.name + "/plugstack.conf"
	line := ""
	if c.plugin != "" {
		held, _ := m.findHeldPid()
		line = "required " + strings.Replace(c.plugin, "HELD", strconv.Itoa(held), 1) + "\n"
	}
	conf = strings.Replace(conf, "PlugStackConfig=/etc/slurm/plugstack.conf", "PlugStackConfig="+plugstack, 1)
	files := map[string]string{plugstack: line, c.confPath(): conf}
	if len(m.groups[c.name].jobs) > 0 {
		files["/etc/slurm/"+c.name+"/cgroup.conf"] = cgroupConf
	}
	for path, text := range files {
		if err := os.MkdirAll(m.Path(filepath.Dir(path)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(m.Path(path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	g := m.groups[c.name]
	// The node sees its own cgroup as the root of the hierarchy: see the top of main.go.
	inside := fmt.Sprintf("set -e\nmount --bind %s %s\n", g.path, g.root)
	enter := "echo 0 >" + g.path + "/slurmd/cgroup.procs && "
	for i, path := range g.jobs {
		enter += "echo 0 >" + path + "/cgroup.procs && "
		inside += fmt.Sprintf("mount --bind %s /sys/fs/cgroup/%s\n", path, jobHierarchies[i])
	}
	if c.tree {
		inside += formatTreeScript(treeDir)
	}
	inside += fmt.Sprintf("exec /usr/sbin/slurmd -N %s -f %s\n", c.name, c.confPath())
	r := m.Do(harness.Command{
		Dir: "/", Env: []string{"HWLOC_PLUGINS_PATH=/nonexistent", "LANG=C.UTF-8"},
		Args: []string{"sh", "-c", enter + "exec unshare --cgroup --mount --propagation private sh -c \"$0\"", inside},
	})
	if r.Code != 0 {
		return fmt.Errorf("bench: slurmd of %s: %s\n%s", c.name, r, m.Log(c.name))
	}
	return nil
}
