// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hangName is argv[0] of the process behind a file system that never answers.
const hangName = "gojail-hang"

// fuseInit is the opcode of the kernel's greeting (linux/fuse.h).
const fuseInit = 26

// Hang mounts a file system that never answers on a directory of the machine. The returned function unmounts
// it, which wakes all processes that wait for it.
func (c *Cluster) Hang(dir string) (stop func(), err error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	ctx, cancel := context.WithCancel(context.Background())
	// The program is no file of the machine: descriptor 3 leads to it.
	server := c.Exec(ctx, Command{Args: []string{"bash", "-c", "exec -a " + hangName + " /proc/self/fd/3 " + dir}})
	server.ExtraFiles = []*os.File{self}
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	stop = func() {
		cancel()
		server.Wait()
		c.Root("umount", "-l", dir)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		stop()
		return nil, fmt.Errorf("cluster: no FUSE file system on %s: %s", dir, line)
	}
	return stop, nil
}

// hang mounts a FUSE file system on dir that answers the kernel's greeting and nothing after it: every
// process that uses it sleeps until the server is killed.
func hang(dir string) {
	fuse, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("hang", dir, "fuse.hang", unix.MS_NOSUID|unix.MS_NODEV,
			fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse))
	}
	if err != nil {
		fmt.Println("hang:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	request := make([]byte, 1<<17)
	for {
		n, err := unix.Read(fuse, request)
		if err != nil {
			os.Exit(0) // unmounted
		}
		if n >= 40 && binary.NativeEndian.Uint32(request[4:]) == fuseInit {
			unix.Write(fuse, formatGreeting(request))
		}
	}
}

// formatGreeting returns the answer to FUSE_INIT, protocol 7.31 (linux/fuse.h).
func formatGreeting(request []byte) []byte {
	out := make([]byte, 16+64)
	binary.NativeEndian.PutUint32(out[0:], uint32(len(out)))
	copy(out[8:16], request[8:16]) // unique
	binary.NativeEndian.PutUint32(out[16:], 7)
	binary.NativeEndian.PutUint32(out[20:], 31)
	binary.NativeEndian.PutUint32(out[36:], 4096) // max_write
	return out
}
