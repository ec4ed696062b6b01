// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

const (
	scratchReserve = 1 << 30 // bytes; a smaller file system is full below one percent
	filesReserve   = 100
	nobody         = 65534
	// the limit of a process that empties the trash (CLEAN_MS of spank/common/launch.h)
	trashPatience = 30 * time.Minute
	removalMost   = 12 * time.Hour // the removal of as many files as one job may leave
)

// checkScratch checks the directory that holds every job's /tmp.
func (c *checker) checkScratch() {
	dir := c.config.Scratch
	if err := trusted.Parents(filepath.Join(dir, contract.JobsDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.fail("scratch", "", "every job's /tmp lies there: %v", err)
		return
	}
	exists := rootpath.Exists(dir)
	if !exists {
		dir = findNearest(dir)
	}
	lack, free, err := findLack(dir, scratchReserve, c.wasFull)
	switch c.isFull = lack != ""; {
	case err != nil && !exists:
		c.fail("scratch", "create it, or configure another one",
			"%s does not exist, and %s is not writable", c.config.Scratch, dir)
	case err != nil:
		c.fail("scratch", "every job's /tmp lies there: mount it writable", "%v", err)
	case lack != "" && c.usesScratch():
		users, who, remedy := c.explainFullScratch()
		c.failIn(users, "scratch", remedy, "%s is full (%s): %s", dir, lack, who)
	case !exists:
		c.ok("scratch", "%s does not exist yet; the first job creates it", c.config.Scratch)
	default:
		c.ok("scratch", "%s belongs to root and is writable, %d MiB are free%s", dir, free>>20, c.describeLimits())
	}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0 && c.usesScratch() {
		c.warn("scratch", describeExec(c.config.Scratch),
			"%s is on a file system that is mounted noexec: jobs cannot execute programs in their /tmp", dir)
	}
	if oldest := sandbox.FindOldestTrash(c.config.Scratch); !oldest.IsZero() && time.Since(oldest) > trashPatience {
		trash := filepath.Join(c.config.Scratch, contract.JobsDir, contract.TrashDir)
		c.report(Finding{Level: Warn, Subject: "scratch", Alert: true, Remedy: "gojail sweep",
			Found: "files of ended jobs are not removed from " + trash})
	}
}

// findLack returns what a file system that counts as full lacks, "space" or "inodes", and its free bytes. It is full
// if a file of root's does not fit, or if less than reserve or one percent of it is free. before: it was full, and is
// so until twice as much is free. An error means that it cannot be written for another reason.
func findLack(dir string, reserve uint64, before bool) (lack string, free uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", 0, fmt.Errorf("%s: statfs: %w", dir, err)
	}
	err = checkWritable(dir)
	outOfRoom := isOutOfRoom(err)
	if err != nil && !outOfRoom {
		return "", 0, err
	}
	free = st.Bavail * uint64(st.Bsize)
	bytes, files := min(reserve, st.Blocks*uint64(st.Bsize)/100), uint64(filesReserve)
	if before {
		bytes, files = 2*bytes, 2*files
	}
	switch {
	case st.Files > 0 && st.Ffree < files: // file systems without a fixed number of inodes report 0
		return "inodes", free, nil
	case free < bytes, outOfRoom:
		return "space", free, nil
	}
	return "", free, nil
}

// explainFullScratch returns whether users may have filled the scratch directory, who, and what to do. What users may
// have caused does not drain the node, since users could cause it on all nodes: their jobs have their files there,
// which go with the jobs.
func (c *checker) explainFullScratch() (users bool, who, remedy string) {
	if jobs := c.findFillingJobs(); len(jobs) > 0 {
		return true, "jobs that run here may have filled it: " + summarize(jobs, "jobs"),
			"it ends with them; tmp_size limits each job"
	}
	if process := c.findUsersProcess(); process != "" {
		return true, "a user's process runs here, which may have open files there: " + process, "end it"
	}
	// One job can leave more files than are removed within trashPatience. The ends of later jobs go on with them.
	if oldest := sandbox.FindOldestTrash(c.config.Scratch); !oldest.IsZero() && time.Since(oldest) <= removalMost {
		return true, "the files of jobs that have ended are being removed", "wait for that"
	}
	for name, j := range c.config.Jails {
		if len(j.Local) > 0 {
			return true, "users may have filled the directories of local of jail " + name, "remove old files there"
		}
	}
	if open := c.findOpenBeside(); open != "" {
		return true, "users may have filled " + open + ", which is on the same file system",
			"give scratch a file system of its own"
	}
	return false, "no job that runs here has filled it", "remove what is there: gojail sweep; du -x " + c.config.Scratch
}

