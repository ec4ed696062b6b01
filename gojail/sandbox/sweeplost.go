// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// holderOrZygote is a gojail process that holds a sandbox or a template.
type holderOrZygote struct {
	state.Record
	holder bool // whether it holds a sandbox, and not a template
}

// endLostHolders ends gojail processes whose record was removed or damaged: nothing else finds them, and their mounts
// keep storage busy. A holder stays if other processes are in its sandbox.
func (s *sweep) endLostHolders() error {
	processes := findHoldersAndZygotes(s.state) // before the records, so that each of them has its record by then
	known, err := readRecorded(s.state)
	if err != nil {
		return err
	}
	for _, p := range processes {
		if known[p.PID] {
			continue
		}
		if p.holder && p.isInhabited() {
			s.report.Kept = append(s.report.Kept,
				fmt.Sprintf("process %d of gojail, whose record is lost: processes are in its sandbox", p.PID))
			continue
		}
		if killErr := p.Kill(teardownHolder); killErr != nil {
			err = oneline.Both(err, killErr)
		} else {
			s.report.Lost = append(s.report.Lost, p.PID)
		}
	}
	return err
}

// isInhabited reports whether a process lives in a namespace of the holder that is not this process's, or in a PID
// namespace below the holder's. Such a process would end with process 1 of its PID namespace, or lose its network with
// the holder of that.
func (p holderOrZygote) isInhabited() bool {
	namespaces := map[string]bool{}
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "uts"} {
		namespace, err := procfs.ReadNamespace(p.PID, kind)
		own, ownErr := procfs.ReadNamespace(os.Getpid(), kind)
		if err == nil && ownErr == nil && namespace != own {
			namespaces[namespace] = true
		}
	}
	pids, _ := procfs.ListNumbers("/proc")
	return slices.ContainsFunc(pids, func(pid int) bool {
		return pid != p.PID && pid != os.Getpid() && livesInAny(pid, namespaces) && !isHolder(pid)
	})
}

// livesInAny reports whether a namespace of a process, or a parent of its PID namespace, is one of the given ones. The
// parents count because a program in a sandbox may make PID namespaces of its own, as containers do (NS_GET_PARENT,
// ioctl_nsfs(2)).
func livesInAny(pid int, namespaces map[string]bool) bool {
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "uts"} {
		if link, err := procfs.ReadNamespace(pid, kind); err == nil && namespaces[link] {
			return true
		}
	}
	ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/pid", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == nil {
		parent, parentErr := unix.IoctlRetInt(ns, unix.NS_GET_PARENT)
		unix.Close(ns)
		if ns, err = parent, parentErr; err != nil {
			return false // EPERM: the previous one was the outermost
		}
		var st unix.Stat_t
		if unix.Fstat(ns, &st) == nil && namespaces[fmt.Sprintf("pid:[%d]", st.Ino)] {
			unix.Close(ns)
			return true
		}
	}
	return false
}

// isHolder reports whether a process is a holder of gojail. It does not count as an inhabitant: the other sandboxes of
// a job share its namespaces.
func isHolder(pid int) bool {
	return procfs.ReadName("/proc", pid) == contract.HolderName && procfs.IsRoots(pid)
}

// readRecorded returns the processes that have a record.
func readRecorded(s *state.State) (map[int]bool, error) {
	known := map[int]bool{}
	jobs, err := s.Jobs()
	zygotes, zygotesErr := s.Zygotes()
	for _, job := range jobs {
		zygotes = append(zygotes, job.Sandboxes...)
		// the holder of the namespaces that the job's sandboxes share
		zygotes = append(zygotes, state.ReadRecord(filepath.Join(s.JobDir(job.ID), contract.NamespaceRecord)))
	}
	for _, r := range zygotes {
		known[r.PID] = true
	}
	return known, oneline.Both(err, zygotesErr)
}

// findHoldersAndZygotes returns the holders and zygotes of this state directory. A process that builds a sandbox has
// another name, and ends by itself.
func findHoldersAndZygotes(s *state.State) (list []holderOrZygote) {
	for _, r := range findProcesses(s, func(name string) bool {
		return name == contract.HolderName ||
			name == contract.ZygoteName
	}) {
		list = append(list, holderOrZygote{r, r.Name == contract.HolderName})
	}
	return list
}

// isOfThisState reports whether the command line of a process names this state directory. Holders and zygotes are forks
// of the launcher and have its command line. Several slurmds of one machine have a state directory each.
func isOfThisState(s *state.State, pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	words, err := io.ReadAll(io.LimitReader(f, 16<<10))
	return err == nil && bytes.Contains(words, []byte("\x00state="+s.Path()+"\x00"))
}
