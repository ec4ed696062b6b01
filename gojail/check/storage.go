// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/storage"
)

const (
	latencyCount = 1000
	latencyTime  = time.Second
	latencySlow  = 5 * time.Millisecond // a launch waits for some hundred answers of cold storage
)

// checkStorage says what a jail's storage is and can do, on one line, and warns about options that make
// jobs fail or slow.
func (c *checker) checkStorage(j *config.Jail) {
	if node.HasImage(j) {
		c.checkStorageOfImage(j)
		return
	}
	root, err := node.OpenJail(j)
	if err != nil {
		return // checkJail reports it
	}
	defer unix.Close(root)
	m, err := storage.MountOf(root)
	if err != nil || m == nil {
		c.warn("jail "+j.Name, "", "cannot determine the mount of %s: %v", j.Root, err)
		return
	}
	latency := storage.MeasureLatency(root, latencyCount, latencyTime)
	facts := []string{
		strings.Join(append([]string{"storage " + m.String() + " on " + m.Point}, m.TellingOptions()...), ", "),
		describeAnswer(storage.SquashesRoot(root), "root is squashed", "root is not squashed",
			"root squashing unknown: no file there is readable by root only"),
		c.describeIDMaps(root),
		describeAnswer(storage.HasXattrs(root, "security.capability"), "file capabilities",
			"no file capabilities (ping)", "file capabilities unknown"),
		describeAnswer(storage.HasXattrs(root, "user.gojail"), "user xattrs", "no user xattrs", "user xattrs unknown"),
		describeAnswer(latency.TellsTypes, "d_type", "no d_type", "d_type unknown"),
		describeLatency(latency),
	}
	c.ok("jail "+j.Name, "%s", strings.Join(facts, "; "))
	c.checkOptions(j, m)
	c.checkExec(j, m)
	if latency.Median >= latencySlow {
		c.warn("jail "+j.Name, "check the load of the server, and the network to it",
			"storage %s is slow: %v for an lstat (median of %d); a first job on a node waits for some hundred of them",
			m, latency.Median.Round(time.Microsecond), latency.Count)
	}
}

// checkStorageOfImage says where the image that is a jail's root lies.
func (c *checker) checkStorageOfImage(j *config.Jail) {
	file, err := unix.Open(j.Root, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return // checkJail reports it
	}
	defer unix.Close(file)
	m, err := storage.MountOf(file)
	if err != nil || m == nil {
		c.warn("jail "+j.Name, "", "cannot determine the mount of %s: %v", j.Root, err)
		return
	}
	c.ok("jail "+j.Name, "image on %s",
		strings.Join(append([]string{"storage " + m.String() + " on " + m.Point}, m.TellingOptions()...), ", "))
	c.checkOptions(j, m)
}

func describeAnswer(a storage.Answer, yes, no, unknown string) string {
	return map[storage.Answer]string{storage.Yes: yes, storage.No: no, storage.Unknown: unknown}[a]
}

func describeLatency(l storage.Latency) string {
	if l.Count == 0 {
		return "latency unknown"
	}
	return fmt.Sprintf("%d lstat in %v, median %v", l.Count, l.Total.Round(10*time.Microsecond),
		l.Median.Round(100*time.Nanosecond))
}

// describeIDMaps says whether mounts of an open root can be id-mapped, as --jail-root=range needs them.
func (c *checker) describeIDMaps(root int) string {
	namespace, err := c.ids.open()
	if err != nil {
		return "id maps unknown: " + err.Error()
	}
	fd, err := mount.CloneMapped(root, false, int(namespace.Fd()))
	if err != nil {
		return "cannot map ids (no --jail-root=range)"
	}
	unix.Close(fd)
	return "can map ids"
}

// checkOptions warns about options of a jail's storage that make some jobs fail or slow.
func (c *checker) checkOptions(j *config.Jail, m *storage.Mount) {
	for _, option := range []string{"soft", "softerr"} {
		if m.Has(option) {
			c.warn("jail "+j.Name, "mount it with hard, nfs(5)", "storage %s is mounted %s: while the server is "+
				"away, programs and writes of jobs fail with an I/O error", m, option)
		}
	}
	cache, _ := m.Value("lookupcache")
	seconds, hasMax := m.Value("acdirmax")
	switch {
	case m.Has("noac"), hasMax && seconds == "0":
		c.warn("jail "+j.Name, "mount it without noac and actimeo=0, nfs(5)",
			"storage %s caches no attributes (noac): each open of a file asks the server", m)
	case cache == "none":
		c.warn("jail "+j.Name, "mount it without lookupcache=none, nfs(5)",
			"storage %s caches no names (lookupcache=none): each open of a file asks the server", m)
	}
}

// checkExec reports a tree from which no program can be executed, unless the programs of its jail come from elsewhere.
// Where an image file lies does not matter: its mount has options of its own.
func (c *checker) checkExec(j *config.Jail, m *storage.Mount) {
	mounted := slices.Clone(j.Host)
	for _, one := range j.Mounts {
		mounted = append(mounted, one.Destination)
		if slices.Contains(one.Options, "noexec") && (config.Under("/bin/sh", one.Destination) ||
			config.Under("/usr/bin/sh", one.Destination)) {
			c.fail("jail "+j.Name, fmt.Sprintf("remove noexec from options of the mount of %s in %s", one.Destination,
				c.config.Path), "the mount of %s has noexec: its programs cannot be executed, and every new job fails",
				one.Destination)
		}
	}
	isMounted := func(path string) bool {
		return slices.ContainsFunc(mounted, func(dir string) bool { return config.Under(path, dir) })
	}
	if m.Has("noexec") && !slices.Contains(j.Options, "exec") && !isMounted("/bin/sh") && !isMounted("/usr/bin/sh") {
		c.fail("jail "+j.Name, describeExec(m.Point),
			"storage %s is mounted noexec: no program of the root can be executed, and every new job fails", m)
	}
}

// describeExec returns what to do about a file system with noexec on which a path lies.
func describeExec(path string) string {
	if table, err := storage.ReadTable(); err == nil {
		if m := table.Above(path); m != nil {
			path = m.Point
		}
	}
	return "run: mount -o remount,exec " + oneline.ShellWord(path) + "; and remove noexec from /etc/fstab"
}

// userNamespace is a user namespace to test id-mapped mounts with, opened once for all jails.
type userNamespace struct {
	once sync.Once
	file *os.File
	err  error
}

func (n *userNamespace) open() (*os.File, error) {
	n.once.Do(func() { n.file, n.err = openUserNamespace() })
	return n.file, n.err
}
