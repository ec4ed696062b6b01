// SPDX-License-Identifier: Apache-2.0

// Package seccomp compiles the system call filter of a jail from an OCI profile to a classic BPF program
// for seccomp(2).
//
//	profile, err := seccomp.Default(caps) // or Containers(caps), Load(path, caps)
//	program, err := seccomp.Compile(profile)
//
// The process that installs the program (SECCOMP_SET_MODE_FILTER) needs no_new_privs or CAP_SYS_ADMIN,
// and must do it last: the filter refuses mount, setns and unshare.
//
// The default profile is Docker's (github.com/moby/profiles), resolved for this kernel and the
// capabilities that tasks can have. For a job this means:
//
//   - mount, setns, bpf, perf_event_open, userfaultfd, io_uring and new namespaces
//     (so: rootless containers inside the jail) fail with EPERM;
//   - clone3, keyctl and calls newer than the profile fail with ENOSYS, so that C libraries
//     fall back to older calls, as in runc;
//   - process_vm_readv (single-copy MPI) and ptrace of one's own processes work;
//   - the memory policy calls work, unlike in Docker, see additions;
//   - calls that concern the caller's own processes only are permitted, see additions;
//   - sockets are those of socketRows, and nothing makes the kernel load a module, see sockets.go.
//
// The package supports amd64, and arm64, with 32-bit programs if the profile lists them. x32 calls fail
// with ENOSYS; a call by any other ABI kills the process.
//
// The package does not use libseccomp, which each node would need in a release that has all of the profile's
// names (2.5.4 lacks 14 of them), and which would prevent static linking of the command. The tests
// compare the two filters call by call.
//
// One difference is intended: only 32 bits are compared of an argument that the kernel takes as int, and
// 16 of a mode (see arguments.txt), whatever the profile does with it. libseccomp compares 64
// bits, as seccomp(2) shows them, and takes socket(0x100000028, ...) for another family than AF_VSOCK.
// All comparisons are unsigned; -1 may be written as 0xffffffff or with all 64 bits. A value that such an
// argument cannot have is an error.
//
// It requires Linux 4.14 (SECCOMP_RET_KILL_PROCESS); from 5.11 on the kernel skips the program for a call
// that is always allowed. Errors are one line.
package seccomp
