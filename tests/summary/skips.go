// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	needsLinux      = regexp.MustCompile(`needs Linux (\d+)\.(\d+)`)
	needsSlurm      = regexp.MustCompile(`needs Slurm (\d+\.\d+)`)
	needsFileSystem = regexp.MustCompile(`needs the kernel's (\w+)`)
)

// qualifies reports whether a test that was skipped for that reason had no cause on this machine: Debian,
// where make deps installs what is missing, and root. Nobody can install an older kernel, a file system that
// the kernel lacks, a /tmp outside an overlay, or another release of Slurm than the one that the tests are run on.
func qualifies(reason string) bool {
	if _, err := os.Stat("/etc/debian_version"); err != nil || os.Geteuid() != 0 {
		return false
	}
	if needs := needsSlurm.FindStringSubmatch(reason); needs != nil {
		return needs[1] <= findRelease()
	}
	if strings.Contains(reason, "needs the machine's own release") {
		return os.Getenv(columnVariable) == ""
	}
	if strings.Contains(reason, "needs arm64") {
		return runtime.GOARCH == "arm64"
	}
	if strings.Contains(reason, "needs CAP_SYS_RESOURCE") {
		return mayRaiseLimits()
	}
	var name unix.Utsname
	var fs unix.Statfs_t
	if unix.Uname(&name) != nil || unix.Statfs(os.TempDir(), &fs) != nil {
		return true
	}
	if needs := needsFileSystem.FindStringSubmatch(reason); needs != nil {
		exec.Command("modprobe", needs[1]).Run() // it may be a module that nobody has asked for
	}
	known, err := os.ReadFile("/proc/filesystems")
	return err != nil || !isExcused(reason, unix.ByteSliceToString(name.Release[:]), fs.Type == unix.OVERLAYFS_SUPER_MAGIC, strings.Fields(string(known)))
}

// mayRaiseLimits reports whether root may raise hard limits here. A container may lack the capability.
func mayRaiseLimits() bool {
	has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	return err != nil || has == 1
}

// findRelease returns the release of Slurm that the tests are run on, or of this machine, or "".
func findRelease() string {
	if release := os.Getenv(columnVariable); release != "" {
		return release
	}
	text, _ := exec.Command("srun", "--version").Output() // "slurm-wlm 22.05.8"
	return regexp.MustCompile(`\d+\.\d+`).FindString(string(text))
}

// isExcused reports whether the reason lies in the kernel, or in a /tmp on an overlay.
func isExcused(reason, release string, overlay bool, fileSystems []string) bool {
	if needs := needsFileSystem.FindStringSubmatch(reason); needs != nil {
		return !slices.Contains(fileSystems, needs[1])
	}
	if strings.Contains(reason, "needs the network: ") { // to fetch a program of others that a test compares with
		return true
	}
	if strings.Contains(reason, "needs the history of the repository") { // a shallow clone, or sources without git
		return true
	}
	if overlay && regexp.MustCompile(`temporary directory .*upper layer`).MatchString(reason) {
		return true
	}
	needs := needsLinux.FindStringSubmatch(reason)
	if needs == nil {
		return strings.Contains(reason, "needs a kernel with ") // which nobody can give this one
	}
	var major, minor, wantMajor, wantMinor int
	fmt.Sscanf(release, "%d.%d", &major, &minor)
	fmt.Sscan(needs[1], &wantMajor)
	fmt.Sscan(needs[2], &wantMinor)
	return major < wantMajor || major == wantMajor && minor < wantMinor
}
