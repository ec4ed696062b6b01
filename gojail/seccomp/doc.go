// SPDX-License-Identifier: Apache-2.0

// Package seccomp makes the system call filter of a jail: an OCI profile goes in,
// a classic BPF program for seccomp(2) comes out.
//
//	profile, err := seccomp.Default(caps) // or Load(path, caps)
//	program, err := seccomp.Compile(profile)
//
// Whoever installs the program (SECCOMP_SET_MODE_FILTER) needs no_new_privs or
// CAP_SYS_ADMIN, and does it last: the filter refuses mount, setns and unshare.
//
// The default is the one of Docker (github.com/moby/profiles), resolved for this
// kernel and the capabilities that tasks can have. Seen from a job:
//
//   - mount, setns, unshare, bpf, perf_event_open, userfaultfd, io_uring, keyctl and
//     new user namespaces (so: rootless containers inside the jail) fail with EPERM;
//   - clone3 and calls newer than the profile fail with ENOSYS, so that C libraries
//     fall back to what they did before, as runc has it;
//   - process_vm_readv (single-copy MPI) and ptrace of one's own processes work;
//   - the memory policy calls work, other than at Docker, see additions.
//
// It is for amd64, with 32-bit programs if the profile lists them, and for arm64.
// x32 calls fail with ENOSYS; a call by any other convention ends the process.
//
// It is own code and not libseccomp, because that would have to be on each node in a
// release that knows the profile's names (2.5.4 lacks 14 of them), and would keep the
// command from being linked statically. Both are compared call by call in the tests.
//
// One thing differs on purpose: of an argument that the kernel takes as int only those
// 32 bits are compared (of a mode 16, see arguments.txt), for whatever the profile does
// with it. libseccomp compares 64, as seccomp(2) shows them, and takes
// socket(0x100000028, ...) for another family than AF_VSOCK. All comparisons are of
// numbers without a sign; -1 may be written as 0xffffffff or with all 64 bits. A value that
// such an argument cannot have is an error.
//
// Needs Linux 4.14 (SECCOMP_RET_KILL_PROCESS); from 5.11 on the kernel does not even
// run the program for a call that is always allowed. Errors are one line.
package seccomp
