// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	jailcheck "github.com/gojail/gojail/gojail/check"
	jailconfig "github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/healthcheck/check"
)

// driverDirs are where tasks find the driver's libraries: those that a jail's CDI
// devices bring, and the loader's own.
var driverDirs = []string{"run/gojail/cdi/lib", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"}

// jailDriver looks at the driver's libraries in jails as tasks see them. A file that
// was made to mount a library over is empty, and stays behind on storage that nodes
// share: every job with a GPU then fails where the mount is missing.
func jailDriver(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !present(s.Jail.Config) {
		return check.Found(check.NotApplicable, "no jails: there is no %s", s.Jail.Config)
	}
	n := jailNode(h, s)
	c, err := node.Load(n.Config, n.Name)
	if err != nil {
		return check.Found(check.Unknown, "%s", line(err.Error()))
	}
	var with []string
	for name, jail := range c.Jails {
		if bringsDriver(jail) {
			with = append(with, name)
		}
	}
	if len(with) == 0 {
		return check.Found(check.NotApplicable, "no jail brings NVIDIA's driver")
	}
	if !present(n.State) {
		return check.Found(check.OK, "no jail was assembled since the node booted")
	}
	state, err := state.OpenState(n.State)
	if err != nil {
		return check.Found(check.Unknown, "%s", line(err.Error()))
	}
	var p problems
	for _, name := range slices.Sorted(slices.Values(with)) {
		path, err := state.TemplateRoot(name)
		if err != nil {
			continue // no job has needed it yet, or it is being made anew
		}
		root, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		// The process may have ended before its root was opened, and the number be another's.
		if again, err := state.TemplateRoot(name); err == nil && again == path {
			theirs := slices.Contains(c.Jails[name].Isolation.JailRoot, "range")
			driverFiles(&p, name, root, theirs)
		}
		unix.Close(root)
	}
	return p.finding("the driver's libraries in jails are whole")
}

func bringsDriver(j *jailconfig.Jail) bool {
	return len(j.CDI) > 0 || slices.ContainsFunc(j.Host, func(pattern string) bool {
		return strings.Contains(pattern, "nvidia") || strings.Contains(pattern, "libcuda")
	})
}

func isDriver(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "libnvidia-") || strings.HasPrefix(name, "libcuda.so")
}

// driverFiles looks at the libraries below a jail's root. What is in a jail is its
// users': no link leads out of it, and nothing but a regular file is opened. theirs is
// whether they may change files of root, too.
func driverFiles(p *problems, jail string, root int, theirs bool) {
	for _, dir := range driverDirs {
		fd, err := inRoot(root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue // not every distribution has each
		}
		file := os.NewFile(uintptr(fd), dir)
		for _, name := range driverNames(file) {
			driverFile(p, jail, root, filepath.Join(dir, name), theirs)
		}
		file.Close()
	}
}

// Of a directory of a user's there may be any number. A distribution has some thousands, the driver some fifty.
const (
	mostEntries = 1 << 16
	mostDriver  = 1 << 10
)

func driverNames(dir *os.File) (found []string) {
	for seen := 0; seen < mostEntries && len(found) < mostDriver; {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if isDriver(name) && strings.Contains(name, ".so") {
				found = append(found, name)
			}
		}
		seen += len(names)
		if err != nil {
			break
		}
	}
	slices.Sort(found)
	return found
}

// driverFile lets a file drain the node only if it is root's, and where root put it:
// users may have files of that name in a jail's directories, and in their own they may
// give it to a file or a link of root's.
func driverFile(p *problems, jail string, root int, path string, theirs bool) {
	fd, err := inRoot(root, path, unix.O_PATH)
	if err != nil {
		return // a link whose end is not there: the loader passes it over
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	wrong := ""
	switch {
	case st.Size == 0:
		wrong = "is empty"
	case !isELF(fd):
		wrong = "is no library"
	default:
		return
	}
	tell := p.failed
	if theirs || st.Uid != 0 || jailcheck.UsersMayChange(root, path) {
		tell = p.warned
	}
	tell("jail %.30s: %.60s %s", jail, filepath.Base(path), wrong)
	p.note("jail %s: /%s", jail, path)
}

// isELF opens what an O_PATH descriptor is for: it cannot be another file by now.
func isELF(fd int) bool {
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return true // not known
	}
	defer file.Close()
	magic := make([]byte, 4)
	n, err := file.Read(magic)
	return err != nil || string(magic[:n]) == "\x7fELF"
}

// inRoot opens a path as a process with that root would (openat2(2), Linux 5.6).
func inRoot(root int, path string, flags uint64) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}
