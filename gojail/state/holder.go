// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// Jail returns the name of the jail of a sandbox's record.
func (r Record) Jail() string { return jailOf(r.Name) }

// Namespace opens a namespace of the record's process by its name in /proc/PID/ns.
func (r Record) Namespace(kind string) (*os.File, error) {
	return r.openOfProcess("ns/"+kind, unix.O_RDONLY)
}

// Root opens the root directory of the record's process, for use as a place (O_PATH).
func (r Record) Root() (*os.File, error) { return r.openOfProcess("root", unix.O_PATH) }

// openOfProcess opens a file of /proc/PID.
func (r Record) openOfProcess(name string, flags int) (*os.File, error) {
	path := fmt.Sprintf("/proc/%d/%s", r.PID, name)
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: its holder has ended: %w", r.Name, oneline.Cause(err))
	}
	// Between the record and the open, the kernel may have given the pid to another process.
	if start, err := procfs.StartTime(r.PID); err != nil || start != r.Start {
		f.Close()
		return nil, fmt.Errorf("sandbox %s: its holder has ended", r.Name)
	}
	return f, nil
}

// Inhabitants returns the number of processes in the sandbox by user id, without the holder.
func (r Record) Inhabitants() map[uint32]int {
	users := map[uint32]int{}
	for _, pid := range r.findInhabitants() {
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) == nil {
			users[st.Uid]++
		}
	}
	return users
}

// findInhabitants returns the processes in the holder's mount namespace, except the holder and
// slurmstepd, which enters it for its epilog.
func (r Record) findInhabitants() []int {
	own, err := procfs.ReadNamespace(r.PID, "mnt")
	if err != nil {
		return nil
	}
	var pids []int
	all, _ := procfs.ListNumbers("/proc")
	for _, pid := range all {
		if pid == r.PID || pid == os.Getpid() || !procfs.LivesIn(pid, own) {
			continue
		}
		if strings.HasPrefix(procfs.ReadName("/proc", pid), "slurmstepd") && procfs.IsRoots(pid) {
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

// EndInhabitants kills the processes that a command of `gojail run` left in its sandbox, as Slurm does at
// the end of a step. It gives up after a second.
func (r Record) EndInhabitants() {
	own, err := procfs.ReadNamespace(r.PID, "mnt")
	for until := time.Now().Add(time.Second); err == nil && time.Now().Before(until); {
		pids := r.findInhabitants()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			pidfd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			if procfs.LivesIn(pid, own) { // still the same process
				unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
			}
			unix.Close(pidfd)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// OpenNetwork opens the network namespace of a job that has one of its own.
func (s *State) OpenNetwork(job string) (*os.File, error) {
	r := ReadRecord(filepath.Join(s.JobDir(job), contract.NetRecord))
	if !r.Alive {
		return nil, fmt.Errorf("job %s: the holder of its network has ended", job)
	}
	return r.Namespace("net")
}

// Holder returns the record of a job's sandbox by its name, as `gojail ls` prints it (the jail's name if there is no
// --jail-mount). Without a name it returns that of the only sandbox.
func (s *State) Holder(job, name string) (Record, error) {
	if !JobRule.MatchString(job) {
		return Record{}, fmt.Errorf("%q is not a job id; see: gojail ls", job)
	}
	records, err := s.Sandboxes(job)
	if err != nil {
		return Record{}, err
	}
	var found []Record
	var names []string
	foreign := false
	for _, r := range records {
		foreign = foreign || r.IsForeign() && r.Lives()
		if r.Alive {
			names = append(names, r.Name)
			if name == "" || name == r.Name {
				found = append(found, r)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(names) == 0 && foreign:
		return Record{}, fmt.Errorf("the sandbox of job %s is of a version of gojail with another contract, which "+
			"this version cannot enter; see: gojail ls", job)
	case len(names) == 0:
		return Record{}, fmt.Errorf("job %s has no sandbox on this node; see: gojail ls", job)
	}
	return Record{}, fmt.Errorf("job %s has the sandboxes %s on this node; select one with --sandbox", job,
		strings.Join(names, ", "))
}
