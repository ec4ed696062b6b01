// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/quota"
)

// TestTeardownForgetsTheLimit: quota files do not grow with every job.
func TestTeardownForgetsTheLimit(t *testing.T) {
	needImage(t, "ext4 quota")
	nstest.NoLeaks(t)
	var seen []string
	err := nstest.Run(t, "limited", t.TempDir(), &seen)
	needQuota(t, err)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"tmp_size: the file system of /proc has no project quotas",
		"a job has 1024 kB of project 0x80000011",
		"and after its end 0 kB",
	}, seen)
}

func init() { nstest.Actions["limited"] = limitedChild }

func limitedChild(input string) (any, error) {
	dir := strings.Trim(input, `"`)
	s, err := state.OpenState(dir + "/state")
	if err != nil {
		return nil, err
	}
	if err := oneline.Both(os.Mkdir(dir+"/scratch", 0o700), mountImage("ext4 quota", dir)); err != nil {
		return nil, err
	}
	tmp := dir + "/scratch/jobs/17/tmp"
	if err := oneline.Both(os.MkdirAll(tmp, 0o700), quota.Enforced(tmp)); err != nil {
		return nil, err
	}
	scratch, err := os.Open(dir + "/scratch")
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	const project = contract.ProjectOfJobs ^ 17
	const get, set = 0x800007<<8 | 2, 0x800008<<8 | 2 // Q_GETQUOTA and Q_SETQUOTA, PRJQUOTA (linux/quota.h)
	usage := func(command uintptr) (kB uint64, err error) {
		var limit [72]byte // struct if_dqblk
		binary.NativeEndian.PutUint64(limit[0:], 1024)
		binary.NativeEndian.PutUint32(limit[64:], 1) // QIF_BLIMITS
		if _, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, scratch.Fd(), command, project, uintptr(unsafe.Pointer(&limit)), 0, 0); errno != 0 {
			err = errno
		}
		return binary.NativeEndian.Uint64(limit[0:]), err
	}
	_, e1 := usage(set)
	before, e2 := usage(get)
	e3 := oneline.Both(setProject(tmp, project), os.WriteFile(tmp+"/file", make([]byte, 1<<16), 0o600))
	e4 := Teardown(s, dir+"/scratch", "17", time.Now().Add(time.Minute))
	after, e5 := usage(get)
	return []string{
		quota.Enforced("/proc").Error(),
		fmt.Sprintf("a job has %d kB of project %#x", before, project),
		fmt.Sprintf("and after its end %d kB", after),
	}, errors.Join(e1, e2, e3, e4, e5)
}
