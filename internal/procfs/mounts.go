// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// ReadMounts reads the mount table of a process by its directory, such as /proc/self (proc_pid_mountinfo(5)). It never
// waits for a server.
func ReadMounts(process string) ([]*mountinfo.Info, error) {
	text, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	if err != nil {
		return nil, err
	}
	return mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
}

// OpenMounts reads the mount table of a process, and opens its root directory with O_PATH, which the caller closes.
func OpenMounts(process string) (mounts []*mountinfo.Info, root int, err error) {
	if mounts, err = ReadMounts(process); err != nil {
		return nil, -1, err
	}
	root, err = unix.Open(filepath.Join(process, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return mounts, root, err
}
