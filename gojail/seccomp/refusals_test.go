// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/pagetest"
)

// refusal is a row of docs/refusals.md: calls that the default profile refuses with one error.
type refusal struct {
	seen  string // programs, and what they print or do
	calls []string
	args  []uint64 // with which a call is refused that others permit
	with  string   // their names
	why   string
	do    string // by the user or the site; empty for nothing
}

const ownProfile = "a profile of the site's own"

// refusals decide about each system call that the default profile refuses.
var refusals = []refusal{
	{seen: "`unshare`: unshare failed; `bwrap`: No permissions to create new namespace; Podman: cannot clone; enroot, `ch-run`; " +
		"Apptainer; Chromium: No usable sandbox! (not run)",
		calls: []string{"clone", "unshare"}, args: []uint64{unix.CLONE_NEWUSER}, with: "CLONE_NEW*",
		why: "root of a user namespace reaches much more of the kernel",
		do:  "`seccomp = \"containers\"` ([containers](containers.md)); `chromium --no-sandbox`"},
	{seen: "`nsenter`: reassociate to namespaces failed", calls: []string{"setns"}, why: "the same", do: "the same"},
	{seen: "`mount`; `fusermount3` (not run)", calls: []string{"mount", "umount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig",
		"fsmount", "fspick", "mount_setattr"},
		why: "the kernel refuses them to users; some load modules before", do: "the same"},
	{seen: "nothing: C libraries and Go make threads by clone then", calls: []string{"clone3"}, why: "its flags are in memory, which a filter does not see"},
	{seen: "`keyctl`: Function not implemented; `kinit`, `klist` with KEYRING caches (not run)", calls: []string{"add_key", "keyctl", "request_key"},
		why: "keyrings join the jobs of a user; request_key starts a program of the node as root",
		do:  "`export KRB5CCNAME=FILE:/tmp/krb5cc`, or `default_ccache_name` in the jail's krb5.conf; " + ownProfile},
	{seen: "`perf`, PAPI, LIKWID (not run)", calls: []string{"perf_event_open"}, why: "many faults of the kernel; counts what other jobs do", do: ownProfile},
	{seen: "libbpf, `bpftrace` (not run)", calls: []string{"bpf"}, why: "many faults of the kernel"},
	{seen: "`fio --ioengine=io_uring`, libuv and Node.js, which do without (not run)", calls: []string{"io_uring_setup", "io_uring_enter", "io_uring_register"},
		why: "many faults of the kernel; a filter does not see what it does", do: ownProfile},
	{seen: "CRIU, QEMU after a migration (not run)", calls: []string{"userfaultfd"}, why: "helps to exploit other faults", do: ownProfile},
	{seen: "`setarch` with other options than `-R`", calls: []string{"personality"}, args: []uint64{0x0400000}, with: "other flags than ADDR_NO_RANDOMIZE, PER_LINUX32, UNAME26",
		why: "poorly tested", do: ownProfile},
	{seen: "servers of files in user space (not run)", calls: []string{"open_by_handle_at"}, why: "opens files below closed directories; requires CAP_DAC_READ_SEARCH"},
	{seen: "`quota` on local disks (not run)", calls: []string{"quotactl", "quotactl_fd"}, why: "loads modules", do: "ask outside of the job"},
	{seen: "`dmesg`: read kernel buffer failed", calls: []string{"syslog"}, why: "tells of the whole node", do: "ask your administrator"},
	{seen: "`date -s`, `hostname NAME`, `swapon`, `reboot`: as without a jail; `modprobe` (not run)",
		calls: []string{"acct", "clock_settime", "clock_settime64", "delete_module", "finit_module", "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load",
			"reboot", "setdomainname", "sethostname", "settimeofday", "stime", "swapoff", "swapon", "vhangup"},
		why: "the kernel refuses them to users"},
	{seen: "nothing: libapparmor uses /proc (not run)", calls: []string{"lsm_set_self_attr"}, why: "the same as writing /proc/self/attr"},
	{seen: "nothing: programs use older calls", calls: []string{"file_getattr", "file_setattr", "listns", "open_tree_attr", "rseq_slice_yield"},
		why: "newer than the profile"},
	{seen: "nothing: C libraries use the direct calls", calls: []string{"socketcall"}, why: "a 32-bit program could open any socket by it"},
	{seen: "programs of the last century", calls: []string{"_sysctl", "afs_syscall", "bdflush", "break", "create_module", "ftime", "get_kernel_syms", "getpmsg",
		"gtty", "idle", "lock", "lookup_dcookie", "mpx", "nfsservctl", "nice", "oldfstat", "oldlstat", "oldolduname", "oldstat", "olduname", "prof", "profil",
		"putpmsg", "query_module", "readdir", "security", "sgetmask", "sigaction", "signal", "sigpending", "sigsuspend", "ssetmask", "stty", "sysfs",
		"tuxcall", "ulimit", "uprobe", "uselib", "ustat", "vm86", "vm86old", "vserver"},
		why: "Linux or C libraries no longer have them"},
	{seen: "terminals and bridges by old commands", calls: []string{"ioctl"}, args: []uint64{0, loadingCommands[0]}, with: "commands that load modules",
		why: "[modules](#kernel-modules)"},
	{seen: "TCP with MD5 or AO, kernel TLS: OpenSSL does it itself (not run)", calls: []string{"setsockopt"}, args: []uint64{0, unix.IPPROTO_TCP, unix.TCP_ULP},
		with: "options that load modules", why: "[modules](#kernel-modules)"},
	{seen: "SCTP, VSOCK, packets; `tcpdump`, `ss`, libusb, monitors of libudev (not run)", calls: []string{"socket", "socketpair"}, args: []uint64{unix.AF_PACKET},
		with: "[other sockets](#sockets)", why: "[sockets](#sockets)", do: ownProfile},
}