// usesScratch reports whether some jail has files below the scratch directory.
func (c *checker) usesScratch() bool {
	for _, j := range c.config.Jails {
		if j.Tmp == config.TmpDisk || j.Writable == config.WritableDisk || len(j.Local) > 0 {
			return true
		}
	}
	return false
}

// describeLimits names the jails whose jobs have no limit of their own on disk.
func (c *checker) describeLimits() string {
	var names []string
	for _, name := range c.config.JailNames() {
		if j := c.config.Jails[name]; j.Tmp == config.TmpDisk && j.TmpSize == 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; one job can fill it: no tmp_size for " + strings.Join(names, ", ")
}

// findFillingJobs returns the jobs on this node that may have filled the scratch directory. That a job has few files
// there proves nothing: it may have open ones without a name.
func (c *checker) findFillingJobs() (jobs []string) {
	s, err := state.OpenState(c.node.State)
	if err != nil {
		return nil // checkState reports it
	}
	names, err := state.Directories(filepath.Join(c.node.State, contract.JobsDir))
	if err != nil {
		return []string{"unknown"}
	}
	ended := s.Ended()
	return slices.DeleteFunc(names, func(name string) bool {
		return !state.JobRule.MatchString(name) || slices.Contains(ended, name)
	})
}

// findUsersProcess returns a process that a user started, or "": "NAME, process PID". Such a process may keep a file of
// a job that has ended (unix(7), SCM_RIGHTS), which has no name by then. SlurmUser is no such user.
func (c *checker) findUsersProcess() string {
	proc := c.node.proc()
	own := []uint64{nobody, uint64(c.findSlurmUID(node.ReadSlurmConf(c.config)))}
	pids, _ := procfs.ListNumbers(proc)
	for _, pid := range pids {
		// The owner of /proc/PID does not show it: that is root if the process is not dumpable (proc(5)).
		status, err := procfs.ReadStatus(proc, pid, "Name", "Uid")
		if err != nil {
			continue // it has ended
		}
		for id := range strings.FieldsSeq(status[1]) {
			uid, err := strconv.ParseUint(id, 10, 32)
			if err == nil && uid >= firstUID && !slices.Contains(own, uid) {
				return fmt.Sprintf("%s, process %d", status[0], pid)
			}
		}
	}
	return ""
}

// findOpenBeside returns a directory that users may write to and that is on the file system of the scratch directory,
// or "". It reads the table of mounts: a look at the directories themselves could hang in their storage.
func (c *checker) findOpenBeside() string {
	mounts, err := procfs.ReadMounts("/proc/self")
	if err != nil {
		return "a directory that is not known"
	}
	device := func(path string) (id string) {
		longest := -1
		for _, m := range mounts { // of two on one path, the last one counts
			above := strings.TrimSuffix(m.Mountpoint, "/") + "/"
			if n := len(above); n >= longest && strings.HasPrefix(path+"/", above) {
				longest, id = n, fmt.Sprintf("%d:%d", m.Major, m.Minor)
			}
		}
		return id
	}
	open := []string{"/tmp", "/var/tmp", "/dev/shm", "/home"}
	for _, name := range c.config.JailNames() {
		for _, m := range c.config.Jails[name].Mounts {
			if m.Type == "bind" && !slices.Contains(m.Options, "ro") {
				open = append(open, m.Source)
			}
		}
	}
	own := device(c.config.Scratch)
	for _, path := range open {
		if device(path) == own {
			return path
		}
	}
	return ""
}
