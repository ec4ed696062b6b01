// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	moby "github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMain runs the tests. With GOJAIL_TEST_FILTER it installs that program and executes the command
// that its arguments name.
func TestMain(m *testing.M) {
	text, ok := os.LookupEnv("GOJAIL_TEST_FILTER")
	if !ok {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, executeFiltered(text, os.Args[1:]))
	os.Exit(1)
}

func executeFiltered(filter string, argv []string) error {
	runtime.LockOSThread()
	program, err := hex.DecodeString(filter)
	if err != nil {
		return err
	}
	if len(program) > 0 {
		if err := installFilter(program); err != nil {
			return err
		}
	}
	return unix.Exec(argv[0], argv, nil)
}

// installFilter installs the program for this thread, which cannot remove it.
func installFilter(program []byte) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(program) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	const setModeFilter = 1 // SECCOMP_SET_MODE_FILTER, linux/seccomp.h
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp(2) refuses the program: %w", errno)
	}
	return nil
}

// buildCaller returns the path of a program that makes one system call.
func buildCaller(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "call")
	if out, err := exec.Command("gcc", "-static", "-o", path, "testdata/call.c").CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %s", out)
	}
	return path
}

// makeCall returns the result of a call under a filter, or without one if program is nil: 0 or more, or -errno.
func makeCall(t *testing.T, program []byte, argv ...string) int64 {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", argv...)
	cmd.Env = []string{"GOJAIL_TEST_FILTER=" + hex.EncodeToString(program)}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s", argv, errs.String())
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	require.NoError(t, err)
	return n
}

func compileProfile(t *testing.T, p *specs.LinuxSeccomp, err error) []byte {
	t.Helper()
	require.NoError(t, err)
	program, err := Compile(p)
	require.NoError(t, err)
	return program
}

// TestKernel makes calls under the default filter and without one, where each call that the filter
// refuses must have another result.
func TestKernel(t *testing.T) {
	call := buildCaller(t)
	p, err := Default(nil)
	program := compileProfile(t, p, err)
	differ := 0
	const fine, refused, missing = int64(0), -int64(unix.EPERM), -int64(unix.ENOSYS)
	for _, test := range []struct {
		name string
		args string
		want int64
	}{
		{"getppid", "", fine}, {"getpid", "", fine},
		{"get_mempolicy", "", fine},
		{"move_pages", "", fine},
		{"process_vm_readv", "", fine},
		{"personality", "0xffffffff", fine},
		{"socket", "2 1", fine}, {"socket", "16 3", fine}, // INET, NETLINK
		{"socket", "0xdeadbeef00000002 1", fine},                                 // the kernel takes an int of it
		{"personality", "0x7ffffffff", fine}, {"personality", "0x0040000", fine}, // ADDR_NO_RANDOMIZE
		{"unshare", "0x600", fine}, // CLONE_FS, CLONE_FILES
		{"personality", "0x100400000", refused}, {"unshare", "0x110000000", refused},
		{"clone", "0x110000200", refused}, {"clone", "0x100020200", refused}, // with CLONE_FS, else EINVAL
		{"personality", "0x0400000", refused}, // READ_IMPLIES_EXEC
		{"unshare", "0x10000000", refused},    // CLONE_NEWUSER
		{"unshare", "0x00020000", refused},    // CLONE_NEWNS
		{"mount", "", refused}, {"umount2", "", refused}, {"setns", "-1", refused}, {"pivot_root", "", refused},
		{"bpf", "", refused}, {"userfaultfd", "1", refused}, {"io_uring_setup", "", refused},
		{"keyctl", "", missing}, {"perf_event_open", "", refused},
		{"open_by_handle_at", "", refused}, {"init_module", "", refused}, {"swapoff", "", refused},
		{"clone3", "", missing},
		{"file_getattr", "-1", missing}, // newer than the profile
	} {
		argv := append([]string{call, "64", fmt.Sprint(findNumber(t, runtime.GOARCH, 0, test.name))}, strings.Fields(test.args)...)
		got, free := makeCall(t, program, argv...), makeCall(t, nil, argv...)
		if test.want == fine {
			assert.GreaterOrEqual(t, got, fine, "%s %s", test.name, test.args)
			assert.GreaterOrEqual(t, free, fine, "%s %s", test.name, test.args)
			continue
		}
		assert.Equal(t, test.want, got, "%s %s", test.name, test.args)
		if free != got { // else this kernel or container refuses, too
			differ++
		}
	}
	assert.Greater(t, differ, 10)
	unshared := fmt.Sprint(findNumber(t, runtime.GOARCH, 0, "unshare"))
	assert.Equal(t, fine, makeCall(t, nil, call, "64", unshared, "0x10000000"), "without a filter it works")
}

// TestX32: a call by a number of the x32 ABI is refused.
func TestX32(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: other machines have no x32")
	}
	call := buildCaller(t)
	p, err := Default(nil)
	program := compileProfile(t, p, err)
	for _, name := range []string{"getpid", "socket", "unshare", "mount"} {
		n := fmt.Sprint(findNumber(t, "amd64", 0, name) | x32Bit)
		assert.Equal(t, -int64(unix.ENOSYS), makeCall(t, program, call, "64", n, "40", "1"), name)
	}
}

