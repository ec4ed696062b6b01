// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

func TestDefaultByCapabilities(t *testing.T) {
	for _, test := range []struct {
		caps []string
		name string
		args []uint64
		want uint32
	}{
		{nil, "mount", nil, eperm},
		{[]string{"CAP_SYS_ADMIN"}, "mount", nil, allow},
		{nil, "clone", []uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_THREAD}, allow},
		{nil, "clone", []uint64{unix.CLONE_NEWPID}, eperm},
		{[]string{"CAP_SYS_ADMIN"}, "clone", []uint64{unix.CLONE_NEWPID}, allow},
		{nil, "clone3", nil, nosys},
		{[]string{"CAP_SYS_ADMIN"}, "clone3", nil, allow},
		{nil, "chroot", nil, eperm},
		{[]string{"CAP_SYS_CHROOT"}, "chroot", nil, allow},
		{nil, "unshare", nil, allow}, // does nothing
		{nil, "unshare", []uint64{unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SYSVSEM}, allow},
		{nil, "unshare", []uint64{unix.CLONE_FS | unix.CLONE_NEWUSER}, eperm},
		{nil, "unshare", []uint64{unix.CLONE_NEWTIME}, eperm},
		{nil, "unshare", []uint64{1 << 20}, eperm}, // flags of later kernels
		{nil, "unshare", []uint64{1<<32 | unix.CLONE_FS}, eperm},
		{[]string{"CAP_SYS_ADMIN"}, "unshare", []uint64{unix.CLONE_NEWNS}, allow},
		{nil, "personality", []uint64{0}, allow},
		{nil, "personality", []uint64{0xffffffff}, allow},
		{nil, "personality", []uint64{0x0060008}, allow}, // setarch linux32 -R --uname-2.6
		{nil, "personality", []uint64{0x0400000}, eperm}, // READ_IMPLIES_EXEC
		{nil, "personality", []uint64{0x0440000}, eperm},
		{nil, "personality", []uint64{0x0006}, eperm}, // PER_BSD
		{nil, "personality", []uint64{0xfffffffe}, eperm},
		{nil, "kcmp", nil, allow},
		{nil, "process_madvise", nil, allow},
		{nil, "fanotify_init", nil, allow},
		{nil, "lsm_get_self_attr", nil, allow},
		{nil, "lsm_list_modules", nil, allow},
		{nil, "lsm_set_self_attr", nil, nosys},
		{nil, "add_key", nil, nosys},
		{nil, "keyctl", nil, nosys},
		{nil, "request_key", nil, nosys},
		{nil, "pidfd_getfd", nil, allow},
		{nil, "mbind", nil, allow},
		{nil, "process_vm_readv", nil, allow}, // Linux 4.8
		{nil, "io_uring_setup", nil, eperm},
		{nil, "userfaultfd", nil, eperm},
	} {
		p, err := Default(test.caps)
		require.NoError(t, err)
		program, err := compile(p, thisMachine())
		require.NoError(t, err)
		got := runProgram(t, program, thisMachine()[0].audit, findNumber(t, runtime.GOARCH, 0, test.name), test.args...)
		assert.Equal(t, test.want, got, "%s %v %v", test.name, test.args, test.caps)
	}
}

// TestContainersPermitNamespacesAlone compares the profile for containers with the default one, call by call.
func TestContainersPermitNamespacesAlone(t *testing.T) {
	usual, err := Default(nil)
	require.NoError(t, err)
	containers, err := Containers(nil)
	require.NoError(t, err)
	for i, a := range thisMachine() {
		before, after := compileFor(t, runtime.GOARCH, usual), compileFor(t, runtime.GOARCH, containers)
		assert.LessOrEqual(t, len(after), len(before))
		numbers, _ := a.listNumbers()
		for name, n := range numbers {
			for _, args := range [][]uint64{nil, {unix.CLONE_NEWUSER}, {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, {unix.AF_PACKET, unix.SOCK_RAW}} {
				want := runProgram(t, before, a.audit, n, args...)
				if slices.Contains(containerCalls, name) {
					want = allow
				}
				require.Equal(t, want, runProgram(t, after, a.audit, n, args...), "%s %v of ABI %d", name, args, i)
			}
		}
	}
}

func TestLoad(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: only root's files are read")
	}
	path := filepath.Join(t.TempDir(), "profile.json")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }

	text, err := json.Marshal(moby.DefaultProfile())
	require.NoError(t, err)
	write(string(text))
	p, err := Load(path, []string{"CAP_SYS_CHROOT"})
	require.NoError(t, err)
	program, err := compile(p, thisMachine())
	require.NoError(t, err)
	for name, want := range map[string]uint32{"chroot": allow, "mount": eperm} {
		assert.Equal(t, want, runProgram(t, program, thisMachine()[0].audit, findNumber(t, runtime.GOARCH, 0, name)), name)
	}

	// Names of calls that other machines have, as in the profile of Podman.
	write(`{"defaultAction":"SCMP_ACT_ALLOW","architectures":["` + string(thisMachine()[0].oci) + `"],
		"syscalls":[{"names":["swapcontext","sysmips","pciconfig_read","vm86","s390_sthyi","rtas","sched_set_affinity"],"action":"SCMP_ACT_ERRNO"}]}`)
	_, err = Load(path, nil)
	require.NoError(t, err)

	// As the runtime-spec has it.
	write(`{"defaultAction":"SCMP_ACT_ALLOW","architectures":["` + string(thisMachine()[0].oci) + `"],
		"syscalls":[{"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":38}]}`)
	p, err = Load(path, nil)
	require.NoError(t, err)
	program, err = compile(p, thisMachine())
	require.NoError(t, err)
	assert.Equal(t, nosys, runProgram(t, program, thisMachine()[0].audit, findNumber(t, runtime.GOARCH, 0, "ptrace")))

	for text, want := range map[string]string{
		`{`:  path + ": not a seccomp profile: unexpected end of JSON input",
		`{}`: path + `: names no system calls; a profile has "defaultAction" and "syscalls"`,
		`{"defaultAction":"SCMP_ACT_ALLOW","sycalls":[]}`: path + `: names no system calls; a profile has "defaultAction" and "syscalls"`,
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["ptrase"],"action":"SCMP_ACT_KILL"}]}`: path +
			`: the profile refuses "ptrase", which is not a system call; is it misspelt?`,
	} {
		write(text)
		_, err = Load(path, nil)
		assert.EqualError(t, err, want)
	}
	require.NoError(t, os.Chmod(path, 0o666))
	_, err = Load(path, nil)
	assert.ErrorContains(t, err, "is writable by others")
}
