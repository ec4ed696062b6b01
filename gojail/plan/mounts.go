// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"io/fs"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// hostReadonly are the options of read-only mounts of the host's files.
var hostReadonly = []string{"rbind", "ro", "nosuid", "nodev"}

// CgroupRoot is the mount point of the cgroup file system.
const CgroupRoot = "/sys/fs/cgroup"

// Mounts of the kernel's file systems. The template has all of them; sandboxes mount some again (OwnMounts).
var (
	sysMount = specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs",
		Options: []string{"ro", "nosuid", "noexec", "nodev"}}
	ptsMount = specs.Mount{Destination: "/dev/pts", Type: "devpts", Source: "devpts",
		Options: []string{"nosuid", "noexec", "ptmxmode=666", "mode=620", "gid=5"}}
	mqueueMount = specs.Mount{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue",
		Options: []string{"nosuid", "noexec", "nodev"}}
)

func procMount(j *config.Jail) specs.Mount {
	proc := specs.Mount{Destination: "/proc", Type: "proc", Source: "proc",
		Options: []string{"nosuid", "noexec", "nodev"}}
	if j.Isolation.HidePID {
		proc.Options = append(proc.Options, "hidepid=2")
	}
	return proc
}

func cgroupMount(j *config.Jail) specs.Mount {
	if j.Isolation.Cgroups == config.CgroupsNode {
		return Bind(CgroupRoot, "rbind", "ro", "nosuid", "noexec", "nodev")
	}
	// spank/plugin/cgroups.c adds the mounts of each job
	return Tmpfs(CgroupRoot, "mode=755", "size=64k", "nosuid", "noexec", "nodev")
}

func planKernelMounts(j *config.Jail) []specs.Mount {
	return []specs.Mount{
		procMount(j), sysMount, cgroupMount(j),
		Tmpfs("/dev", "mode=755", "nosuid", "noexec"),
		ptsMount,
		// /dev/shm is the mount point for the job's own.
		Tmpfs("/dev/shm", "ro", "mode=1777", "size=4k", "nosuid", "nodev", "noexec"),
		mqueueMount,
	}
}

// planRunMounts plans the mount points of each sandbox's own /run and of gojail's files in it, which are
// one mount that sandboxes move as a whole.
func planRunMounts() []specs.Mount {
	return []specs.Mount{
		Tmpfs("/run", "ro", "mode=755", "nosuid", "nodev"),
		Tmpfs(contract.OwnDir, "ro", "mode=755", "nosuid", "nodev"),
	}
}

func planStandardDevices() []specs.LinuxDevice {
	mode := fs.FileMode(0o666)
	device := func(path string, major, minor int64) specs.LinuxDevice {
		return specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor, FileMode: &mode}
	}
	return []specs.LinuxDevice{ // numbers: the kernel's admin-guide/devices.txt
		device("/dev/null", 1, 3), device("/dev/zero", 1, 5), device("/dev/full", 1, 7),
		device("/dev/random", 1, 8), device("/dev/urandom", 1, 9), device("/dev/tty", 5, 0),
	}
}

// Tmpfs returns a tmpfs mount.
func Tmpfs(destination string, options ...string) specs.Mount {
	return specs.Mount{Destination: destination, Type: "tmpfs", Source: "tmpfs", Options: options}
}

// Bind returns a bind mount of a path on the same path.
func Bind(path string, options ...string) specs.Mount {
	return specs.Mount{Destination: path, Type: "bind", Source: path, Options: options}
}

func planDeviceMounts(facts *node.HostFacts) []specs.Mount {
	var mounts []specs.Mount
	for _, d := range facts.Devices {
		if Inside(mounts, d.Path) {
			continue // mounted with its directory
		}
		mounts = append(mounts, Bind(d.Path, "bind", "nosuid", "noexec"))
	}
	return mounts
}

// Inside reports whether a mount of the list contains path.
func Inside(mounts []specs.Mount, path string) bool {
	for _, m := range mounts {
		if config.Under(path, m.Destination) {
			return true
		}
	}
	return false
}

// LocalDir returns the path on the node's disk of a jail's node-local directory.
func LocalDir(c *config.Config, j *config.Jail, path string) string {
	return filepath.Join(c.Scratch, "local", j.Name, path)
}

func planLocalMounts(c *config.Config, j *config.Jail) []specs.Mount {
	var mounts []specs.Mount
	for _, dir := range j.Local {
		m := Bind(dir, "bind", "nosuid", "nodev")
		m.Source = LocalDir(c, j, dir)
		mounts = append(mounts, m)
	}
	return mounts
}

// ConfiguredMounts returns the mounts that the configuration of a jail lists.
func ConfiguredMounts(j *config.Jail) []specs.Mount {
	var mounts []specs.Mount
	for _, m := range j.Mounts {
		options := slices.Clone(m.Options)
		if m.Type == "bind" && !slices.Contains(options, "bind") && !slices.Contains(options, "rbind") {
			options = append([]string{"bind"}, options...) // the OCI runtime specification requires one of them
		}
		mounts = append(mounts, specs.Mount{Destination: m.Destination, Type: m.Type, Source: m.Source,
			Options: options})
	}
	return mounts
}

// accountFiles are the files that packages add users to. A sandbox mounts the node's entries, followed by
// the jail's own, over the jail's file, or leaves the jail's file to root of a --jail-root=range
// (spank/launcher/accounts.c).
var accountFiles = []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"}

// planHostFiles plans the mounts of host files, without files that this node lacks.
func planHostFiles(j *config.Jail, facts *node.HostFacts) []specs.Mount {
	var mounts []specs.Mount
	for _, path := range j.Host {
		if !facts.Exists[path] {
			continue
		}
		m := Bind(path, hostReadonly...)
		if slices.Contains(accountFiles, path) {
			m.Destination = filepath.Join(contract.AccountsDir, filepath.Base(path))
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// planIdentityMounts plans the mounts of the files that identify the machine, without those that other mounts of the
// jail provide.
func planIdentityMounts(facts *node.HostFacts, others [][]specs.Mount) []specs.Mount {
	var mounts []specs.Mount
	for _, file := range facts.Identity {
		if Inside(slices.Concat(others...), file.Path) {
			continue
		}
		m := Bind(file.Path, "bind", "ro", "nosuid", "nodev", "noexec")
		m.Source = file.Source
		mounts = append(mounts, m)
	}
	return mounts
}

func destinations(mounts []specs.Mount) (paths []string) {
	for _, m := range mounts {
		paths = append(paths, m.Destination)
	}
	return paths
}

// planCommandMounts plans the mount of the gojail command for users, mainly for `gojail net check`.
func planCommandMounts(facts *node.HostFacts) []specs.Mount {
	if facts.Command == "" {
		return nil
	}
	m := Bind(contract.CommandInJail, hostReadonly...)
	m.Source = facts.Command
	return []specs.Mount{m}
}
