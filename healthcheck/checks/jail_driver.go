// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	jailcheck "github.com/gojail/gojail/gojail/check"
	jailconfig "github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/rootpath"
)

// driverDirs are the directories in which tasks find the driver's libraries: that of a jail's
// CDI devices, and those of the dynamic loader.
var driverDirs = []string{"run/gojail/cdi/lib", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64",
	"usr/lib"}

// jailDriver checks the driver's libraries in jails as tasks see them. A file that was created
// as a mount target for a library is empty and remains on storage that nodes share: every job
// with a GPU then fails if the mount is missing.
func jailDriver(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !mayExist(s.Jail.Config) {
		return check.NewFinding(check.NotApplicable, "no jails: %s does not exist", s.Jail.Config)
	}
	n := newJailNode(h, s)
	c, err := node.Load(n.Config, n.Name)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	var with []string
	for name, jail := range c.Jails {
		if usesDriver(jail) {
			with = append(with, name)
		}
	}
	if len(with) == 0 {
		return check.NewFinding(check.NotApplicable, "no jail provides NVIDIA's driver")
	}
	if !mayExist(n.State) {
		return check.NewFinding(check.OK, "no jail has been assembled since the node booted")
	}
	state, err := state.OpenState(n.State)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	const intact = "the driver's libraries in jails are intact"
	slices.Sort(with)
	var last driverState
	now := driverState{Templates: describeTemplates(state, with), Due: h.Now().Add(driverInterval).Unix()}
	if json.Unmarshal(h.State, &last) == nil && !last.Bad && last.Templates == now.Templates &&
		h.Now().Unix() < last.Due && last.Due <= now.Due {
		return check.NewFinding(check.OK, intact)
	}
	p := checkTemplates(c, state, with)
	f := p.buildFinding(intact)
	now.Bad = f.Verdict != check.OK
	f.State, _ = json.Marshal(now)
	return f
}

// driverState is what the check remembers: the libraries of a template lie on the jails' storage, which is
// not to be asked for them twice a minute by each node.
type driverState struct {
	Templates string `json:"templates"` // the templates that were checked
	Due       int64  `json:"due"`       // when they are to be checked again, in seconds
	Bad       bool   `json:"bad"`
}

// driverInterval is the time between two checks of templates that were in order.
const driverInterval = 10 * time.Minute

// describeTemplates names the processes of the jails' templates.
func describeTemplates(s *state.State, jails []string) string {
	var all []string
	for _, name := range jails {
		if r, err := s.Template(name); err == nil {
			all = append(all, fmt.Sprintf("%s %d %d", name, r.PID, r.Start))
		}
	}
	return strings.Join(all, "; ")
}

// checkTemplates checks the libraries in the templates of these jails.
func checkTemplates(c *jailconfig.Config, state *state.State, jails []string) *problems {
	p := &problems{}
	for _, name := range jails {
		path, err := state.TemplateRoot(name)
		if err != nil {
			continue // no job has used the jail yet, or it is being rebuilt
		}
		root, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		// The process may have ended before its root was opened, and its number may have been
		// reused.
		if again, err := state.TemplateRoot(name); err == nil && again == path {
			usersOwn := slices.Contains(c.Jails[name].Isolation.JailRoot, "range")
			checkDriverFiles(p, name, root, usersOwn)
		}
		unix.Close(root)
	}
	return p
}

// usesDriver reports whether a jail provides NVIDIA's driver.
func usesDriver(j *jailconfig.Jail) bool {
	return len(j.CDI) > 0 || slices.ContainsFunc(j.Host, func(pattern string) bool {
		return strings.Contains(pattern, "nvidia") || strings.Contains(pattern, "libcuda")
	})
}

// isDriver reports whether a path has the name of a library of the driver.
func isDriver(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "libnvidia-") || strings.HasPrefix(name, "libcuda.so")
}

// checkDriverFiles checks the libraries below a jail's root. The content of a jail is
// controlled by its users: no link is followed out of it, and only regular files are opened.
// usersOwn reports whether users may change files of root, too.
func checkDriverFiles(p *problems, jail string, root int, usersOwn bool) {
	for _, dir := range driverDirs {
		fd, err := rootpath.OpenInRoot(root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue // not every distribution has all of these directories
		}
		file := os.NewFile(uintptr(fd), dir)
		for _, name := range listDriverFiles(file) {
			checkDriverFile(p, jail, root, filepath.Join(dir, name), usersOwn)
		}
		file.Close()
	}
}

// Limits for a directory of a user, which may have any number of entries. A distribution has
// some thousands, the driver about fifty.
const (
	mostEntries = 1 << 16
	mostDriver  = 1 << 10
)

// listDriverFiles returns the sorted names of the driver's libraries in a directory.
func listDriverFiles(dir *os.File) (found []string) {
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

// checkDriverFile checks one library. A faulty file drains the node only if it belongs to root
// and is where root put it: users may have files of that name in a jail's directories, and in
// their own directories they may give that name to a file or a link of root.
func checkDriverFile(p *problems, jail string, root int, path string, usersOwn bool) {
	fd, err := rootpath.OpenInRoot(root, path, unix.O_PATH)
	if err != nil {
		return // a dangling link: the loader skips it
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
		wrong = "is not a library"
	default:
		return
	}
	tell := p.addFailure
	if usersOwn || st.Uid != 0 || jailcheck.UsersMayChange(root, path) {
		tell = p.addWarning
	}
	tell("jail %.30s: %.60s %s", jail, filepath.Base(path), wrong)
	p.addNote("jail %s: /%s", jail, path)
}

// isELF reports whether the file of an O_PATH descriptor begins with the ELF magic.
func isELF(fd int) bool {
	file, err := rootpath.ReopenFile(fd, "library")
	if err != nil {
		return true // unknown: reported as good
	}
	defer file.Close()
	magic := make([]byte, 4)
	n, err := file.Read(magic)
	return err != nil || string(magic[:n]) == "\x7fELF"
}
