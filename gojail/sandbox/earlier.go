// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
)

// Present is the job that now has a number. Slurm uses numbers again, after slurmctld -c or when they wrap, so what
// this node has of that number may belong to an earlier job.
type Present struct {
	Job   string
	UID   uint32
	Begun time.Time // when it began on this node, if its Prolog asks and so nothing of it can be here yet; else zero
}

// EndEarlier ends what an earlier job of the same number left on this node, as the end of that job would have done:
// sandboxes, network, files and records. Everything of another user belongs to an earlier job, because Slurm has one
// job of a number; everything of the same user does if it is older than the present job. EndEarlier returns an error if
// processes are still in a sandbox of the earlier job, and does nothing if an earlier job left nothing. release
// releases the job's network.
func EndEarlier(s *state.State, c *config.Config, p Present, until time.Time, release func(job string) error) error {
	if !state.JobRule.MatchString(p.Job) || contract.IsLogin(p.Job) {
		return fmt.Errorf("%q is not a job id", p.Job)
	}
	lock, err := lockJob(s, p.Job, earlierOf(time.Now().Add(teardownLock), until))
	if err != nil {
		return fmt.Errorf("job %s: %w", p.Job, err)
	}
	e := &earlier{Present: p, state: s, config: c, parent: findScratch(s, c.Scratch, p.Job)}
	moved, err := e.end(until, release)
	if !isRecorded(s, p.Job) { // lockJob has created the directory
		removeRecords(s, p.Job)
	}
	lock.Close()
	if err != nil || !moved {
		return err
	}
	// Until they are removed, the files count against the limit of the present job's /tmp.
	return emptyTrashOf(e.parent, p.Job, earlierOf(time.Now().Add(earlierFiles), until))
}

// earlierFiles is how long the present job waits for the removal of an earlier job's files.
const earlierFiles = time.Second

// earlier is one run of EndEarlier.
type earlier struct {
	Present
	state  *state.State
	config *config.Config
	parent string // directory above the job's scratch directory
}

// end ends what belongs to an earlier job, and reports whether it moved files of that job to the trash. The caller
// holds the job's lock.
func (e *earlier) end(until time.Time, release func(job string) error) (moved bool, err error) {
	others := e.hasOthersRecords()
	switch {
	case others || e.isOlder():
		if others {
			err = e.checkUninhabited()
		}
		if err == nil {
			err = release(e.Job)
		}
		if err == nil {
			err = endLocked(e.state, e.parent, e.Job, until)
		}
	case e.findOtherOwner() != "":
		if err = e.checkUninhabited(); err == nil {
			err = moveToTrash(e.parent, e.Job, until)
		}
	default:
		return false, nil
	}
	if err == nil {
		e.state.ForgetEnded(e.Job)
	}
	return err == nil, err
}

// hasOthersRecords reports whether the records belong to another user's job. A damaged record proves nothing.
func (e *earlier) hasOthersRecords() bool {
	noted, _ := os.ReadFile(filepath.Join(e.state.JobDir(e.Job), contract.OwnerFile))
	if owner := strings.TrimSpace(string(noted)); owner != "" && owner != strconv.FormatUint(uint64(e.UID), 10) {
		return true
	}
	records, _ := e.state.Sandboxes(e.Job)
	records = append(records, state.ReadRecord(filepath.Join(e.state.JobDir(e.Job), contract.NetRecord)))
	return slices.ContainsFunc(records, func(r state.Record) bool { return !r.Damaged && r.UID != e.UID })
}

// isOlder reports whether the records are older than the present job, which has just begun here. A slurmd that has lost
// its state runs the Prolog of a running job again. Such a job has slurmstepds, and the sandboxes that were made since
// it began are its own.
func (e *earlier) isOlder() bool {
	if e.Begun.IsZero() || !isRecorded(e.state, e.Job) || !e.state.Begun(e.Job).Before(e.Begun) {
		return false
	}
	var running stepds
	step, err := running.find(e.config.Slurm.Spool, e.config.Node, e.Job)
	return step == "" && err == nil
}

// findOtherOwner returns the uid of another user who owns the scratch directory of that number, or "" if the directory
// is missing, root's or the present user's.
func (e *earlier) findOtherOwner() string {
	info, err := os.Lstat(filepath.Join(e.parent, e.Job))
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || st.Uid == e.UID {
		return ""
	}
	return strconv.FormatUint(uint64(st.Uid), 10)
}

// checkUninhabited fails if a process is in a sandbox of the earlier job. That job may be running if two clusters share
// a state directory by mistake.
func (e *earlier) checkUninhabited() error {
	records, err := e.state.Sandboxes(e.Job)
	owner := e.findOtherOwner()
	if err == nil &&
		(slices.ContainsFunc(records,
			func(r state.Record) bool { return r.Lives() && holderOrZygote{r, true}.isInhabited() }) ||
			owner != "" && isMountedByUser(filepath.Join(e.parent, e.Job), owner)) {
		err = errors.New("a job of another user with the same id left its sandbox on this node, and processes are " +
			"still in it; ask your administrator to end them, and try again")
	}
	return err
}
