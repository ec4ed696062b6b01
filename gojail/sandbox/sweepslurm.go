// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// squeuePlaces is where Slurm's squeue may be; PATH is not asked.
var squeuePlaces = []string{
	"/usr/bin/squeue", "/usr/local/bin/squeue", "/opt/slurm/bin/squeue", "/usr/local/slurm/bin/squeue",
}

// squeueDeadline is how long the controller may take for its answer.
const squeueDeadline = 5 * time.Second

// finished are the states of a job that will run no more (squeue(1), "JOB STATE
// CODES"). COMPLETING is not one of them: its processes are being ended.
var finished = []string{
	"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
	"OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT",
}

// findStepd finds a slurmstepd of the job, or gives "".
func findStepd(spool, node, job string) (string, error) {
	step, err := findStepdSocket(spool, node, job)
	if step == "" && err == nil {
		step, err = findStepdProcess(job)
	}
	if step == "" || err != nil {
		return "", err
	}
	return "its step " + formatStepName(step[strings.LastIndex(step, ".")+1:]) + " runs here", nil
}

// formatStepName gives the steps with a name of their own, as slurm.h has their numbers.
func formatStepName(number string) string {
	names := map[string]string{"4294967291": "batch", "4294967292": "extern", "4294967290": "interactive"}
	if name := names[number]; name != "" {
		return name
	}
	return number
}

// findStepdSocket tries the sockets NODE_JOB.STEP in the spool directory: one that
// nobody serves refuses.
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

// isAnswering tells whether somebody listens on a socket. Not knowing counts as yes.
func isAnswering(dir *os.File, name string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	// By descriptor: a socket's address holds 107 bytes only (unix(7)).
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)})
	return err != unix.ECONNREFUSED && err != unix.ENOENT && err != unix.ENOTSOCK
}

// findStepdProcess looks for the title that slurmstepd gives itself: "slurmstepd: [JOB.STEP]".
// A user's process can give itself the same: only root's count.
func findStepdProcess(job string) (string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", fmt.Errorf("cannot read /proc: %w", oneline.Cause(err))
	}
	for _, e := range entries {
		if name := e.Name(); name[0] < '1' || name[0] > '9' {
			continue
		}
		text, err := procfs.ReadTitle(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // gone
		}
		if rest, is := bytes.CutPrefix(text, []byte("slurmstepd: ["+job+".")); is && procfs.IsRoots(e.Name()) {
			step, _, _ := strings.Cut(string(rest), "]")
			return job + "." + step, nil
		}
	}
	return "", nil
}

// askController gives the reason to keep a job, or "" when Slurm knows that it ended.
func (w *sweep) askController(job string) string {
	if !w.ask {
		return "the controller did not answer for an earlier job"
	}
	i := slices.IndexFunc(w.squeue, isPresent)
	if i < 0 {
		return "there is no squeue on this node to ask whether it ended"
	}
	ctx, cancel := context.WithTimeout(context.Background(), squeueDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.squeue[i], "-h", "-t", "all", "-o", "%A %T", "-j", job)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "SLURM_CONF=" + filepath.Join(w.config.Slurm.Conf, "slurm.conf")}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	why, answered := readVerdict(job, stdout.String(), stderr.String(), err)
	w.ask = answered
	return why
}

// readVerdict reads squeue's answer: the reason to keep the job or "", and whether there was an answer at all.
func readVerdict(job, stdout, stderr string, err error) (why string, answered bool) {
	if err != nil {
		if strings.Contains(stderr, "Invalid job id specified") {
			return "", true
		}
		first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
		return fmt.Sprintf("squeue gives no answer (%v: %.200s)", err, first), false
	}
	seen := false
	for line := range strings.Lines(stdout) {
		id, state, is := strings.Cut(strings.TrimSpace(line), " ")
		if !is || id != job {
			continue // another task of its array
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
