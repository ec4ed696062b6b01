// SPDX-License-Identifier: Apache-2.0

package imagefile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

const (
	loopControl = "/dev/loop-control"
	loopMajor   = 7 // the kernel's admin-guide/devices.txt
	loopTries   = 64
)

// loopDevice is a loop device that this process has open.
type loopDevice struct {
	*os.File
	rdev uint64
}

// attachLoop attaches a file, read-only, to a free loop device. The kernel detaches the file when the device
// is neither open nor mounted any more (LO_FLAGS_AUTOCLEAR), also after kill -9.
func attachLoop(file *os.File, path string) (*loopDevice, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w; run: modprobe loop", loopControl, oneline.Cause(err))
	}
	defer control.Close()
	for range loopTries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		loop, err := openLoop(number)
		if err != nil {
			return nil, err
		}
		if err = loop.attachFile(file, path, number); err == nil {
			return loop, nil
		}
		loop.Close()
		// EBUSY: another process got the same number, and has attached its file first.
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no free loop device: other processes attached a file first, %d times", loopTries)
}

// openLoop opens the loop device of that number.
func openLoop(number int) (*loopDevice, error) {
	path := fmt.Sprintf("/dev/loop%d", number)
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the loop device %s: %w", path, oneline.Cause(err))
	}
	var st unix.Stat_t
	err = unix.Fstat(int(file.Fd()), &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFBLK || unix.Major(st.Rdev) != loopMajor) {
		err = errors.New("it is not a loop device")
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot use %s: %w", path, err)
	}
	return &loopDevice{file, st.Rdev}, nil
}

// attachFile attaches a file, with direct I/O if the file system supports it: otherwise the image would be cached
// twice.
func (l *loopDevice) attachFile(file *os.File, path string, number int) error {
	config := unix.LoopConfig{Fd: uint32(file.Fd())}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], path)
	config.Info.Flags = unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	err := unix.IoctlLoopConfigure(int(l.Fd()), &config)
	if err == unix.EINVAL {
		config.Info.Flags &^= unix.LO_FLAGS_DIRECT_IO
		err = unix.IoctlLoopConfigure(int(l.Fd()), &config)
	}
	if err != nil {
		return fmt.Errorf("cannot attach it to %s: LOOP_CONFIGURE (Linux 5.8): %w", l.Name(), err)
	}
	info, err := unix.IoctlLoopGetStatus64(int(l.Fd()))
	if err != nil {
		return fmt.Errorf("cannot read the status of %s: %w", l.Name(), err)
	}
	if int(info.Number) != number {
		return fmt.Errorf("%s is loop device %d", l.Name(), info.Number)
	}
	return nil
}

// checkMount fails if a mount is not of this device. It can be another one, because the kernel looks the source up by
// its name.
func (l *loopDevice) checkMount(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Dev != l.rdev {
		return fmt.Errorf("%s is another device than the one that was attached", l.Name())
	}
	return nil
}
