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

// additions are calls that Docker ties to a capability but jobs need without it. The kernel's own checks
// suffice: the first calls act on the caller's memory (that of another process requires the rights of ptrace(2)), and
// pidfd_getfd can do nothing that ptrace could not.
var additions = []string{
	"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node", // MPI, NCCL, numactl
	"move_pages", "migrate_pages", // placement of pages: hwloc
	"pidfd_getfd", // memory shared between the ranks of a node: NVSHMEM, UCX
}

// replaced are the calls that Docker's profile permits and this package decides about (socketRows). A 32-bit program could
// open any socket by socketcall, whose arguments are in memory; C libraries use the direct calls, which Linux 4.3 added.
var replaced = []string{"socket", "socketpair", "socketcall"}

// Default returns Docker's profile, with additions, and without what makes the kernel load modules, for tasks with the
// bounding set caps ("CAP_SYS_PTRACE", ...).
func Default(caps []string) (*specs.LinuxSeccomp, error) {
	p, err := moby.GetDefaultProfile(newBoundedSpec(caps))
	if err != nil {
		return nil, fmt.Errorf("the default seccomp profile: %w", err)
	}
	for i, rule := range p.Syscalls {
		p.Syscalls[i].Names = slices.DeleteFunc(rule.Names, func(name string) bool { return slices.Contains(replaced, name) })
	}
	p.Syscalls = slices.Concat(listLoadingRules(), p.Syscalls, listSocketRules(), []specs.LinuxSyscall{
		{Names: []string{"socketcall"}, Action: specs.ActErrno, ErrnoRet: errnoOf(unix.ENOSYS)},
		{Names: additions, Action: specs.ActAllow},
	})
	return p, nil
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

// AllowAll returns a profile that refuses no call, for rules of gojail's own to be put before: those of 32-bit programs are in it, as
// Compile has such a program killed by a profile that does not list it.
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
