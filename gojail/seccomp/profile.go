// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	moby "github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/trusted"
)

// additions are calls that Docker ties to a capability but that jobs need without it. The kernel's own checks suffice.
// The first calls act on the caller's memory; for that of another process, the kernel requires the rights of ptrace(2).
// The calls for other processes allow nothing that ptrace would not. The rest reveal no more than /proc and inotify(7).
var additions = []string{
	"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node", // MPI, NCCL, numactl
	"move_pages", "migrate_pages", // placement of pages: hwloc
	"pidfd_getfd",             // memory shared between the ranks of a node: NVSHMEM, UCX
	"kcmp", "process_madvise", // buffers of the GPU's user-space driver; memory of one's own processes
	"fanotify_init",                         // without CAP_SYS_ADMIN what inotify does
	"lsm_get_self_attr", "lsm_list_modules", // libapparmor, libselinux
}

// replaced are the calls that Docker's profile permits and for which this package has rules of its own: sockets
// (socketRows) and personalities. A 32-bit program could open any socket by socketcall, whose arguments are in memory;
// C libraries use the direct calls, which Linux 4.3 added.
var replaced = []string{"socket", "socketpair", "socketcall", "personality"}

// absent are the calls that fail as in a kernel without them, because programs then work without them: keyrings, which
// the jobs of a user share, and whose request_key starts a program of the node as root; and the setting of LSM
// attributes, which /proc offers, too.
var absent = []string{"socketcall", "add_key", "keyctl", "request_key", "lsm_set_self_attr"}

// ownFlags are the flags of unshare(2) that concern the caller alone: threads with a working directory or descriptors
// of their own.
const ownFlags = unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SYSVSEM

// ownPersonalities are the flags that change how the kernel treats the caller alone: 32-bit names of machine
// (PER_LINUX32) and version (UNAME26), and no random addresses, for debuggers and sanitizers (ADDR_NO_RANDOMIZE). The
// other flags are poorly tested.
const ownPersonalities = 0x0008 | 0x0020000 | 0x0040000

// Default returns Docker's profile with additions, and without calls that make the kernel load modules, for tasks with
// the bounding set caps ("CAP_SYS_PTRACE", ...).
func Default(caps []string) (*specs.LinuxSeccomp, error) {
	p, err := moby.GetDefaultProfile(newBoundedSpec(caps))
	if err != nil {
		return nil, fmt.Errorf("the default seccomp profile: %w", err)
	}
	for i, rule := range p.Syscalls {
		p.Syscalls[i].Names = slices.DeleteFunc(rule.Names,
			func(name string) bool { return slices.Contains(replaced, name) })
	}
	p.Syscalls = slices.Concat(listLoadingRules(), p.Syscalls, listSocketRules(), []specs.LinuxSyscall{
		{Names: additions, Action: specs.ActAllow},
		{Names: []string{"unshare"}, Action: specs.ActAllow, Args: isAmong(ownFlags, 8)},
		{Names: []string{"personality"}, Action: specs.ActAllow, Args: isAmong(ownPersonalities, 4)},
		{Names: []string{"personality"}, Action: specs.ActAllow, // returns the current one
			Args: []specs.LinuxSeccompArg{{Op: specs.OpEqualTo, Value: 0xffffffff}}},
		{Names: absent, Action: specs.ActErrno, ErrnoRet: errnoOf(unix.ENOSYS)},
	})
	return p, nil
}

// containerCalls are the calls by which programs make user namespaces and mount in them.
var containerCalls = []string{"clone", "unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot",
	"sethostname", "setdomainname",
	"open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"}

// Containers returns the default profile with the calls that containers in the jail need: bubblewrap, Podman,
// Apptainer, enroot, Charliecloud. Root of a user namespace reaches far more of the kernel than a user does. Most
// faults were in the parts that stay refused: netlink NETFILTER and packet sockets, bpf, io_uring.
func Containers(caps []string) (*specs.LinuxSeccomp, error) {
	p, err := Default(caps)
	if err == nil {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: containerCalls, Action: specs.ActAllow})
	}
	return p, err
}

// isAmong returns the condition that the first argument, of so many bytes, has no other bits than flags.
func isAmong(flags uint64, bytes int) []specs.LinuxSeccompArg {
	return []specs.LinuxSeccompArg{{Op: specs.OpMaskedEqual, Value: ^flags & (^uint64(0) >> (64 - 8*bytes))}}
}

// Load reads a profile as Docker, Podman and the OCI runtime specification define it, for tasks with the
// bounding set caps. Only root may be able to write the file.
func Load(path string, caps []string) (*specs.LinuxSeccomp, error) {
	text, _, err := trusted.ReadFile(path, "the seccomp profile")
	if err != nil {
		return nil, err
	}
	p, err := moby.LoadProfile(string(text), newBoundedSpec(caps))
	if err != nil {
		return nil, fmt.Errorf("%s: not a seccomp profile: %s", path, formatCause(err))
	}
	if p == nil || len(p.Syscalls) == 0 {
		return nil, fmt.Errorf("%s: names no system calls; a profile has \"defaultAction\" and \"syscalls\"", path)
	}
	if _, err := Compile(p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// AllowAll returns a profile that refuses no call. The caller puts gojail's own rules before it. It lists the
// architecture of 32-bit programs, because a filter kills programs of an architecture that its profile does not list.
func AllowAll() *specs.LinuxSeccomp {
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
	for _, a := range thisMachine() {
		p.Architectures = append(p.Architectures, a.oci)
	}
	return p
}

// newBoundedSpec returns a spec with everything that the profile's conditions test, besides architecture and
// kernel.
func newBoundedSpec(caps []string) *specs.Spec {
	return &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: caps}}}
}

func formatCause(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
