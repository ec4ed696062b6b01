// SPDX-License-Identifier: Apache-2.0

package escape_test

// row is one attack. It must escape in its control and be held in "closed".
type row struct {
	name    string
	control place  // where it is seen succeeding
	root    string // why a job of root's, who is root of the node, may do it in "closed"
	limit   string // why it is not held in "closed" at all: a documented limit
}

// The attacks of the program, in its own order.
var rows = []row{
	{name: "view", control: onNode},
	{name: "proc-root", control: openUser},
	{name: "descriptors", control: bareChroot},
	{name: "chroot-up", control: bareChroot},
	{name: "setns", control: openRoot},
	{name: "handle", control: openRoot},

	{name: "beneath", control: overmounted},
	{name: "pivot", control: rootOnNode},
	{name: "unmask", control: openRoot},
	{name: "fresh-mounts", control: openRoot},
	{name: "mknod", control: openRoot},
	{name: "sysctl", control: rootOnNode},
	{name: "masked", control: rootOnNode},
	{name: "kernel-files", control: rootOnNode, root: "CAP_DAC_OVERRIDE opens files without a function to write; see sysctl for the others"},
	{name: "cgroup-write", control: rootOnNode},

	{name: "bpf", control: openRoot},
	{name: "perf_event_open", control: openRoot}, // a node may refuse it to users: kernel.perf_event_paranoid,
	{name: "userfaultfd", control: openUser},
	{name: "io_uring", control: openUser},
	{name: "add_key", control: openUser},
	{name: "keyctl", control: openUser},
	{name: "kexec_load", control: openRoot},
	{name: "init_module", control: openRoot},
	{name: "reboot", control: openRoot},
	{name: "swapon", control: openRoot},
	{name: "iopl", control: openRoot},
	{name: "acct", control: openRoot},
	{name: "open_by_handle_at", control: openRoot},
	{name: "fsopen", control: openRoot},
	{name: "user-namespace", control: openUser},
	{name: "mount-namespace", control: openRoot},
	{name: "net-namespace", control: openRoot},
	{name: "socket-vsock", control: openUser},
	{name: "socket-vsock-high", control: openUser},
	{name: "socket-alg", control: openUser},
	{name: "socket-alg-high", control: openUser},
	{name: "socket-families", control: openUser},
	{name: "socket-netlink", control: openUser},
	{name: "socket-inet", control: openUser},
	{name: "socket-pairs", control: openUser},
	{name: "module-loading", control: openUser},
	{name: "clone-high", control: openUser},
	{name: "personality-high", control: openUser},
	{name: "i386-vsock", control: openUser},
	{name: "i386-alg", control: openUser},
	{name: "i386-sockets", control: openUser},
	{name: "i386-socketcall", control: openUser},
	{name: "i386-user-namespace", control: openUser},
	{name: "x32-vsock", control: openUser},
	{name: "dmesg", control: openRoot},
	{name: "priority", control: openRoot},
	{name: "hostname", control: openRoot},

	{name: "see", control: openUser},
	{name: "environ", control: openUser},
	{name: "signal", control: openUser},
	{name: "memory", control: openUser},
	{name: "ptrace", control: openUser},
	{name: "pidfd_getfd", control: openUser},

	{name: "sysv-shm", control: openUser},
	{name: "sysv-sem", control: openUser},
	{name: "sysv-msg", control: openUser},
	{name: "posix-mq", control: openUser},
	{name: "posix-shm", control: onNode},
	{name: "tmp", control: onNode},
	{name: "abstract-socket", control: openUser, limit: "abstract sockets belong to the network namespace, which is the node's without --jail-net: abstract_sockets = \"step\" is the switch"},
	{name: "keyring", control: openUser},
	{name: "terminal", control: onNode},
}
