// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// socketRow is a decision about sockets. It applies if one condition of each list holds, or the list is empty.
type socketRow struct {
	sockets   string // noun phrase for docs/isolation.md
	families  []specs.LinuxSeccompArg
	types     []specs.LinuxSeccompArg
	protocols []specs.LinuxSeccompArg
	errno     unix.Errno // 0 if permitted; else the error of a kernel that is built without them
	why       string
}

// socketRows are the decisions about socket(2) and socketpair(2). The first row that applies decides. Families,
// protocols and types that programs do not need are refused, because the kernel loads a module for a socket of any user
// (__sock_create, inet_create and netlink_create: request_module), or starts modprobe in vain, as root and outside the
// job's cgroups.
var socketRows = []socketRow{
	{sockets: "Unix", families: isFamily(unix.AF_UNIX),
		why: "MPI and PMIx within a node, munge, sssd, X11"},
	{sockets: "ping over IPv4", families: isFamily(unix.AF_INET), types: isType(unix.SOCK_DGRAM),
		protocols: isProtocol(unix.IPPROTO_ICMP),
		why:       "`ping` (net.ipv4.ping_group_range)"},
	{sockets: "ping over IPv6", families: isFamily(unix.AF_INET6), types: isType(unix.SOCK_DGRAM),
		protocols: isProtocol(unix.IPPROTO_ICMPV6),
		why:       "`ping`"},
	{sockets: "TCP", families: inet, types: isType(unix.SOCK_STREAM), protocols: isProtocol(0, unix.IPPROTO_TCP),
		why: "MPI, UCX, libfabric, NCCL, Slurm"},
	{sockets: "UDP", families: inet, types: isType(unix.SOCK_DGRAM), protocols: isProtocol(0, unix.IPPROTO_UDP),
		why: "name services; addresses of RDMA connections"},
	{sockets: "raw IP", families: inet, types: isType(unix.SOCK_RAW),
		protocols: []specs.LinuxSeccompArg{{Index: 2, Op: specs.OpNotEqual, Value: 0}}, // for 0, modprobe starts
		why:       "root's own jobs, by CAP_NET_RAW"},
	{sockets: "other IP", families: inet, errno: unix.EPROTONOSUPPORT,
		why: "SCTP, DCCP, L2TP and SMC are modules. Programs that prefer MPTCP fall back to TCP"},
	{sockets: "netlink ROUTE", families: isFamily(unix.AF_NETLINK), protocols: isProtocol(unix.NETLINK_ROUTE),
		why: "`getaddrinfo`, `if_nameindex`, UCX, `ip`"},
	{sockets: "netlink RDMA", families: isFamily(unix.AF_NETLINK), protocols: isProtocol(unix.NETLINK_RDMA),
		why: "rdma-core: devices, and whether a process may fork. On a node without RDMA the kernel may load ib_core " +
			"for it"},
	{sockets: "other netlink", families: isFamily(unix.AF_NETLINK), errno: unix.EPROTONOSUPPORT,
		why: "CONNECTOR reports the node's processes, KOBJECT_UEVENT its devices. USERSOCK joins jobs. A message to " +
			"SOCK_DIAG or GENERIC loads modules; `ss` falls back to /proc/net. PAM and libaudit tolerate this error " +
			"of AUDIT"},
	{sockets: "every other family", errno: unix.EAFNOSUPPORT,
		why: "modules (CAN, TIPC, RXRPC, KCM, RDS, SMC, Bluetooth, ...), the node's frames (PACKET, XDP), its " +
			"kernel's crypto (ALG), its hypervisor (VSOCK). AF_IB needs no socket"},
}

// inet are the conditions for AF_INET (2) and AF_INET6 (10), which differ in one bit.
var inet = []specs.LinuxSeccompArg{
	{Index: 0, Op: specs.OpMaskedEqual, Value: 0xffffffff &^ (unix.AF_INET ^ unix.AF_INET6), ValueTwo: unix.AF_INET},
}

