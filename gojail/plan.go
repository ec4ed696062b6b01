// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Options of what is the host's and only to be read.
var hostReadonly = []string{"rbind", "ro", "nosuid", "nodev"}

// The paths that OCI runtimes hide, or make read-only, because they tell about
// or change the whole node (OCI runtime-spec, config-linux.md).
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// PlanJail lists what makes up a jail, except what is each job's own (JobMounts).
// It is pure: the node comes in as facts.
func PlanJail(c *Config, j *Jail, facts *HostFacts) (*View, error) {
	v := &View{
		RootOptions: j.Options,
		Links: []Link{
			{"/dev/fd", "/proc/self/fd"},
			{"/dev/stdin", "/proc/self/fd/0"},
			{"/dev/stdout", "/proc/self/fd/1"},
			{"/dev/stderr", "/proc/self/fd/2"},
			{"/dev/ptmx", "pts/ptmx"},
		},
		Spec: &specs.Spec{
			Version: specs.Version,
			Root:    &specs.Root{Path: j.Root, Readonly: j.Readonly},
			Process: &specs.Process{
				Cwd: "/", NoNewPrivileges: j.Isolation.NoNewPrivs,
				Capabilities: &specs.LinuxCapabilities{Bounding: j.Isolation.bounding()},
			},
			Linux: &specs.Linux{
				Namespaces:    namespaces(j),
				Seccomp:       facts.Seccomp,
				Devices:       standardDevices(),
				MaskedPaths:   maskedPaths,
				ReadonlyPaths: readonlyPaths,
			},
		},
	}
	lists := [][]specs.Mount{
		kernelMounts(j), deviceMounts(facts), runMounts(),
		localMounts(c, j), configuredMounts(j), hostFiles(j, facts), commandMounts(facts),
	}
	if j.Slurm {
		lists = append(lists, slurmMounts(c, facts))
		v.Links = append(v.Links, c.Slurm.cacheLinks()...)
		v.Links = append(v.Links, optionalLinks(facts)...)
	}
	lists = append(lists, cdiMounts(facts, lists), spoolMounts(c))
	taken := map[string]bool{}
	for _, list := range lists {
		for _, m := range list {
			if taken[m.Destination] {
				return nil, fmt.Errorf("jail %s: %s is the destination of two mounts; "+
					"what gojail brings itself need not be configured", j.Name, m.Destination)
			}
			taken[m.Destination] = true
			v.Spec.Mounts = append(v.Spec.Mounts, m)
		}
	}
	addCDI(v, facts)
	return v, nil
}

// namespaces are those that a job has of its own; --jail-net and --jail-root bring more.
func namespaces(j *Jail) []specs.LinuxNamespace {
	all := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	for _, kind := range j.Isolation.Namespaces {
		all = append(all, specs.LinuxNamespace{Type: specs.LinuxNamespaceType(kind)}) // the OCI's words are ours
	}
	return all
}

const cgroupRoot = "/sys/fs/cgroup"

func kernelMounts(j *Jail) []specs.Mount {
	proc := specs.Mount{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}}
	if j.Isolation.HidePID {
		proc.Options = append(proc.Options, "hidepid=2")
	}
	cgroup := tmpfs(cgroupRoot, "mode=755", "size=64k", "nosuid", "noexec", "nodev") // spank/cgroups.c fills each job's
	if j.Isolation.Cgroups == CgroupsNode {
		cgroup = bind(cgroupRoot, "rbind", "ro", "nosuid", "noexec", "nodev")
	}
	return []specs.Mount{
		proc,
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"ro", "nosuid", "noexec", "nodev"}},
		cgroup,
		tmpfs("/dev", "mode=755", "nosuid", "noexec"),
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "ptmxmode=666", "mode=620", "gid=5"}},
		// A place for the job's own.
		tmpfs("/dev/shm", "ro", "mode=1777", "size=4k", "nosuid", "nodev", "noexec"),
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
	}
}

// runMounts returns the places for each sandbox's own /run (spank/assemble.c), and in
// it for what gojail brings: one mount, that sandboxes move as a whole.
func runMounts() []specs.Mount {
	return []specs.Mount{
		tmpfs("/run", "ro", "mode=755", "nosuid", "nodev"),
		tmpfs("/run/gojail", "ro", "mode=755", "nosuid", "nodev"),
	}
}

func standardDevices() []specs.LinuxDevice {
	mode := os.FileMode(0o666)
	device := func(path string, major, minor int64) specs.LinuxDevice {
		return specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor, FileMode: &mode}
	}
	return []specs.LinuxDevice{ // numbers: the kernel's admin-guide/devices.txt
		device("/dev/null", 1, 3), device("/dev/zero", 1, 5), device("/dev/full", 1, 7),
		device("/dev/random", 1, 8), device("/dev/urandom", 1, 9), device("/dev/tty", 5, 0),
	}
}