// TestRefusalsInTheDocumentation requires that the page has just the calls that the compiled default profile refuses, with its errors.
func TestRefusalsInTheDocumentation(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: the page lists its calls")
	}
	p, err := Default([]string{"CAP_SYS_CHROOT"})
	require.NoError(t, err)
	program := compileFor(t, "amd64", p)
	var rows [][]string
	decided := map[string]bool{}
	for _, r := range refusals {
		var names []string
		errors := map[string]bool{}
		for _, name := range r.calls {
			require.False(t, decided[name], "%s is in two rows", name)
			decided[name] = true
			names = append(names, name)
			for i, a := range machines["amd64"] {
				if numbers, _ := a.listNumbers(); numbers[name] != 0 {
					answer := runProgram(t, program, a.audit, findNumber(t, "amd64", i, name), r.args...)
					require.NotEqual(t, uint32(allow), answer, "%s is permitted", name)
					errors[unix.ErrnoName(unix.Errno(answer&0xffff))] = true
				}
			}
		}
		calls := strings.Join(names, ", ")
		if r.with != "" {
			calls += " with " + r.with
		}
		rows = append(rows, []string{r.seen, calls, strings.Join(slices.Sorted(maps.Keys(errors)), ", "), r.why, r.do})
	}
	for i, a := range machines["amd64"] {
		numbers, _ := a.listNumbers()
		for name, n := range numbers {
			if runProgram(t, program, a.audit, n) != allow {
				assert.True(t, decided[name], "%s of %s: decide about it in refusals", name, machines["amd64"][i].oci)
			}
		}
	}
	table := pagetest.FormatTable([]string{"what a user sees", "calls", "error", "why", "what to do"}, rows)
	pagetest.CheckPart(t, "../../docs/refusals.md", "calls", table, *update)
}

// TestSocketsInTheDocumentation requires the rows of socketRows on the page.
func TestSocketsInTheDocumentation(t *testing.T) {
	var rows [][]string
	for _, row := range socketRows {
		answer := "yes"
		if row.errno != 0 {
			answer = unix.ErrnoName(row.errno)
		}
		rows = append(rows, []string{row.sockets, answer, row.why})
	}
	table := pagetest.FormatTable([]string{"sockets", "permitted", "why"}, rows)
	pagetest.CheckPart(t, "../../docs/refusals.md", "sockets", table, *update)
}
