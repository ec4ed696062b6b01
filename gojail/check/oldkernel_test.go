// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/mount/mounttest"
	"github.com/gojail/gojail/internal/nstest"
)

// oldKernelInput names the system calls that the kernel is to lack, as an older
// one does, and what is tried then.
type oldKernelInput struct {
	Lacks []uint32
	Node  Node
	Root  string
}

type oldKernelResult struct{ Apply, Local, Find, Check string }

func init() {
	nstest.Actions["old kernel"] = func(input string) (any, error) {
		var in oldKernelInput
		if err := json.Unmarshal([]byte(input), &in); err != nil {
			return nil, err
		}
		if err := refuseCalls(in.Lacks); err != nil {
			return nil, err
		}
		var out oldKernelResult
		Check(in.Node, func(f Finding) {
			if f.Level != OK && f.Subject != "latency" && f.Subject != "slurmd" {
				out.Check += f.String() + "\n"
			}
		})
		c, j := &config.Config{Scratch: in.Root + "/scratch"}, &config.Jail{Name: "small", Root: in.Root, Local: []string{"/data"}}
		root, err := unix.Open(in.Root, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer unix.Close(root)
		out.Local = errorText(mount.MakeLocal(c, j, root))
		_, err = mount.MissingTargets(c, j, mounttest.SmallView(in.Root), root)
		out.Find = errorText(err)
		out.Apply = errorText(attachAndApply(j, in.Root))
		return out, nil
	}
}

// attachAndApply does what the verbs root and jail of the library do.
func attachAndApply(j *config.Jail, path string) error {
	root, err := mount.AttachRoot(j)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return mount.Apply(mounttest.SmallView(path), j.Name, root)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// refuseCalls makes system calls fail with ENOSYS in all threads (seccomp(2), classic BPF).
func refuseCalls(calls []uint32) error {
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // seccomp_data.nr
	for _, nr := range calls {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	return nil
}

func TestOldKernelIsNamed(t *testing.T) {
	n := newGoodNode(t)
	for name, test := range map[string]struct {
		lacks []uint32
		want  oldKernelResult
	}{
		"5.11": {[]uint32{unix.SYS_MOUNT_SETATTR}, oldKernelResult{
			Apply: "mount_setattr on / (rprivate): function not implemented: Linux 5.12 or later is required",
			Check: "mount_setattr: function not implemented; no jail can be assembled"}},
		"5.5": {[]uint32{unix.SYS_MOUNT_SETATTR, unix.SYS_OPENAT2}, oldKernelResult{
			Apply: "mount_setattr on / (rprivate): function not implemented: Linux 5.12 or later is required",
			Local: "local directory /data cannot be reached in ROOT: function not implemented: Linux 5.12 or later is required",
			Find:  "mount target /proc in ROOT cannot be reached: function not implemented: Linux 5.12 or later is required",
			Check: "mount_setattr: function not implemented; no jail can be assembled"}},
		"no openat2": {[]uint32{unix.SYS_OPENAT2}, oldKernelResult{
			Apply: "cannot open jail root ROOT: function not implemented: Linux 5.12 or later is required",
			Local: "local directory /data cannot be reached in ROOT: function not implemented: Linux 5.12 or later is required",
			Find:  "mount target /proc in ROOT cannot be reached: function not implemented: Linux 5.12 or later is required",
			Check: "openat2: function not implemented; no jail can be assembled"}},
		"5.1": {[]uint32{unix.SYS_MOUNT_SETATTR, unix.SYS_OPENAT2, unix.SYS_OPEN_TREE}, oldKernelResult{
			Apply: "mount_setattr on / (rprivate): function not implemented: Linux 5.12 or later is required",
			Local: "Linux 5.12 or later is required",
			Find:  "Linux 5.12 or later is required",
			Check: "open_tree: function not implemented; no jail can be assembled"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := mounttest.SmallTree(t)
			var out oldKernelResult
			require.NoError(t, nstest.Run(t, "old kernel", oldKernelInput{test.lacks, Node{Config: n.Config, State: n.State, Name: n.Name, LibDir: n.LibDir}, root}, &out))
			assert.Contains(t, out.Check, test.want.Check)
			assert.Regexp(t, `^FAIL  kernel: .*gojail requires Linux 5\.12 or later.*\n$`, out.Check, "one line")
			assert.Contains(t, strings.ReplaceAll(out.Apply, root, "ROOT"), test.want.Apply)
			assert.Contains(t, strings.ReplaceAll(out.Local, root, "ROOT"), test.want.Local)
			assert.Contains(t, strings.ReplaceAll(out.Find, root, "ROOT"), test.want.Find)
		})
	}
}

// TestOldKernelLacksAFeature configures what only newer kernels have.
func TestOldKernelLacksAFeature(t *testing.T) {
	for name, test := range map[string]struct {
		lacks      uint32
		more, want string
	}{
		"Linux 5.13, or no quotas": {unix.SYS_QUOTACTL_FD, "tmp = \"disk\"\ntmp_size = \"1G\"\n",
			`FAIL  jail a: tmp_size: this node's kernel has no quotas of directories: quotactl_fd: function not implemented; boot Linux 5.14 or newer with quotas, or write tmp = "tmpfs"`},
		"no Landlock": {unix.SYS_LANDLOCK_CREATE_RULESET, "abstract_sockets = \"step\"\n",
			`FAIL  jail a: this node's kernel cannot restrict abstract sockets: function not implemented; boot Linux 6.12 or newer with landlock among lsm=, or write abstract_sockets = "node"`},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			n.configure(t, test.more)
			var out oldKernelResult
			in := oldKernelInput{[]uint32{test.lacks}, Node{Config: n.Config, State: n.State, Name: n.Name, LibDir: n.LibDir}, mounttest.SmallTree(t)}
			require.NoError(t, nstest.Run(t, "old kernel", in, &out))
			assert.Contains(t, strings.Split(out.Check, "\n"), test.want)
		})
	}
}