func isFamily(family uint64) []specs.LinuxSeccompArg {
	return []specs.LinuxSeccompArg{{Index: 0, Op: specs.OpEqualTo, Value: family}}
}

// isType returns the condition for a type of socket, with any flags (SOCK_TYPE_MASK, linux/net.h).
func isType(kind uint64) []specs.LinuxSeccompArg {
	return []specs.LinuxSeccompArg{{Index: 1, Op: specs.OpMaskedEqual, Value: 0xf, ValueTwo: kind}}
}

func isProtocol(protocols ...uint64) (all []specs.LinuxSeccompArg) {
	for _, p := range protocols {
		all = append(all, specs.LinuxSeccompArg{Index: 2, Op: specs.OpEqualTo, Value: p})
	}
	return all
}

// listSocketRules returns the rules of socketRows.
func listSocketRules() (rules []specs.LinuxSyscall) {
	for _, row := range socketRows {
		rule := specs.LinuxSyscall{Names: []string{"socket", "socketpair"}, Action: specs.ActAllow}
		if row.errno != 0 {
			rule.Action, rule.ErrnoRet = specs.ActErrno, errnoOf(row.errno)
		}
		sets := [][]specs.LinuxSeccompArg{nil}
		for _, conditions := range [][]specs.LinuxSeccompArg{row.families, row.types, row.protocols} {
			sets = combine(sets, conditions)
		}
		for _, set := range sets {
			rule.Args = set
			rules = append(rules, rule)
		}
	}
	return rules
}

// combine returns each set with each condition added, or the sets themselves if there is no condition.
func combine(sets [][]specs.LinuxSeccompArg, conditions []specs.LinuxSeccompArg) (all [][]specs.LinuxSeccompArg) {
	if len(conditions) == 0 {
		return sets
	}
	for _, set := range sets {
		for _, c := range conditions {
			all = append(all, append(set[:len(set):len(set)], c))
		}
	}
	return all
}

// loadingOptions are options of TCP sockets for which the kernel loads modules for any user: ciphers by a name that the
// user chooses (tcp_ao_key_alloc), md5, and ciphers of kernel TLS if that is loaded.
var loadingOptions = []uint64{unix.TCP_MD5SIG, unix.TCP_ULP, unix.TCP_MD5SIG_EXT, tcpAOAddKey}

const tcpAOAddKey = 38 // linux/tcp.h

// loadingCommands are the ioctl commands for which the kernel loads modules for any user: bridge and 8021q
// (br_ioctl_call, sock_ioctl), dlci, and line disciplines of terminals (tty_ldisc_get).
var loadingCommands = []uint64{
	unix.SIOCGIFBR, unix.SIOCSIFBR, unix.SIOCBRADDBR, unix.SIOCBRDELBR, unix.SIOCGIFVLAN, unix.SIOCSIFVLAN,
	unix.SIOCADDDLCI, unix.SIOCDELDLCI, // until Linux 5.14
	unix.TIOCSETD,
}

// listLoadingRules returns the rules against loadingOptions and loadingCommands. The errors are those of a
// kernel without the option, and of one whose administrator turned off the loading of line disciplines.
func listLoadingRules() (rules []specs.LinuxSyscall) {
	refuse := func(call string, errno unix.Errno, args ...specs.LinuxSeccompArg) {
		rules = append(rules, specs.LinuxSyscall{
			Names: []string{call}, Action: specs.ActErrno, ErrnoRet: errnoOf(errno), Args: args,
		})
	}
	for _, option := range loadingOptions {
		refuse("setsockopt", unix.ENOPROTOOPT, specs.LinuxSeccompArg{Index: 1, Op: specs.OpEqualTo,
			Value: unix.IPPROTO_TCP},
			specs.LinuxSeccompArg{Index: 2, Op: specs.OpEqualTo, Value: option})
	}
	for _, command := range loadingCommands {
		refuse("ioctl", unix.EPERM, specs.LinuxSeccompArg{Index: 1, Op: specs.OpEqualTo, Value: command})
	}
	return rules
}

func errnoOf(e unix.Errno) *uint {
	value := uint(e)
	return &value
}
