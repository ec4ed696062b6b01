// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
)

var needsLinux = regexp.MustCompile(`needs Linux (\d+)\.(\d+)`)

// qualifies says whether a test that was skipped for that reason had no cause on
// this machine: Debian, where make deps installs what is missing, and root.
// What nobody can install is left: an older kernel, and /tmp on an overlay.
func qualifies(reason string) bool {
	if _, err := os.Stat("/etc/debian_version"); err != nil || os.Geteuid() != 0 {
		return false
	}
	var name unix.Utsname
	var fs unix.Statfs_t
	if unix.Uname(&name) != nil || unix.Statfs(os.TempDir(), &fs) != nil {
		return true
	}
	return !excused(reason, unix.ByteSliceToString(name.Release[:]), fs.Type == unix.OVERLAYFS_SUPER_MAGIC)
}

// excused says whether the reason lies in the kernel, or in a /tmp on an overlay.
func excused(reason, release string, overlay bool) bool {
	if overlay && regexp.MustCompile(`temporary directory .*upper layer`).MatchString(reason) {
		return true
	}
	needs := needsLinux.FindStringSubmatch(reason)
	if needs == nil {
		return false
	}
	var major, minor, wantMajor, wantMinor int
	fmt.Sscanf(release, "%d.%d", &major, &minor)
	fmt.Sscan(needs[1], &wantMajor)
	fmt.Sscan(needs[2], &wantMinor)
	return major < wantMajor || major == wantMajor && minor < wantMinor
}
