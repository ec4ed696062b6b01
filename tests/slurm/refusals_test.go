// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"flag"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/pagetest"
	"github.com/gojail/gojail/tests/harness"
)

var updateRefusals = flag.Bool("update", false, "write the table of docs/refusals.md")

// refusalsPage is the page with what programs print in a jail.
const refusalsPage = "../../docs/refusals.md"

// callOf returns a command that makes a system call, and prints its error.
func callOf(name, call string) string {
	return `perl -e 'my $s = "tmpfs"; syscall(` + call + `) < 0 and print "` + name + `: $!\n"'`
}

// refusedPrograms are commands that alice runs in a jail with the defaults, as the page shows them. The ones of system calls without a program are
// perl's.
var refusedPrograms = []struct{ of, shown, command string }{
	{"unshare", "unshare -r true", ""},
	{"setns", "nsenter -t $$ -u true", ""},
	{"mount", "mount -t tmpfs none /tmp", ""},
	{"fsopen", "fsopen", callOf("fsopen", `430,$s,0`)},
	{"clone3", "Thread.start of Python", `python3 -c 'import threading; t = threading.Thread(target=lambda: print("runs")); t.start(); t.join()'`},
	{"add_key", "add_key", callOf("add_key", `248,$s,$s,$s,1,-3`)},
	{"keyctl", "keyctl", callOf("keyctl", `250,0,-3,0`)},
	{"perf_event_open", "perf_event_open", callOf("perf_event_open", `298,0,0,-1,-1,0`)},
	{"bpf", "bpf", callOf("bpf", `321,0,0,0`)},
	{"io_uring_setup", "io_uring_setup", callOf("io_uring_setup", `425,1,0`)},
	{"userfaultfd", "userfaultfd", callOf("userfaultfd", `323,1`)},
	{"personality", "setarch -L true", ""},
	{"personality", "setarch -R echo runs", ""},
	{"open_by_handle_at", "open_by_handle_at", callOf("open_by_handle_at", `304,-100,0,0`)},
	{"quotactl", "quotactl", callOf("quotactl", `179,0,0,0,0`)},
	{"syslog", "dmesg", ""},
	{"clock_settime", "date -s 2001-01-01", "date -s 2001-01-01 2>&1 >/dev/null"},
	{"sethostname", "hostname NAME", "hostname NAME"},
	{"swapon", "swapon", callOf("swapon", `167,$s,0`)},
	{"reboot", "reboot", callOf("reboot", `169,0,0,0,0`)},
	{"init_module", "init_module", callOf("init_module", `175,0,0,$s`)},
	{"lsm_set_self_attr", "lsm_set_self_attr", callOf("lsm_set_self_attr", `460,0,0,0,0`)},
	{"listns", "listns", callOf("listns", `470,0,0,0,0`)},
	{"_sysctl", "_sysctl", callOf("_sysctl", `156,0`)},
	{"ioctl", "TIOCSETD", `perl -e 'my $s = pack("i", 0); ioctl(STDOUT, 0x5423, $s) or print "TIOCSETD: $!\n"'`},
	{"setsockopt", "TCP_ULP", `python3 -c 'import socket; socket.socket().setsockopt(6, 31, b"tls")' 2>&1 | tail -n1`},
	{"socket", "AF_PACKET", `python3 -c 'import socket; socket.socket(17, 3)' 2>&1 | tail -n1`},
	{"socket", "SCTP", `python3 -c 'import socket; socket.socket(2, 1, 132)' 2>&1 | tail -n1`},
	{"socket", "VSOCK", `python3 -c 'import socket; socket.socket(40, 1)' 2>&1 | tail -n1`},
	{"no_new_privs", "su", "su </dev/null"},
	{"hidepid", "ps shows processes of", "busybox ps -o user | sort -u | grep -v USER"},
	{"devices", "ls /dev/fuse", ""},
	{"nodev", "mknod /tmp/x c 1 3", ""},
	{"masked", "wc -c </proc/keys", ""},
	{"masked", "find /sys/firmware", ""},
	{"read-only", "sysctl -w vm.swappiness=1", "busybox sysctl -w vm.swappiness=1"},
	{"read-only", "echo 3 >/proc/sys/vm/drop_caches", ""},
	{"/run", "ls /run/systemd/private", ""},
}

// runInContainersTest are the programs of the page that tests/containers runs.
var runInContainersTest = []string{"bwrap", "ch-run"}

// TestRefusalsAreSeen runs each of refusedPrograms in a jail, and requires its message on the page; programs of the other tables that nobody runs are marked
// as not run there.
func TestRefusalsAreSeen(t *testing.T) {
	if runtime.GOARCH != "amd64" || harness.Release() != "" {
		t.Skip("needs the machine's own release of Slurm, and amd64: the page has its numbers and messages")
	}
	busybox, err := os.ReadFile("/usr/bin/busybox")
	require.NoError(t, err, "make deps installs it")
	c := harness.Start(t, jailed)
	require.NoError(t, os.WriteFile(c.Path("/srv/jails/debian/usr/bin/busybox"), busybox, 0o755))
	var script strings.Builder
	const mark = "=== "
	for _, p := range refusedPrograms {
		command := p.command
		if command == "" {
			command = p.shown
		}
		script.WriteString("echo '" + mark + "'\n(" + command + ") 2>&1 </dev/null\n")
	}
	r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "sh", "-c", script.String())
	parts := strings.Split(r.Stdout, mark+"\n")
	require.Len(t, parts, len(refusedPrograms)+1, r)
	var rows [][]string
	for i, p := range refusedPrograms {
		rows = append(rows, []string{p.of, "`" + p.shown + "`", strings.ReplaceAll(strings.TrimSpace(parts[i+1]), "\n", "; ")})
	}
	table := pagetest.FormatTable([]string{"row", "what was run", "what it prints"}, rows)
	pagetest.CheckPart(t, refusalsPage, "run", table, *updateRefusals)
	requireMarked(t)
}

// requireMarked requires that each program that a cell of the page names is run by a test, or said to be not run.
func requireMarked(t *testing.T) {
	t.Helper()
	run := slices.Clone(runInContainersTest)
	for _, p := range refusedPrograms {
		run = append(run, strings.Fields(p.shown)[0])
	}
	page, err := os.ReadFile(refusalsPage)
	require.NoError(t, err)
	code := regexp.MustCompile("`([^` ]+)[^`]*`")
	for _, part := range []string{"calls", "view"} {
		_, text, _ := strings.Cut(string(page), "<!-- generated: "+part+" -->")
		text, _, _ = strings.Cut(text, "<!-- end: ")
		for line := range strings.Lines(strings.TrimSpace(text)) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			for claim := range strings.SplitSeq(cell, "; ") {
				for _, m := range code.FindAllStringSubmatch(claim, -1) {
					assert.True(t, strings.Contains(claim, "not run") || slices.Contains(run, m[1]) || strings.ContainsRune("/-", rune(m[1][0])), "%s of %q: run it, or say that it was not run", m[1], claim)
				}
			}
		}
	}
}
