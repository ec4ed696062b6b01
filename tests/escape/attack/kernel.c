// SPDX-License-Identifier: Apache-2.0
//
// System calls that reach parts of the kernel which a job has no business with.
// Each is made so that it does nothing, and fails in one way if it is let through
// and with EPERM, EACCES or ENOSYS if it is not.

#include "attack.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

static void reached(const char *call, long result)
{
	if (result < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES))
		held_errno(call);
	escaped("%s: %s", call, result < 0 ? strerror(errno) : "done");
}

static void try_bpf(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	reached("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

static void try_perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .exclude_kernel = 1};
	reached("perf_event_open", syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static void try_userfaultfd(void)
{
	enum { USER_MODE_ONLY = 1 }; // userfaultfd(2), Linux 5.11
	reached("userfaultfd", syscall(SYS_userfaultfd, USER_MODE_ONLY));
}

static void try_io_uring(void)
{
	char parameters[120] = "";
	reached("io_uring_setup", syscall(SYS_io_uring_setup, 1, parameters));
}

static void try_add_key(void)
{
	enum { PROCESS_KEYRING = -2 }; // keyctl(2): ends with this process
	reached("add_key", syscall(SYS_add_key, "user", "attack", "x", 1, PROCESS_KEYRING));
}

static void try_keyctl(void)
{
	enum { GET_KEYRING_ID = 0, USER_KEYRING = -4 };
	reached("keyctl", syscall(SYS_keyctl, GET_KEYRING_ID, USER_KEYRING, 0));
}

static void try_kexec(void) { reached("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, ~0UL)); }
static void try_module(void) { reached("init_module", syscall(SYS_init_module, NULL, 0, "")); }
static void try_reboot(void) { reached("reboot", syscall(SYS_reboot, 0, 0, 0, NULL)); }
static void try_swapon(void) { reached("swapon", swapon("/nowhere", 0)); }
static void try_acct(void) { reached("acct", acct("/nowhere")); }
static void try_handle(void) { reached("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0)); }
static void try_fsopen(void) { reached("fsopen", syscall(SYS_fsopen, "tmpfs", 0)); }
static void try_userns(void) { reached("unshare(CLONE_NEWUSER)", unshare(CLONE_NEWUSER)); }
static void try_mountns(void) { reached("unshare(CLONE_NEWNS)", unshare(CLONE_NEWNS)); }
static void try_netns(void) { reached("unshare(CLONE_NEWNET)", unshare(CLONE_NEWNET)); }

// Flags that the kernel does not know: it answers EINVAL before it looks for the family, so any other answer is a
// filter's, and no module is loaded.
enum { UNKNOWN_FLAG = 0x10 };

static void judge_family(const char *call, long result)
{
	if (result < 0 && errno != EINVAL)
		held_errno(call);
	escaped("%s is let through", call);
}

// The kernel takes an int as the family and drops what is above it.
static void try_family(long family, long type)
{
	judge_family("socket", syscall(SYS_socket, family, type | UNKNOWN_FLAG, 0L));
}

static void try_vsock(void) { try_family(AF_VSOCK, SOCK_STREAM); }
static void try_vsock_high(void) { try_family(AF_VSOCK | 1L << 32, SOCK_STREAM); }
static void try_alg(void) { try_family(AF_ALG, SOCK_SEQPACKET); }
static void try_alg_high(void) { try_family(AF_ALG | (long)(~0UL << 32), SOCK_SEQPACKET); }

typedef long making(long family, long type, long protocol);

static long make_socket(long family, long type, long protocol) { return syscall(SYS_socket, family, type, protocol); }

static long make_pair(long family, long type, long protocol)
{
	int pair[2];
	return syscall(SYS_socketpair, family, type, protocol, pair);
}

// is_needed says whether programs of a job need such a socket.
static bool is_needed(int family, int type, int protocol)
{
	switch (family) {
	case AF_UNIX:
		return true;
	case AF_NETLINK:
		return protocol == 0 || protocol == 20; // ROUTE, RDMA
	case AF_INET:
	case AF_INET6:
		return (type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP)) ||
		       (type == SOCK_RAW && protocol) ||
		       (type == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP ||
					       protocol == (family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6)));
	}
	return false;
}

// try_sockets finds the sockets that are let through and not needed, or needed and refused.
static void try_sockets(making *make, int first, int last, int protocols)
{
	for (int family = first; family <= last; family++) {
		for (int type = 0; type < 16; type++) {
			for (int protocol = 0; protocol < protocols; protocol++) {
				for (int high = 0; high < 2; high++) {
					long more = (long)high << 32;
					long result = make(family | more, type | UNKNOWN_FLAG | more, protocol | more);
					bool through = result >= 0 || errno == EINVAL;
					if (through != is_needed(family, type, protocol))
						found("socket %d %d %d%s", family, type, protocol,
						      through ? "" : " refused");
				}
			}
		}
	}
}

static void try_families(void)
{
	try_sockets(make_socket, 0, 300, 2);
	try_sockets(make_socket, -2, -1, 2);
	judge("only needed families");
}

static void try_netlink(void)
{
	try_sockets(make_socket, AF_NETLINK, AF_NETLINK, 300);
	judge("only needed protocols");
}

static void try_inet(void)
{
	try_sockets(make_socket, AF_INET, AF_INET, 300);
	try_sockets(make_socket, AF_INET6, AF_INET6, 300);
	judge("only needed protocols");
}

static void try_pairs(void)
{
	try_sockets(make_pair, 0, 50, 40);
	judge("only needed pairs");
}

// Options and commands for which the kernel loads modules. It looks at the descriptor first.
static void try_loading(void)
{
	static const int options[] = {14, 31, 32, 38}; // TCP_MD5SIG, TCP_ULP, TCP_MD5SIG_EXT, TCP_AO_ADD_KEY
	static const unsigned commands[] = {0x8940, 0x8941, 0x8980, 0x8981, 0x8982, 0x8983, 0x89a0, 0x89a1, 0x5423};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		syscall(SYS_setsockopt, -1L, 1L << 32 | IPPROTO_TCP, 1L << 32 | options[i], NULL, 0L);
		if (errno == EBADF)
			found("option %d of TCP", options[i]);
	}
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		syscall(SYS_ioctl, -1L, 1L << 32 | commands[i], 0L);
		if (errno == EBADF)
			found("ioctl %#x", commands[i]);
	}
	judge("each is refused");
}

static void try_clone_high(void)
{
	// With CLONE_FS it is an error in any case, and makes no process.
	reached("clone(CLONE_NEWUSER)", syscall(SYS_clone, 1L << 32 | CLONE_NEWUSER | CLONE_FS, NULL, NULL, NULL, 0L));
}

static void try_personality_high(void)
{
	long before = syscall(SYS_personality, 0xffffffffL);
	reached("personality(READ_IMPLIES_EXEC)", syscall(SYS_personality, 1L << 32 | READ_IMPLIES_EXEC | before));
}

// What x86 alone has: ports, and other conventions of calls, int $0x80, whose call numbers are those of i386, and the
// numbers of x32.
#ifdef __x86_64__
static void try_iopl(void) { reached("iopl", syscall(SYS_iopl, 1)); }

// A kernel without IA32_EMULATION ends a process that calls it so.
static void no_i386(int signal)
{
	(void)signal;
	errno = ENOSYS;
	held_errno("int $0x80");
}

static long call_i386(long number, long one, long two, long three)
{
	long result;
	signal(SIGSEGV, no_i386);
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(one), "c"(two), "d"(three)
			 : "memory", "r8", "r9", "r10", "r11");
	if ((int)result >= 0)
		return (int)result;
	errno = -(int)result;
	return -1;
}

enum { I386_SOCKETCALL = 102, I386_UNSHARE = 310, I386_SOCKET = 359, X32 = 0x40000000 };
static long make_i386(long family, long type, long protocol) { return call_i386(I386_SOCKET, family, type, protocol); }
static void try_i386_vsock(void)
{
	judge_family("int $0x80: socket", make_i386(AF_VSOCK, SOCK_STREAM | UNKNOWN_FLAG, 0));
}
static void try_i386_alg(void)
{
	judge_family("int $0x80: socket", make_i386(AF_ALG, SOCK_SEQPACKET | UNKNOWN_FLAG, 0));
}
static void try_i386_sockets(void)
{
	try_sockets(make_i386, 0, 50, 40);
	judge("only needed sockets");
}
static void try_i386_socketcall(void) { reached("int $0x80: socketcall", call_i386(I386_SOCKETCALL, 1, 0, 0)); }
static void try_i386_userns(void) { reached("int $0x80: unshare", call_i386(I386_UNSHARE, CLONE_NEWUSER, 0, 0)); }
static void try_x32_vsock(void)
{
	long result = syscall(X32 | SYS_socket, (long)AF_VSOCK, (long)SOCK_STREAM | UNKNOWN_FLAG, 0L);
	judge_family("x32 socket", result);
}
#else
static void no_such_call(void) { errno = ENOSYS, held_errno("another convention"); }
#define try_iopl no_such_call
#define try_i386_vsock no_such_call
#define try_i386_alg no_such_call
#define try_i386_sockets no_such_call
#define try_i386_socketcall no_such_call
#define try_i386_userns no_such_call
#define try_x32_vsock no_such_call
#endif

static void try_dmesg(void)
{
	enum { READ_ALL = 3 }; // syslog(2)
	char text[64];
	reached("syslog", klogctl(READ_ALL, text, sizeof text));
}

static void try_priority(void)
{
	errno = 0;
	int higher = nice(-5);
	reached("nice(-5)", higher == -1 && errno ? -1 : 0);
}

// hostname sets another name; the test looks whether it is the node's, and puts it back.
static void hostname(void)
{
	const char name[] = "gojail-escape";
	if (sethostname(name, sizeof name - 1) < 0)
		held_errno("sethostname");
	escaped("sethostname is done"); // in a UTS namespace of the job's own this says nothing yet
}

const struct attack kernel_attacks[] = {
	{"bpf", try_bpf},
	{"perf_event_open", try_perf},
	{"userfaultfd", try_userfaultfd},
	{"io_uring", try_io_uring},
	{"add_key", try_add_key},
	{"keyctl", try_keyctl},
	{"kexec_load", try_kexec},
	{"init_module", try_module},
	{"reboot", try_reboot},
	{"swapon", try_swapon},
	{"iopl", try_iopl},
	{"acct", try_acct},
	{"open_by_handle_at", try_handle},
	{"fsopen", try_fsopen},
	{"user-namespace", try_userns},
	{"mount-namespace", try_mountns},
	{"net-namespace", try_netns},
	{"socket-vsock", try_vsock},
	{"socket-vsock-high", try_vsock_high},
	{"socket-alg", try_alg},
	{"socket-alg-high", try_alg_high},
	{"socket-families", try_families},
	{"socket-netlink", try_netlink},
	{"socket-inet", try_inet},
	{"socket-pairs", try_pairs},
	{"module-loading", try_loading},
	{"clone-high", try_clone_high},
	{"personality-high", try_personality_high},
	{"i386-vsock", try_i386_vsock},
	{"i386-alg", try_i386_alg},
	{"i386-sockets", try_i386_sockets},
	{"i386-socketcall", try_i386_socketcall},
	{"i386-user-namespace", try_i386_userns},
	{"x32-vsock", try_x32_vsock},
	{"dmesg", try_dmesg},
	{"priority", try_priority},
	{"hostname", hostname},
	{},
};
