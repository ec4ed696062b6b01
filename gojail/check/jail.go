// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// checkJail checks one jail. It accesses the jail's storage, and can hang with it.
func (c *checker) checkJail(j *config.Jail) {
	subject := "jail " + j.Name
	var fs unix.Statfs_t
	if err := unix.Statfs(j.Root, &fs); err != nil {
		c.failIn(c.isRootContent(j) || isClosedByUsers(j, err), subject, explainRootError(j, err), "jail root %s: %v",
			j.Root, err)
		return
	}
	root, err := node.OpenJail(j)
	if err == nil {
		defer unix.Close(root)
		err = node.CheckRoot(root, j.Root)
	}
	if err != nil {
		content := c.isRootContent(j) || errors.Is(err, node.ErrEmptyRoot) && c.isEmptiedByUsers(j) ||
			isClosedByUsers(j, err)
		c.failIn(content, subject, explainRootError(j, err), "%v", err)
		return
	}
	facts, err := node.ReadHostWith(c.config, c.hardware, j, c.node.State, root)
	if err != nil {
		crowded := (*node.CrowdedError)(nil)
		c.failIn(errors.As(err, &crowded), subject, "", "%v", err)
		return
	}
	view, err := plan.Jail(c.config, j, facts)
	if err == nil {
		_, err = plan.Stage(c.config, j, facts)
	}
	if err != nil {
		c.failIn(isContent(j, j.Host...), subject, "correct the configuration", "%v", config.CutJail(j.Name, err))
		return
	}
	targets, sources := c.checkTargets(j, view, root), c.checkSources(j)
	c.reportNotes(j, facts)
	c.reportSharedGPUs(j, facts)
	c.checkCDI(j)
	c.checkStaleTemplate(j)
	c.checkInside(j, view, root)
	c.checkPlaces(j, facts, func(path string) bool { return plan.Inside(view.Spec.Mounts, path) })
	c.checkHidden(j, root)
	seen := c.checkSlurmdsView(j)
	users := c.checkForUsers(j, root, func(path string) bool { return plan.Inside(view.Spec.Mounts, path) })
	isolation := c.checkIsolation(j, root) // last: it maps the ids of an image's mount
	if !targets || !sources || !seen || !users || !isolation {
		return
	}
	c.ok(subject, "%s: %d mounts, all mount targets exist", j.Root, len(view.Spec.Mounts))
}

// explainRootError returns the remedy for a root that cannot be opened.
func explainRootError(j *config.Jail, err error) string {
	switch {
	case errors.Is(err, unix.ENOENT) && hasNoVersion(j):
		return fmt.Sprintf("if its storage is mounted, make a version of it current: gojail jail build %[1]s --from "+
			"SOURCE, then gojail jail switch %[1]s", j.Versions)
	case errors.Is(err, unix.EACCES):
		return "root of this node has no access: if the storage squashes root, open the root and the directories " +
			"above it to others (chmod 755); FUSE needs allow_other"
	case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ENOTCONN):
		return "remount its storage"
	}
	return "mount its storage, or correct root ="
}

// hasNoVersion reports whether the store of a jail is there, and nothing of the jail is current.
func hasNoVersion(j *config.Jail) bool {
	if j.Versions == "" {
		return false
	}
	_, current := os.Lstat(j.Root)
	_, store := os.Lstat(filepath.Dir(filepath.Dir(j.Root)))
	return errors.Is(current, unix.ENOENT) && store == nil
}

