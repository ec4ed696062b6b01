// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

const longTitle = 256 << 20

// titleAreas is struct prctl_mm_map (linux/prctl.h).
type titleAreas struct {
	startCode, endCode, startData, endData, startBrk, brk, startStack uint64
	argStart, argEnd, envStart, envEnd, auxv                          uint64
	auxvSize, exe                                                     uint32
}

func init() {
	nstest.Actions["longTitle"] = func(string) (any, error) {
		area, err := unix.Mmap(-1, 0, longTitle, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile("/proc/self/stat")
		if err != nil {
			return nil, err
		}
		at := make([]uint64, 53) // by the numbers of proc_pid_stat(5)
		for i, field := range strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) {
			fmt.Sscan(field, &at[3+i])
		}
		begin := uint64(uintptr(unsafe.Pointer(&area[0])))
		areas := titleAreas{
			startCode: at[26], endCode: at[27], startData: at[45], endData: at[46], startBrk: at[47], brk: at[47], startStack: at[28],
			argStart: begin, argEnd: begin + longTitle, envStart: at[50], envEnd: at[51], exe: 1<<32 - 1,
		}
		if err := unix.Prctl(unix.PR_SET_MM, unix.PR_SET_MM_MAP, uintptr(unsafe.Pointer(&areas)), unsafe.Sizeof(areas), 0); err != nil {
			return nil, err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		return nil, nil
	}
}

// TestLongTitle: a process, any user's, says where its title is, and that may be
// memory of any size that it does not even have (PR_SET_MM_MAP, prctl(2)).
func TestLongTitle(t *testing.T) {
	nstest.NeedRoot(t)
	dir, err := os.MkdirTemp("", "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	own, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "user"), own, 0o755))
	user := exec.Command(filepath.Join(dir, "user"), "-test.run=^TestChild$")
	user.Env = append(os.Environ(), nstest.Variable+"=longTitle")
	user.Dir = "/"
	user.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	stdin, err := user.StdinPipe()
	require.NoError(t, err)
	stdout, err := user.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, user.Start())
	t.Cleanup(func() { stdin.Close(); user.Wait() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	require.Equal(t, "ready\n", line)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	titles, err := listStepdTitles()
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Empty(t, titles["4000000001"])
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(longTitle/8))
}
