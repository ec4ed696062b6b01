// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/vm"
)

// bootDisk becomes the init of the file system on a disk.
func bootDisk(disk string) error {
	if err := mountEarly(); err != nil {
		return err
	}
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := waitForFile(10*time.Second, disk); err != nil {
		return fmt.Errorf("the disk: %w", err)
	}
	if err := mountAll("/", []mountCall{{disk, newRoot, "ext4", 0, ""}}); err != nil {
		return err
	}
	if err := mountAll(newRoot, []mountCall{
		{"/proc", "proc", "", unix.MS_MOVE, ""},
		{"/sys", "sys", "", unix.MS_MOVE, ""},
		{"/dev", "dev", "", unix.MS_MOVE, ""},
	}); err != nil {
		return err
	}
	if err := enterRoot(newRoot); err != nil {
		return err
	}
	return fmt.Errorf("start init: %w", unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"PATH=" + vm.Path, "TERM=linux"}))
}

// readDisk returns the disk of a vm.Machine: what the kernel's command line says and the kernel does not know is in
// the environment of its init.
func readDisk() string { return os.Getenv(vm.DiskVariable) }
