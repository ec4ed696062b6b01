// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/procfs"
)

// readInode returns the inode number of a namespace. Equal numbers do not prove that two namespaces are the same,
// because the kernel reuses the numbers.
func readInode(ns int) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(ns, &st); err != nil {
		return 0, fmt.Errorf("stat the network namespace: descriptor %d: %w", ns, err)
	}
	return st.Ino, nil
}

// openNamespace opens the network namespace with this number, found by a process or a thread in it, or by a descriptor
// or a mount that holds it. It returns -1 if there is none. It first looks at processes, the youngest first, because
// the namespace of a job usually has some: descriptors and threads take many more system calls.
func openNamespace(proc string, number uint64) int {
	name := fmt.Sprintf("net:[%d]", number)
	processes := listPaths(proc)
	slices.Reverse(processes)
	for _, p := range processes {
		if fd := openLink(filepath.Join(p, "ns/net"), name, number); fd >= 0 {
			return fd
		}
	}
	for _, p := range processes {
		paths := listPaths(filepath.Join(p, "fd"))
		if threads := listPaths(filepath.Join(p, "task")); len(threads) > 1 {
			for _, thread := range threads {
				paths = append(paths, filepath.Join(thread, "ns/net"))
			}
		}
		for _, path := range paths {
			if fd := openLink(path, name, number); fd >= 0 {
				return fd
			}
		}
	}
	return openMounted(proc, name, number)
}

// listPaths returns the paths of the processes, threads or descriptors in a directory of /proc.
func listPaths(dir string) (paths []string) {
	numbers, _ := procfs.ListNumbers(dir) // none of a process that has ended
	for _, number := range numbers {
		paths = append(paths, filepath.Join(dir, strconv.Itoa(number)))
	}
	return paths
}

// openLink opens a link of /proc if its text names the namespace. Reading the text first saves opening the namespace of
// each process of the node.
func openLink(path, name string, number uint64) int {
	if target, err := os.Readlink(path); err != nil || target != name {
		return -1
	}
	return openNumber(path, number)
}

// openMounted opens the namespace by a mount of it, such as those that `ip netns` makes.
func openMounted(proc, name string, number uint64) int {
	mounts, err := procfs.ReadMounts(filepath.Join(proc, "self"))
	if err != nil {
		return -1
	}
	for _, m := range mounts {
		if m.Root == name {
			if fd := openNumber(m.Mountpoint, number); fd >= 0 {
				return fd
			}
		}
	}
	return -1
}

// openNumber opens a path that is said to be the namespace with this number, and verifies it on the descriptor: what
// the path leads to may have changed since it was read.
func openNumber(path string, number uint64) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	var fs unix.Statfs_t
	if found, err := readInode(fd); err == nil && found == number && unix.Fstatfs(fd, &fs) == nil &&
		fs.Type == unix.NSFS_MAGIC {
		return fd
	}
	unix.Close(fd)
	return -1
}
