// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/rootpath"
)

// Isolation is what separates the tasks of a jail from the node and from other jobs.
type Isolation struct {
	Namespaces   []string // elements of namespaceKinds: the namespaces that each job gets
	HidePID      bool     // /proc shows users only their own processes (proc(5), hidepid=2; Linux 5.8)
	Cgroups      string   // CgroupsJob or CgroupsNode: the part of the tree that /sys/fs/cgroup shows
	Abstract     string   // AbstractNode or AbstractStep: the abstract Unix sockets that a task can reach
	NoNewPrivs   bool     // prctl(2), PR_SET_NO_NEW_PRIVS
	Capabilities []string // the bounding set (capabilities(7)), or AllCapabilities
	Seccomp      string   // SeccompDefault, SeccompContainers, None, or the path of a profile
	JailRoot     []string // elements of jailRoots: the permitted values of --jail-root
	KeepProjects bool     // tasks cannot change a file's project, by which a jail of this node has a quota
}

// Values of the fields of Isolation.
const (
	SeccompDefault    = "default"
	SeccompContainers = "containers"
	AllCapabilities   = "ALL"
	CgroupsJob        = "job"  // the job's own subtree, at its path
	CgroupsNode       = "node" // the whole tree
	AbstractNode      = "node" // all of the task's network namespace
	AbstractStep      = "step" // only those of the step's tasks (landlock(7), Linux 6.12)
)

var (
	namespaceKinds = []string{"pid", "ipc", "uts"}
	jailRoots      = []string{"self", "range"}
)

// capabilityNames are the kernel's capabilities, indexed by number (linux/capability.h).
var capabilityNames = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
	"CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN",
	"CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT",
	"CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE",
	"CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL",
	"CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND",
	"CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
}

// defaultCapabilities are those that OCI runtimes give a container, without CAP_MKNOD: Slurm has no
// device filter unless ConstrainDevices is on. Outside --jail-root a user has none of them; they bound
// what root's own jobs can do.
var defaultCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE", "CAP_SETFCAP",
}

func (s *source) parseIsolation(j *Jail, f *fileJail) error {
	key := func(last string) []string { return []string{"jail", j.Name, last} }
	i := &j.Isolation
	*i = Isolation{
		Namespaces: f.Namespaces, HidePID: f.HidePID == nil || *f.HidePID,
		Cgroups: CgroupsJob, Abstract: AbstractNode, NoNewPrivs: f.NoNewPrivs == nil || *f.NoNewPrivs,
		Capabilities: f.Capabilities,
		Seccomp:      SeccompDefault, JailRoot: f.JailRoot,
	}
	if i.Namespaces == nil {
		i.Namespaces = namespaceKinds
	}
	if i.Capabilities == nil {
		i.Capabilities = defaultCapabilities
	}
	if f.Seccomp != nil {
		i.Seccomp = *f.Seccomp
	}
	if f.Cgroups != nil {
		i.Cgroups = *f.Cgroups
	}
	if f.Abstract != nil {
		i.Abstract = *f.Abstract
	}
	for _, list := range []struct {
		key        string
		words, all []string
	}{
		{"namespaces", i.Namespaces, namespaceKinds},
		{"capabilities", i.Capabilities, append([]string{AllCapabilities}, capabilityNames...)},
		{"jail_root", i.JailRoot, jailRoots},
		{"cgroups", []string{i.Cgroups}, []string{CgroupsJob, CgroupsNode}},
		{"abstract_sockets", []string{i.Abstract}, []string{AbstractNode, AbstractStep}},
	} {
		if bad := findUnknownWord(list.words, list.all); bad != "" {
			return s.refuse(key(list.key), "unknown value %q; known: %s", bad, strings.Join(list.all, " "))
		}
		if twice, ok := findDuplicate(list.words); ok {
			return s.refuse(key(list.key), "duplicate %q", twice)
		}
	}
	if slices.Contains(i.Capabilities, AllCapabilities) && len(i.Capabilities) > 1 {
		return s.refuse(key("capabilities"), "%q includes all others: write it alone", AllCapabilities)
	}
	if slices.Contains(i.JailRoot, "range") && (!i.NoNewPrivs || !slices.Contains(j.Options, "nosuid")) {
		return s.refuse(key("jail_root"),
			`"range" requires no_new_privs = true and "nosuid" among the options: root of the jail could create `+
				`a set-user-ID file that gives others the node's root`)
	}
	if !slices.Contains([]string{SeccompDefault, SeccompContainers, None}, i.Seccomp) {
		if err := rootpath.CheckClean(i.Seccomp); err != nil {
			return s.refuse(key("seccomp"), `write "default", "containers", "none", or the path of a profile: %v`, err)
		}
		i.Seccomp = filepath.Clean(i.Seccomp)
	}
	return nil
}

// keepProjects protects the project of files in all jails if one jail limits its /tmp on disk: otherwise a task of
// another jail could put its files into the project of that jail's job, and use up its limit.
func (c *Config) keepProjects() {
	limited := false
	for _, j := range c.Jails {
		limited = limited || j.Tmp == TmpDisk && j.TmpSize > 0
	}
	for _, j := range c.Jails {
		j.Isolation.KeepProjects = limited
	}
}

// BoundingNames returns the names of the capabilities in the bounding set.
func (i *Isolation) BoundingNames() []string {
	if slices.Equal(i.Capabilities, []string{AllCapabilities}) {
		return capabilityNames
	}
	return i.Capabilities
}

// Bounding returns the bounding set as a mask, bit n for capability n.
func (i *Isolation) Bounding() uint64 {
	if slices.Equal(i.Capabilities, []string{AllCapabilities}) {
		return ^uint64(0) // includes the capabilities of later kernels
	}
	var mask uint64
	for _, name := range i.Capabilities {
		mask |= 1 << slices.Index(capabilityNames, name)
	}
	return mask
}

// Words returns the words of the site file's line "isolate" (docs/state.md).
func (i *Isolation) Words() string {
	words := slices.Clone(i.Namespaces)
	slices.SortFunc(words, func(a, b string) int {
		return slices.Index(namespaceKinds, a) - slices.Index(namespaceKinds,
			b)
	})
	if i.Cgroups == CgroupsJob {
		words = append(words, "cgroup")
	}
	if i.NoNewPrivs {
		words = append(words, "no_new_privs")
	}
	if i.Abstract == AbstractStep {
		words = append(words, "scope")
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}
