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

// additions are calls that Docker ties to a capability and jobs need without it. The
// kernel's own checks are enough: the first act on the caller's memory (that of others
// needs ptrace's rights), and pidfd_getfd can do nothing that ptrace could not.
var additions = []string{
	"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node", // MPI, NCCL, numactl
	"move_pages", "migrate_pages", // where a page lies: hwloc
	"pidfd_getfd", // memory shared between the ranks of a node: NVSHMEM, UCX
}

// Default is Docker's profile, with additions, for tasks whose bounding set is caps
// ("CAP_SYS_PTRACE", ...).
func Default(caps []string) (*specs.LinuxSeccomp, error) {
	p, err := moby.GetDefaultProfile(bounded(caps))
	if err != nil {
		return nil, fmt.Errorf("the default seccomp profile: %w", err)
	}
	for i, rule := range p.Syscalls {
		// Through it a 32-bit program would have the sockets that the profile refuses
		// by family. All libraries have used the calls themselves since Linux 4.3.
		p.Syscalls[i].Names = slices.DeleteFunc(rule.Names, func(name string) bool { return name == "socketcall" })
	}
	nosys := uint(unix.ENOSYS)
	p.Syscalls = append(p.Syscalls,
		specs.LinuxSyscall{Names: []string{"socketcall"}, Action: specs.ActErrno, ErrnoRet: &nosys},
		specs.LinuxSyscall{Names: additions, Action: specs.ActAllow})
	return p, nil
}

// Load reads a profile as Docker, Podman and the runtime-spec write it, for tasks whose
// bounding set is caps. Only root can have written the file.
func Load(path string, caps []string) (*specs.LinuxSeccomp, error) {
	text, _, err := trusted.ReadFile(path, "the seccomp profile")
	if err != nil {
		return nil, err
	}
	p, err := moby.LoadProfile(string(text), bounded(caps))
	if err != nil {
		return nil, fmt.Errorf("%s: not a seccomp profile: %s", path, oneLine(err))
	}
	if p == nil || len(p.Syscalls) == 0 {
		return nil, fmt.Errorf("%s: names no system calls; a profile has \"defaultAction\" and \"syscalls\"", path)
	}
	if _, err := Compile(p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// bounded is all that the profile's conditions look at, beside architecture and kernel.
func bounded(caps []string) *specs.Spec {
	return &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: caps}}}
}

func oneLine(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
