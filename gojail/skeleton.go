// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Target is a place in a jail that something is mounted on.
type Target struct {
	Path string
	Dir  bool // else a file
}

func (t Target) String() string {
	if t.Dir {
		return "directory " + t.Path
	}
	return "file " + t.Path
}

// Targets lists the mount targets that must be on the jail's own storage: those
// that do not lie on something that the sandbox itself mounts.
func Targets(c *Config, j *Jail, v *View) []Target {
	var targets []Target
	mounts := append(append([]specs.Mount{}, v.Spec.Mounts...), JobMounts(c, j, "")...)
	for i, m := range mounts {
		again := slices.ContainsFunc(mounts[:i], func(e specs.Mount) bool { return e.Destination == m.Destination })
		if !again && !inside(mounts[:i], filepath.Dir(m.Destination)) {
			targets = append(targets, Target{m.Destination, targetIsDir(m)})
		}
	}
	return targets
}

// targetIsDir tells what the source of a mount is. What is not there yet, such
// as a node-local directory, will be a directory.
func targetIsDir(m specs.Mount) bool {
	if m.Type != "bind" {
		return true
	}
	st, err := os.Stat(m.Source)
	return err != nil || st.IsDir()
}

// MissingTargets lists the targets that are not there.
func MissingTargets(c *Config, j *Jail, v *View) ([]Target, error) {
	root, err := openJail(j)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	var missing []Target
	for _, t := range Targets(c, j, v) {
		st, err := statIn(root, t.Path)
		switch {
		case err == unix.ENOENT:
			missing = append(missing, t)
		case err != nil:
			return nil, fmt.Errorf("jail %s: mount target %s in %s cannot be reached: %w", j.Name, t.Path, j.Root, err)
		case (st.Mode&unix.S_IFMT == unix.S_IFDIR) != t.Dir:
			return nil, fmt.Errorf("jail %s: mount target %s in %s must be a %s; move what is there away",
				j.Name, t.Path, j.Root, map[bool]string{true: "directory", false: "file"}[t.Dir])
		}
	}
	return missing, nil
}

// MakeTargets makes the missing targets on the jail's storage and lists them.
// One node does so at a time (flock on ROOT/.gojail.lock).
func MakeTargets(c *Config, j *Jail, v *View, deadline time.Time) ([]Target, error) {
	missing, err := MissingTargets(c, j, v)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(j.Root, ".gojail.lock"), deadline)
	if err != nil {
		return nil, fmt.Errorf("jail %s: %w (a node that may write to the storage is needed)", j.Name, err)
	}
	defer unlock()
	root, err := openJail(j)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	defer unix.Umask(unix.Umask(0))
	var made []Target
	for _, t := range missing {
		if err := makeTarget(root, t, &made); err != nil {
			return made, fmt.Errorf("jail %s: cannot make the %s in %s: %w", j.Name, t, j.Root, err)
		}
	}
	return made, nil
}

// makeTarget makes one target and the directories above it. Every parent is
// resolved inside the root, so that no symlink of the jail leads out of it.
func makeTarget(root int, t Target, made *[]Target) error {
	parent, err := openBeneath(root, filepath.Dir(t.Path), inJail)
	if err == unix.ENOENT {
		if err := makeTarget(root, Target{filepath.Dir(t.Path), true}, made); err != nil {
			return err
		}
		parent, err = openBeneath(root, filepath.Dir(t.Path), inJail)
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	dir, err := unix.Openat(parent, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := makeEntry(dir, filepath.Base(t.Path), t.Dir); err != nil {
		if err == unix.EEXIST { // made a moment ago by another node, or a dangling symlink
			if _, err := statIn(root, t.Path); err == nil {
				return nil
			}
			return fmt.Errorf("a symlink that leads nowhere is in its place; remove it or let it lead somewhere")
		}
		return err
	}
	*made = append(*made, t)
	return nil
}

func makeEntry(dir int, name string, isDir bool) error {
	if isDir {
		return unix.Mkdirat(dir, name, 0o755)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