// callForARM is a 32-bit program for ARM, an elf(5) header, one segment and seven instructions. It makes a call, whose two arguments
// and number follow, and exits with the error.
var callForARM = []uint32{
	0x464c457f, 0x00010101, 0, 0, 0x00280002, 1, 0x00010054, 52, 0, 0x05000000, 0x00200034, 0x00000001, 0,
	1, 0, 0x00010000, 0x00010000, 124, 124, 5, 0x00010000,
	0xe59f0014, 0xe59f1014, 0xe59f7014, 0xef000000, 0xe2600000, 0xe3a07001, 0xef000000,
}

// TestThirtyTwoBitsOfARM: the filter refuses a 32-bit program the same calls, and a profile without its architecture ends it.
func TestThirtyTwoBitsOfARM(t *testing.T) {
	if runtime.GOARCH != "arm64" {
		t.Skip("needs arm64: 32-bit programs for ARM")
	}
	p, err := Default(nil)
	program := compileProfile(t, p, err)
	p.Architectures = []specs.Arch{specs.ArchAARCH64}
	only := compileProfile(t, p, nil)
	for _, c := range []struct {
		name             string
		one, two         uint32
		without, refused syscall.Errno
	}{
		{"unshare", 0x10000000, 0, 0, unix.EPERM},
		{"socket", 40, 0x11, unix.EINVAL, unix.EAFNOSUPPORT}, // with a flag that the kernel does not know
	} {
		path := filepath.Join(t.TempDir(), "call")
		text, err := binary.Append(nil, binary.LittleEndian, slices.Concat(callForARM, []uint32{c.one, c.two, findNumber(t, "arm64", 1, c.name)}))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o755))
		run := func(filter []byte) syscall.WaitStatus {
			cmd := exec.Command("/proc/self/exe", path)
			cmd.Env = []string{"GOJAIL_TEST_FILTER=" + hex.EncodeToString(filter)}
			cmd.Run()
			return cmd.ProcessState.Sys().(syscall.WaitStatus)
		}
		if err := exec.Command(path).Run(); errors.Is(err, syscall.ENOEXEC) {
			t.Skip("needs a kernel and a processor with 32-bit programs")
		}
		assert.Equal(t, int(c.without), run(nil).ExitStatus(), c.name)
		assert.Equal(t, int(c.refused), run(program).ExitStatus(), c.name)
		assert.Equal(t, syscall.SIGSYS, run(only).Signal(), c.name)
	}
}

// TestThirtyTwoBits: the filter refuses a 32-bit program the same calls.
func TestThirtyTwoBits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: 32-bit programs have a filter there only")
	}
	call := buildCaller(t)
	p, err := Default(nil)
	program := compileProfile(t, p, err)
	do := func(program []byte, name string, args ...string) int64 {
		return makeCall(t, program, append([]string{call, "32", fmt.Sprint(findNumber(t, "amd64", 1, name))}, args...)...)
	}
	probe := exec.Command(call, "32", "20")
	if out, err := probe.Output(); err != nil || strings.HasPrefix(string(out), "-") {
		t.Skip("needs the kernel's CONFIG_IA32_EMULATION: 32-bit calls")
	}
	assert.Positive(t, do(program, "getpid"))
	assert.Equal(t, int64(0), do(nil, "unshare", "0x10000000"))
	assert.Equal(t, -int64(unix.EPERM), do(program, "unshare", "0x10000000"))
	assert.Equal(t, -int64(unix.ENOSYS), do(program, "socketcall", "1", "0"))
	assert.Equal(t, -int64(unix.EFAULT), do(nil, "socketcall", "1", "0"))

	all := AllowAll()
	all.Syscalls = []specs.LinuxSyscall{{Names: []string{"unshare"}, Action: specs.ActErrno}}
	program = compileProfile(t, all, nil)
	assert.Positive(t, do(program, "getpid"))
	assert.Equal(t, -int64(unix.EPERM), do(program, "unshare", "0x10000000"), "the rule that is added")

	p.Architectures = []specs.Arch{specs.ArchX86_64}
	only := compileProfile(t, p, nil)
	cmd := exec.Command("/proc/self/exe", call, "32", "20")
	cmd.Env = []string{"GOJAIL_TEST_FILTER=" + hex.EncodeToString(only)}
	var end *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &end, "a profile without 32-bit programs")
	assert.Equal(t, syscall.SIGSYS, end.Sys().(syscall.WaitStatus).Signal())
}

// TestAdditions: Docker's own profile refuses the calls that additions allows.
func TestAdditions(t *testing.T) {
	call := buildCaller(t)
	p, err := moby.GetDefaultProfile(newBoundedSpec(nil))
	program := compileProfile(t, p, err)
	ours, err := Default(nil)
	mine := compileProfile(t, ours, err)
	for _, name := range additions {
		if name == "set_mempolicy_home_node" {
			continue // Linux 5.17
		}
		n := fmt.Sprint(findNumber(t, runtime.GOARCH, 0, name))
		assert.Equal(t, -int64(unix.EPERM), makeCall(t, program, call, "64", n, "-1"), name)
		assert.NotEqual(t, -int64(unix.EPERM), makeCall(t, mine, call, "64", n, "-1"), name)
	}
}
