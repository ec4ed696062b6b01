// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/slurmconf"
)

// squeueDeadline is how long the sweep waits for squeue.
const squeueDeadline = 5 * time.Second

// finished are the states of a job that will not run again (squeue(1), "JOB STATE CODES"). COMPLETING is
// not one of them: Slurm is still ending the job's processes.
var finished = []string{
	"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
	"OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT",
}

// findStepd finds a slurmstepd of the job, or returns "".
func findStepd(spool, node, job string) (string, error) {
	step, err := findStepdSocket(spool, node, job)
	if step == "" && err == nil {
		step, err = findStepdProcess(job)
	}
	if step == "" || err != nil {
		return "", err
	}
	return "its step " + formatStepName(step[strings.LastIndex(step, ".")+1:]) + " runs on this node", nil
}

// formatStepName returns the name of a step, for steps that have a name and a number in slurm.h.
func formatStepName(number string) string {
	names := map[string]string{"4294967291": "batch", "4294967292": "extern", "4294967290": "interactive"}
	if name := names[number]; name != "" {
		return name
	}
	return number
}

// findStepdSocket finds a socket NODE_JOB.STEP in the spool directory on which a process listens.
func findStepdSocket(spool, node, job string) (string, error) {
	dir, err := os.Open(spool)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the spool directory %s: %w", spool, oneline.Cause(err))
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return "", fmt.Errorf("cannot read the spool directory %s: %w", spool, oneline.Errno(err))
	}
	for _, name := range names {
		if strings.HasPrefix(name, node+"_"+job+".") && isAnswering(dir, name) {
			return name, nil
		}
	}
	return "", nil
}

// isAnswering reports whether a process listens on a socket, or that is unknown.
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

// findStepdProcess looks for the title that slurmstepd sets, "slurmstepd: [JOB.STEP]". A user's process
// can set the same title, so only root's processes count. The title of another process is not read: that waits
// while a task of it is in mmap(2) of a file on storage that does not answer.
func findStepdProcess(job string) (string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", fmt.Errorf("cannot read /proc: %w", oneline.Cause(err))
	}
	for _, e := range entries {
		if name := e.Name(); name[0] < '1' || name[0] > '9' {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		comm, _ := os.ReadFile(filepath.Join(proc, "comm"))
		if !bytes.HasPrefix(comm, []byte("slurmstepd")) || !procfs.IsRoots(e.Name()) {
			continue
		}
		text, err := procfs.ReadTitle(filepath.Join(proc, "cmdline"))
		if err != nil {
			continue // has ended
		}
		if rest, is := bytes.CutPrefix(text, []byte("slurmstepd: ["+job+".")); is {
			step, _, _ := strings.Cut(string(rest), "]")
			return job + "." + step, nil
		}
	}
	return "", nil
}

// askController returns the reason to keep a job, or "" if Slurm reports that it ended.
func (s *sweep) askController(job string) string {
	if !s.ask {
		return "slurmctld did not answer for an earlier job"
	}
	if s.squeue == "" {
		return "cannot ask whether it ended: no squeue on this node"
	}
	ctx, cancel := context.WithTimeout(context.Background(), squeueDeadline)
	defer cancel()
	text, err := runSqueue(ctx, s.squeue, s.config.Slurm.Conf, "-t", "all", "-o", "%A %T", "-j", job)
	why, answered := readVerdict(job, text, err)
	s.ask = answered
	return why
}

// runSqueue returns what squeue prints without a header; conf is the directory of slurm.conf.
func runSqueue(ctx context.Context, squeue, conf string, args ...string) (string, error) {
	return command.Run(ctx, command.Command{
		Path: squeue, Args: append([]string{"-h"}, args...), Env: slurmconf.Environment(filepath.Join(conf, "slurm.conf")),
	})
}

// isUnknownJob reports whether squeue failed since slurmctld does not know the job, or has forgotten it.
func isUnknownJob(err error) bool {
	var failed *command.ExitError
	return errors.As(err, &failed) && strings.Contains(failed.Stderr, "Invalid job id specified")
}

// readVerdict parses squeue's output. It returns the reason to keep the job, or "", and whether slurmctld
// answered at all.
func readVerdict(job, stdout string, err error) (why string, answered bool) {
	if isUnknownJob(err) {
		return "", true
	}
	if err != nil {
		return fmt.Sprintf("cannot ask whether it ended: %v", err), false
	}
	seen := false
	for line := range strings.Lines(stdout) {
		id, state, is := strings.Cut(strings.TrimSpace(line), " ")
		if !is || id != job {
			continue // another task of its job array
		}
		if !slices.Contains(finished, state) {
			return "it is " + state, true
		}
		seen = true
	}
	if !seen {
		return "squeue does not list it", true
	}
	return "", true
}
