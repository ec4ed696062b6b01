// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// stepds finds slurmstepds of this node by their sockets and processes, which it lists once for all jobs: a sweep
// judges each of hundreds of jobs twice, and each list of processes costs several system calls for each of them. It
// lists them again after a file appears in the spool directory: a slurmstepd creates its socket there before it calls a
// plugin (msg_thr_create, then job_manager). Without inotify it lists them for each job.
type stepds struct {
	watch *os.File // inotify(7) of the spool directory, or nil

	looked  time.Time
	sockets map[string][]string // names in the spool directory, by job
	titles  map[string]string   // JOB.STEP, by job
}

// lookPause is the longest time for which a list is used. It bounds the error if the spool directory is not slurmd's,
// where no file would ever appear.
const lookPause = time.Second

// openWatch watches the spool directory until close.
func (s *stepds) openWatch(spool string) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return
	}
	if _, err := unix.InotifyAddWatch(fd, spool, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return
	}
	s.watch = os.NewFile(uintptr(fd), "inotify")
}

// close ends the watch. The next list is a fresh one.
func (s *stepds) close() {
	s.watch.Close() // of a nil file: returns an error, which is ignored
	s.watch = nil
}

// find returns a description of a slurmstepd of the job, or "" if there is none.
func (s *stepds) find(spool, node, job string) (string, error) {
	if err := s.refresh(spool, node); err != nil {
		return "", err
	}
	step := s.titles[job]
	if len(s.sockets[job]) > 0 {
		dir, err := os.Open(spool)
		if err != nil {
			return "", fmt.Errorf("cannot read the spool directory %s: %w", spool, oneline.Cause(err))
		}
		defer dir.Close()
		if i := slices.IndexFunc(s.sockets[job], func(name string) bool { return isAnswering(dir, name) }); i >= 0 {
			step = s.sockets[job][i]
		}
	}
	if step == "" {
		return "", nil
	}
	return "its step " + formatStepName(step[strings.LastIndex(step, ".")+1:]) + " runs on this node", nil
}

// refresh lists the sockets and processes again unless nothing has changed since the last time.
func (s *stepds) refresh(spool, node string) (err error) {
	if changed := s.readChanges(); !changed && !s.looked.IsZero() && time.Since(s.looked) < lookPause {
		return nil
	}
	begin := time.Now() // the age of the lists counts from before they are read
	if s.sockets, err = listStepdSockets(spool, node); err == nil {
		s.titles, err = listStepdTitles()
	}
	s.looked = begin
	if err != nil {
		s.looked = time.Time{} // the next call tries again
	}
	return err
}

// readChanges reports whether files may have appeared in the spool directory since the last call.
func (s *stepds) readChanges() (changed bool) {
	if s.watch == nil {
		return true
	}
	events := make([]byte, 16<<10)
	for {
		n, err := unix.Read(int(s.watch.Fd()), events)
		if err == unix.EAGAIN {
			return changed
		}
		if changed = true; err != nil || n <= 0 {
			return true
		}
	}
}

// listStepdSockets returns the names NODE_JOB.STEP in the spool directory by job.
func listStepdSockets(spool, node string) (map[string][]string, error) {
	dir, err := os.Open(spool)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the spool directory %s: %w", spool, oneline.Cause(err))
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot read the spool directory %s: %w", spool, oneline.Errno(err))
	}
	sockets := map[string][]string{}
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, node+"_")
		if job, _, ok := strings.Cut(rest, "."); ours && ok {
			sockets[job] = append(sockets[job], name)
		}
	}
	return sockets, nil
}

// isAnswering reports whether a process listens on a socket. It returns true if that cannot be found out. slurmstepds
// that were killed leave their sockets behind.
func isAnswering(dir *os.File, name string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	// The path leads through a descriptor: the address of a socket has at most 107 bytes (unix(7)).
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)})
	return err != unix.ECONNREFUSED && err != unix.ENOENT && err != unix.ENOTSOCK
}

// listStepdTitles returns JOB.STEP by job, from the title that slurmstepd sets, "slurmstepd: [JOB.STEP]". A user's
// process can set the same title, so only root's processes count. The titles of other processes are not read: reading
// one waits while a task of that process is in mmap(2) of a file on storage that does not answer.
func listStepdTitles() (map[string]string, error) {
	pids, err := procfs.ListNumbers("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot read /proc: %w", oneline.Cause(err))
	}
	titles := map[string]string{}
	for _, pid := range pids {
		if !strings.HasPrefix(procfs.ReadName("/proc", pid), "slurmstepd") || !procfs.IsRoots(pid) {
			continue
		}
		text, err := procfs.ReadTitle(pid)
		if err != nil {
			continue // has ended
		}
		if rest, ok := bytes.CutPrefix(text, []byte("slurmstepd: [")); ok {
			title, _, _ := strings.Cut(string(rest), "]")
			if job, _, ok := strings.Cut(title, "."); ok {
				titles[job] = title
			}
		}
	}
	return titles, nil
}

// formatStepName returns the name of a step. Steps such as the batch step have a number in slurm.h, and a name for
// people.
func formatStepName(number string) string {
	names := map[string]string{"4294967291": "batch", "4294967292": "extern", "4294967290": "interactive"}
	if name := names[number]; name != "" {
		return name
	}
	return number
}
