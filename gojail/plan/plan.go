// SPDX-License-Identifier: Apache-2.0

// Package plan turns a jail's configuration and the facts of the node into a view, in terms of the OCI
// runtime specification. It is pure.
package plan

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// maskedPaths and readonlyPaths are the paths that OCI runtimes hide or make read-only, because they
// reveal or change state of the whole node (OCI runtime-spec, config-linux.md), and /proc/pressure: a user who
// writes a trigger there makes the kernel measure the whole node more often (psi_trigger_create).
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/pressure", "/proc/sys", "/proc/sysrq-trigger"}
)

// deviceLinks are the links of /dev.
var deviceLinks = []Link{
	{"/dev/fd", "/proc/self/fd"},
	{"/dev/stdin", "/proc/self/fd/0"},
	{"/dev/stdout", "/proc/self/fd/1"},
	{"/dev/stderr", "/proc/self/fd/2"},
	{"/dev/ptmx", "pts/ptmx"},
}

// Jail returns the view of a jail, without the mounts of each sandbox (OwnMounts). It is pure: the node's
// state comes in as facts.
func Jail(c *config.Config, j *config.Jail, facts *node.HostFacts) (*View, error) {
	v := &View{
		RootOptions: j.Options,
		Links:       slices.Clone(deviceLinks),
		Spec: &specs.Spec{
			Version: specs.Version,
			Root:    &specs.Root{Path: j.Root, Readonly: j.Readonly || facts.Image},
			Process: &specs.Process{
				Cwd: "/", NoNewPrivileges: j.Isolation.NoNewPrivs,
				Capabilities: &specs.LinuxCapabilities{Bounding: j.Isolation.BoundingNames()},
			},
			Linux: &specs.Linux{
				Namespaces:    planNamespaces(j),
				Seccomp:       facts.Seccomp,
				Devices:       planStandardDevices(),
				MaskedPaths:   maskedPaths,
				ReadonlyPaths: readonlyPaths,
			},
		},
	}
	lists := [][]specs.Mount{ // in the order in which they are mounted
		planKernelMounts(j),      // /proc, /sys, cgroups, /dev
		planDeviceMounts(facts),  // `devices`
		planRunMounts(),          // /run, and gojail's files in it
		planLocalMounts(c, j),    // `local`
		ConfiguredMounts(j),      // `mounts`
		planHostFiles(j, facts),  // `host`
		planCommandMounts(facts), // the gojail command
	}
	if j.Slurm {
		lists = append(lists, planSlurmMounts(c, facts)) // slurm.conf, the commands, their libraries, munge
		v.Links = append(v.Links, planCacheLinks(&c.Slurm)...)
		v.Links = append(v.Links, planOptionalLinks(facts.Optional)...)
	}
	identity := planIdentityMounts(facts, lists)
	v.Links = append(v.Links, planOptionalLinks(destinations(identity))...)
	lists = append(lists,
		planCDIMounts(facts, lists), // mounts of CDI files that no mount above provides
		identity,                    // files that identify the machine, likewise
		planSpoolMounts(c),          // the mount point of batch scripts
	)
	taken := map[string]bool{}
	for _, list := range lists {
		for _, m := range list {
			if taken[m.Destination] {
				return nil, config.JailErrorf(j.Name, "%s is the destination of two mounts; "+
					"remove the configured one, gojail mounts it itself", m.Destination)
			}
			taken[m.Destination] = true
			v.Spec.Mounts = append(v.Spec.Mounts, m)
		}
	}
	addCDI(v, facts)
	addRunEntries(v, facts)
	return v, nil
}

// planNamespaces returns the namespaces that each job gets; --jail-net and --jail-root add more.
func planNamespaces(j *config.Jail) []specs.LinuxNamespace {
	all := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	for _, kind := range j.Isolation.Namespaces {
		all = append(all, specs.LinuxNamespace{Type: specs.LinuxNamespaceType(kind)}) // the keys use the OCI's words
	}
	return all
}

// View is a root file system to assemble: a jail, or its stage. It is planned without privilege, and
// mount.Apply assembles it.
type View struct {
	// Apply uses Root, Mounts in order, and Linux.{Devices,MaskedPaths,ReadonlyPaths}; the rest describes what tasks
	// get
	Spec        *specs.Spec
	Skeleton    []Target // mount targets that the root lacks, on an overlay of it, which is the root then
	RootOptions []string // mount options of the root's bind mount; unused for a tmpfs root
	TmpfsRoot   bool     // the stage: an empty tmpfs, finally read-only, instead of Spec.Root.Path
	// mounts on top of Spec.Mounts, with files of users that root opens; no symlink in one of them leads out of it
	Data       []specs.Mount
	Foreign    []specs.Mount // mounts on top of Data; one without a mount point there is left out
	Links      []Link        // symlinks to create on file systems that the view itself mounted
	Dirs       []string      // directories to create there
	SharedDirs []string      // likewise, with mode 1777
	Files      []File        // files that hide files of /proc
}

// Link is a symlink of a view: Path is absolute in the view, Target is used unchanged.
type Link struct{ Path, Target string }

// File is a read-only file with the given content that covers the file at Path.
type File struct{ Path, Content string }
