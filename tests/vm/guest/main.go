// SPDX-License-Identifier: Apache-2.0

// Command guest is pid 1 of the guest (package vm), the only program of its
// initramfs: it loads the modules, assembles the root, runs the command of
// the order, writes the exit status to the share and switches the machine off.
// For a vm.Machine it starts the init of its disk instead.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/vm"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a virtual machine; go run ./tests/vm/ctl starts one")
		os.Exit(2)
	}
	if disk := readDisk(); disk != "" {
		fmt.Println("guest:", bootDisk(disk)) // it does not return without an error
		unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	}
	status, err := runOrder()
	if err != nil {
		fmt.Println("guest:", err) // on the console
	} else if err := leaveStatus(status); err != nil {
		fmt.Println("guest: leave the exit status:", err)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// runOrder sets the machine up and runs the command of the order.
func runOrder() (status int, err error) {
	if err := mountEarly(); err != nil {
		return 0, err
	}
	if err := loadModules("/modules"); err != nil {
		return 0, err
	}
	order, err := makeRoot()
	if err != nil {
		return 0, err
	}
	if err := setUpNetwork(); err != nil {
		return 0, err
	}
	return runCommand(order)
}

// leaveStatus writes the exit status to a file that appears with its content.
func leaveStatus(status int) error {
	file := filepath.Join(vm.Share, vm.StatusFile)
	if err := os.WriteFile(file+".new", []byte(strconv.Itoa(status)), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// waitForFile waits for a file that the kernel creates asynchronously.
func waitForFile(limit time.Duration, path string) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(path)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