func tmpfs(destination string, options ...string) specs.Mount {
	return specs.Mount{Destination: destination, Type: "tmpfs", Source: "tmpfs", Options: options}
}

func bind(path string, options ...string) specs.Mount {
	return specs.Mount{Destination: path, Type: "bind", Source: path, Options: options}
}

func deviceMounts(facts *HostFacts) []specs.Mount {
	var mounts []specs.Mount
	for _, d := range facts.Devices {
		if inside(mounts, d.Path) {
			continue // comes with its directory
		}
		mounts = append(mounts, bind(d.Path, "bind", "nosuid", "noexec"))
	}
	return mounts
}

// inside tells whether a mount in the list brings path with it.
func inside(mounts []specs.Mount, path string) bool {
	for _, m := range mounts {
		if under(path, m.Destination) {
			return true
		}
	}
	return false
}

// LocalDir is where a jail's node-local directory lies on the node's disk.
func (c *Config) LocalDir(j *Jail, path string) string {
	return filepath.Join(c.Scratch, "local", j.Name, path)
}

func localMounts(c *Config, j *Jail) []specs.Mount {
	var mounts []specs.Mount
	for _, dir := range j.Local {
		m := bind(dir, "bind", "nosuid", "nodev")
		m.Source = c.LocalDir(j, dir)
		mounts = append(mounts, m)
	}
	return mounts
}

func configuredMounts(j *Jail) []specs.Mount {
	var mounts []specs.Mount
	for _, m := range j.Mounts {
		options := slices.Clone(m.Options)
		if m.Type == "bind" && !slices.Contains(options, "bind") && !slices.Contains(options, "rbind") {
			options = append([]string{"bind"}, options...) // the runtime-spec wants one of them
		}
		mounts = append(mounts, specs.Mount{Destination: m.Destination, Type: m.Type, Source: m.Source, Options: options})
	}
	return mounts
}

// accountFiles are files that packages add users to. A sandbox mounts the node's, with what
// the jail has of its own behind them, on the jail's, or leaves the jail's to root of a
// --jail-root=range (spank/accounts.c).
var accountFiles = []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"}

// hostFiles leaves out what this node does not have.
func hostFiles(j *Jail, facts *HostFacts) []specs.Mount {
	var mounts []specs.Mount
	for _, path := range j.Host {
		if !facts.Exists[path] {
			continue
		}
		m := bind(path, hostReadonly...)
		if slices.Contains(accountFiles, path) {
			m.Destination = filepath.Join(accountsDir, filepath.Base(path))
		} else if to := facts.Leads[path]; to != "" {
			m.Destination = to
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// slurmMounts make `srun` work inside the jail with the node's own Slurm.
func slurmMounts(c *Config, facts *HostFacts) []specs.Mount {
	paths := []string{c.Slurm.Conf}
	paths = append(paths, c.Slurm.Host...)
	paths = append(paths, facts.SlurmDirs...)
	paths = append(paths, facts.SlurmFiles...)
	paths = append(paths, facts.Libraries...)
	mounts := c.Slurm.cacheMounts()
	for _, path := range paths {
		if path != c.Slurm.Cache && !inside(mounts, path) {
			mounts = append(mounts, bind(path, hostReadonly...))
		}
	}
	if c.bringsMunge() {
		// Each job's own is mounted on this: munged makes a new socket whenever it starts.
		m := bind(c.Slurm.Munge, mungeOptions...)
		m.Source = "/dev/null"
		mounts = append(mounts, m)
	}
	return mounts
}

// commandMounts bring the gojail command for users, `gojail net check` above all.
func commandMounts(facts *HostFacts) []specs.Mount {
	if facts.Command == "" {
		return nil
	}
	m := bind("/run/gojail/bin/gojail", hostReadonly...)
	m.Source = facts.Command
	return []specs.Mount{m}
}

var mungeOptions = []string{"bind", "ro", "nosuid", "nodev", "noexec"}

// bringsMunge tells whether munge's socket is mounted by itself: not where a
// directory of the host brings it along.
func (c *Config) bringsMunge() bool {
	return !slices.ContainsFunc(append([]string{c.Slurm.Conf}, c.Slurm.Host...), func(dir string) bool {
		return under(c.Slurm.Munge, dir)
	})
}

// spoolMounts are the place for batch scripts. A node's own directory is made in
// a tmpfs, not on the jail's storage, which would need one for each node.
func spoolMounts(c *Config) []specs.Mount {
	mounts := []specs.Mount{tmpfs(c.Slurm.Spool, "mode=755", "nosuid", "nodev")}
	if c.Slurm.SpoolBase != c.Slurm.Spool {
		mounts = append([]specs.Mount{tmpfs(c.Slurm.SpoolBase, "ro", "mode=755", "size=4k", "nosuid", "nodev", "noexec")}, mounts...)
	}
	return mounts
}

// firstName is the top-level directory of an absolute path: "home" of /home/x.
func firstName(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