// checkTargets reports the mount targets that the jail's root lacks.
func (c *checker) checkTargets(j *config.Jail, view *plan.View, root int) bool {
	subject := "jail " + j.Name
	missing, err := mount.MissingTargets(c.config, j, view, root)
	if j.Writable != "" {
		missing = nil // the template has them in an overlay
	}
	if err != nil {
		var all []string
		for _, t := range plan.Targets(c.config, j, view, os.Stat) {
			all = append(all, t.Path)
		}
		content := !isStorageError(err) && (isContent(j, all...) || slices.ContainsFunc(j.Mounts, isUsersSource))
		c.failIn(content, subject, "", "%v", config.CutJail(j.Name, err))
		return false
	}
	paths := map[bool][]string{} // by whether users can change them
	for _, t := range missing {
		content, path := isContent(j, t.Path), t.Path
		if to := rootpath.ReadLink(root, path); to != "" {
			path += " (a symbolic link to " + oneline.Printable(to) + ")"
		}
		paths[content] = append(paths[content], path)
	}
	for _, content := range []bool{false, true} {
		list := strings.Join(paths[content], " ")
		if n := len(paths[content]); n > 4 {
			list = fmt.Sprintf("%s and %d more", strings.Join(paths[content][:3], " "), n-3)
		}
		if list != "" {
			c.failIn(content, subject, targetsRemedy(j, root), "mount targets are missing in %s: %s", j.Root, list)
		}
	}
	return len(missing) == 0
}

// isUsersSource reports whether users may rename or replace the source of a mount.
func isUsersSource(m config.Mount) bool { return m.Type == "bind" && trusted.Parents(m.Source) != nil }

// checkSources reports sources of mounts that this node lacks.
func (c *checker) checkSources(j *config.Jail) bool {
	good := true
	for _, m := range j.Mounts {
		if m.Type == "bind" && !rootpath.Exists(m.Source) {
			good = false
			c.failIn(isUsersSource(m), "jail "+j.Name, "mount or create it, or remove it from the configuration",
				"%s (for %s) does not exist on this node", m.Source, m.Destination)
		}
	}
	for _, path := range c.config.Slurm.Host {
		if j.Slurm && !rootpath.Exists(path) {
			good = false
			c.fail("jail "+j.Name, "correct host = of [slurm]", "%s does not exist on this node", path)
		}
	}
	return good
}

// targetsRemedy returns what to do about missing mount targets.
func targetsRemedy(j *config.Jail, root int) string {
	if node.IsImage(root) {
		return mount.Remedy(j.Name, true)
	}
	return "create them once, for all nodes: gojail init " + j.Name
}

// reportNotes warns about settings that are probably mistakes.
func (c *checker) reportNotes(j *config.Jail, facts *node.HostFacts) {
	subject := "jail " + j.Name
	if err := checkRootOwner(j); err != nil {
		c.warn(subject, "", "users can change the jail: %v", err)
	}
	for _, m := range j.Mounts {
		if isUsersSource(m) && rootpath.Exists(m.Source) { // checkSources reports a missing one
			c.warn(subject, "users can put another directory in its place: those above it should belong to root",
				"the source of the mount %s: %v",
				m.Destination, trusted.Parents(m.Source))
		}
	}
	for _, path := range j.Host {
		if !facts.Exists[path] {
			c.warn(subject, "remove it from host =", "%s does not exist on this node and is omitted", path)
		}
	}
	for _, glob := range j.Devices {
		if len(node.FindDevices([]string{glob})) == 0 {
			c.warn(subject, "load the driver, then: gojail reload "+j.Name, "no device matches %s on this node", glob)
		}
	}
	for _, rule := range j.UserMounts {
		if !rootpath.Exists(rule.Source) {
			c.warn(subject, "correct source = of user_mounts", "users may mount %s, but it does not exist on this node",
				rule.Source)
		}
	}
}

// reportSharedGPUs reports GPUs that each job in the jail has, because Slurm gives them to none. Without GresTypes=gpu,
// or with a gres.conf that does not name them, nobody knows which job they belong to.
func (c *checker) reportSharedGPUs(j *config.Jail, facts *node.HostFacts) {
	var shared []string
	for _, device := range facts.Devices {
		if node.IsGPU(device.Path) {
			shared = append(shared, device.Path)
		}
	}
	if len(shared) > 0 {
		c.warn("jail "+j.Name,
			"add GresTypes=gpu to slurm.conf and these GPUs to gres.conf, or take them out of devices =",
			"each job has %s, as Slurm gives them to none", strings.Join(shared, ", "))
	}
}
