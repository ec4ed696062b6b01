// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

// Lines of drivers with the shortest possible names, so that much of a line fits into the name
// of a process.
var shortLines = []string{
	"XFS (a): Log I/O Error Detected.  Shutting down filesystem",
	"XFS (dm-0): Metadata I/O Error (0x1) detected at xfs_read+0x1/0x2 [xfs] (fs/xfs/xfs.c:296).  Shutting down filesystem.",
	"EXT4-fs (a): Remounting filesystem read-only",
	"nvme nvme0: Removing after probe failure status: -19",
	"critical medium error, dev a, sector 1",
	"I/O error, dev sda, sector 1",
	"md/raid:md0: Cannot continue operation (2/4 failed).",
	"md/raid:md0: Disk failure on sda, disabling device.",
	"[Hardware Error]: event severity: fatal",
	"NVRM: GPU 0000:9b: fallen off the bus",
	"nvidia-nvswitch: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30",
	"NVRM: Xid (1b:00): 79",
	"NVRM: fallen off the bus",
	"NVRM: RmInitAdapter failed!",
	"BTRFS info (device a): forced readonly",
	"md/raid0:md0: Disk failure on a detected, failing array",
}

// linesOfDrivers are the messages of the kernel's drivers about broken hardware.
func linesOfDrivers(t *testing.T) []string {
	lines := slices.Clone(shortLines)
	for _, name := range []string{"kmsg-bad", "xid-bad"} {
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		for _, l := range parseRecords(string(text)) {
			if judged(l.Text) != "" {
				lines = append(lines, l.Text)
			}
		}
	}
	return lines
}

// judged returns the findings of the checks that read the kernel's log for one line; "": none.
func judged(text string) string {
	for _, s := range signs {
		if m := s.line.FindStringSubmatch(text); m != nil && !isUserChosen(text) {
			return s.text
		}
	}
	if gpu, stable, _ := judgeXID(text); gpu != "" {
		return stable
	}
	return ""
}

// Messages that users can cause: NAME is the name of a process, of at most 15 bytes, and FILE
// any text, such as a file name, the options of a mount or its source.
var usersWords = []string{
	"NAME[4711]: segfault at 0 ip 0000000000000000 sp 00007ffc0 error 14 in FILE[400000+1000] likely on CPU 1 (core 1, socket 0)",
	"NAME[4711]: segfault at 0 ip 0 sp 0 error 4 in FILE",
	"NAME[4711] general protection fault ip:0 sp:0 error:0 in FILE[400000+1000]",
	"traps: NAME[4711] trap invalid opcode ip:0 sp:0 error:0 in FILE[400000+1000]",
	"NAME (4711): attempted to duplicate a private mapping with mremap FILE",
	"NAME/4711: FILE",
	"NAME: page allocation failure: order:9, mode:0x1, nodemask=(null),cpuset=FILE,mems_allowed=0",
	"NAME invoked oom-killer: gfp_mask=0x1, order=0, FILE",
	"overlayfs: failed to resolve 'FILE': -2",
	"overlayfs: unrecognized mount option \"FILE\" or missing value",
	"tmpfs: Unknown parameter 'FILE'",
	"FILE: Can't open blockdev",
	"FILE: Can't lookup blockdev",
	"FILEIN=eth0 OUT= MAC=00 SRC=10.0.0.1 DST=10.0.0.2 LEN=84",
	"FILEIN= OUT=lo SRC=0000:0000:0000:0000:0000:0000:0000:0001 DST=0000:0000:0000:0000:0000:0000:0000:0001 LEN=104",
	"FILEIN=eth0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1",
	"FILEIN=eth0 OUT= MACSRC=00:11:22:33:44:55 MACDST=00:11:22:33:44:55 MACPROTO=88cc",
	"FILE,mems_allowed=0",
	"FILE,mems_allowed=0-1,3,oom_memcg=/user.slice,task_memcg=/user.slice,task=NAME,pid=4711,uid=1000",
	"NVRM: API mismatch: the client 'NAME' (pid 4711)\\x0aNVRM: has the version FILE, but this kernel module has\\x0aNVRM: the version 570.86.15.",
	"NVRM: Xid (PCI:0000:1b:00): 43, pid=4711, name=NAME, Ch 00000008",
	"audit: type=1701 audit(1.1:2): comm=\"NAME\" exe=\"FILE\" sig=11",
}

// No user can cause a line that a check takes for a driver's.
func TestUsersWordsAreNoDrivers(t *testing.T) {
	for _, line := range linesOfDrivers(t) {
		assert.NotEmpty(t, judged(line), line)
		for _, words := range usersWords {
			for n := range min(15, len(line)) + 1 {
				for _, file := range []string{line, line[n:], strings.TrimLeft(line[n:], " :(["), `1\x0a` + line, line + `\x0a`} {
					for _, name := range []string{line[:n], `\x0a` + line[:max(0, n-1)]} {
						forged := strings.ReplaceAll(strings.ReplaceAll(words, "NAME", name), "FILE", file)
						for _, l := range parseRecords("4,1,1,-;" + forged + "\n") {
							if got := judged(l.Text); got != "" && got != "XID 43 on GPU 0000:1b:00" { // of the row itself
								t.Fatalf("%q is taken for: %s", forged, got)
							}
						}
					}
				}
			}
		}
	}
}

// A disk whose driver is a user's program can report errors at will.
func TestKernelLogOfAUsersDisk(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Kmsg, "3,1,1,-;critical medium error, dev ublkb0, sector 1 op 0x0:(READ) flags 0x0\n")
	expect(t, once(h, kernelLog, s), check.OK, "")
}

// The kernel logs a program that ends by a fault, with its name and the name of its file.
func TestKernelLogOfAProgramThatLies(t *testing.T) {
	shown, _ := os.ReadFile("/proc/sys/debug/exception-trace")
	if _, err := readKernelLog("/dev/kmsg"); err != nil || strings.TrimSpace(string(shown)) != "1" {
		t.Skip("needs a kernel's log that can be read, and has faults of programs (debug.exception-trace)")
	}
	mark := fmt.Sprint(os.Getpid())
	path := filepath.Join(t.TempDir(), "critical medium error, dev sdb"+mark+", sector 1")
	cc := exec.Command("gcc", "-o", path, "-x", "c", "-")
	cc.Stdin = strings.NewReader("#include <sys/prctl.h>\nint main(void) { prctl(PR_SET_NAME, \"nvme nvme0: x\"); *(volatile int *)8 = 1; }\n")
	out, err := cc.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var line kernelLine
	for end := time.Now().Add(time.Minute); line.Text == "" && time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		require.Error(t, exec.Command(path).Run()) // of few the kernel tells at a time, whoever else's programs fail (printk_ratelimit)
		lines, err := faultLog()
		require.NoError(t, err)
		if i := slices.IndexFunc(lines, func(l kernelLine) bool { return strings.Contains(l.Text, "dev sdb"+mark) }); i >= 0 {
			line = lines[i]
		}
	}
	if line.Text == "" {
		t.Skip("this kernel does not tell of a program's fault")
	}
	assert.Contains(t, line.Text, "nvme nvme0: x[")
	assert.Empty(t, judged(line.Text), line.Text)
	h := testHost(t)
	put(t, h.Roots.Kmsg, "3,1,1,-;"+line.Text+"\n")
	expect(t, once(h, kernelLog, config.DefaultSettings()), check.OK, "")
}

// faultLog reads the log again.
func faultLog() ([]kernelLine, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	records, err := readRecords(fd)
	return joinRecords(records), err
}
