// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write syscalls.txt, or the tables of docs/refusals.md")

// TestTable compares the table with golang.org/x/sys in the version of go.mod.
func TestTable(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs go: " + err.Error())
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	require.NoError(t, err)
	define := regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)$`)
	rows := map[string][]string{}
	// Calls of the others have a row without numbers: profiles for all machines name them.
	architectures := []string{"amd64", "386", "arm64", "arm", "loong64", "mips64", "mips", "ppc", "ppc64le", "riscv64", "s390x", "sparc64"}
	const columns = 4
	for i, arch := range architectures {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
		require.NoError(t, err)
		for _, m := range define.FindAllStringSubmatch(string(text), -1) {
			name := strings.ToLower(m[1])
			if name == "syscall_mask" { // of ARM's header, and no call
				continue
			}
			if rows[name] == nil {
				rows[name] = slices.Repeat([]string{"-"}, columns)
			}
			if i < columns {
				rows[name][i] = m[2]
			}
		}
	}
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&want, "%s %s\n", name, strings.Join(rows[name], " "))
	}
	if *update {
		require.NoError(t, os.WriteFile("syscalls.txt", []byte(want.String()), 0o644))
		return
	}
	assert.Equal(t, want.String(), table, "run: go test ./gojail/seccomp -run TestTable -update")
	assert.Greater(t, len(rows), 400)
}

// TestPrivateCalls: ARM has calls with numbers far from the others. Those between them are unknown, and not refused.
func TestPrivateCalls(t *testing.T) {
	p := newProfile()
	p.Syscalls = []specs.LinuxSyscall{
		{Names: []string{"read", "cacheflush", "set_tls", "cachestat"}, Action: specs.ActAllow},
		{Names: []string{"usr26"}, Action: specs.ActKillProcess},
	}
	p.Architectures = []specs.Arch{specs.ArchX86_64, specs.ArchAARCH64, specs.ArchARM}
	program := compileFor(t, "arm64", p)
	compileFor(t, "amd64", p) // the names are no mistake there
	const nosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	for number, want := range map[uint32]uint32{
		findNumber(t, "arm64", 1, "read"): allow, findNumber(t, "arm64", 1, "write"): eperm,
		findNumber(t, "arm64", 1, "cachestat"): allow, findNumber(t, "arm64", 1, "cachestat") + 1: nosys,
		0xf0000: nosys, 0xf0001: nosys, 0xf0002: allow, 0xf0003: unix.SECCOMP_RET_KILL_PROCESS, 0xf0004: nosys, 0xf0005: allow, 0xf0006: nosys,
		0xffffffff: nosys,
	} {
		assert.Equal(t, want, runProgram(t, program, unix.AUDIT_ARCH_ARM, number), "%#x", number)
	}
	for number, want := range map[uint32]uint32{findNumber(t, "arm64", 0, "read"): allow, 0xf0002: nosys, 0xf0005: nosys} {
		assert.Equal(t, want, runProgram(t, program, unix.AUDIT_ARCH_AARCH64, number), "%#x", number)
	}
	p.Architectures = p.Architectures[:2]
	assert.EqualValues(t, unix.SECCOMP_RET_KILL_PROCESS, runProgram(t, compileFor(t, "arm64", p), unix.AUDIT_ARCH_ARM, 0xf0002), "a profile without ARM")
}
