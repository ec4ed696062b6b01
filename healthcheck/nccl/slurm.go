// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nccl/settings"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurmconf"
)

// Slurm runs the commands of Slurm, which are in the directory of scontrol.
type Slurm struct {
	config.Slurm
	NCCL *settings.Settings
	User *Account // owner of the jobs
}

// runCommand runs a command, as the jobs' account if as is not nil, and returns its standard
// output. Its timeout is that of one request to the controller.
func (s *Slurm) runCommand(ctx context.Context, as *Account, input string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	c := command.Command{Path: argv[0], Args: argv[1:], Env: slurmconf.Environment(s.Conf), Input: input}
	if !filepath.IsAbs(c.Path) {
		c.Path = filepath.Join(filepath.Dir(s.Scontrol), c.Path)
	}
	if as != nil {
		c.Credential, c.Env = as.newCredential(), append(c.Env, as.buildEnvironment()...)
	}
	text, err := command.Run(ctx, c)
	var failed *command.ExitError
	if errors.As(err, &failed) {
		return "", &refusedError{failed}
	}
	return text, err
}

// refusedError reports a command that failed with an exit code.
type refusedError struct{ *command.ExitError }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Path, e.Err, sanitizeFirstLine(e.Stderr))
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isName reports whether a node's name may be a component of a path.
func isName(name string) bool {
	return name != "" && strings.Trim(name, letters+"._-") == "" && strings.Contains(letters, name[:1])
}

// listNodes returns the states of the partition's nodes in Slurm's words: "idle".
func (s *Slurm) listNodes(ctx context.Context) (map[string]string, error) {
	argv := []string{"sinfo", "--noheader", "--Node", "--format=%N|%T"}
	if s.NCCL.Partition != "" {
		argv = append(argv, "--partition="+s.NCCL.Partition)
	}
	text, err := s.runCommand(ctx, nil, "", argv...)
	if err != nil {
		return nil, err
	}
	states := map[string]string{}
	for line := range strings.Lines(text) {
		name, state, found := strings.Cut(strings.TrimSpace(line), "|")
		if !found || !isName(name) || state == "" {
			return nil, fmt.Errorf("cannot parse the output of sinfo: %s", sanitizeText(line))
		}
		states[name] = state
	}
	if len(states) == 0 {
		return nil, errors.New("sinfo shows no nodes; check nccl.partition")
	}
	return states, nil
}

// isFree reports whether a job of this tool would start on a node at once.
func (s *Slurm) isFree(state string) bool {
	return state == "idle" || s.NCCL.Reservation != "" && state == "reserved"
}

// slurmJob is a job of this tool, as Slurm shows it.
type slurmJob struct {
	ID, State, Name string // State in Slurm's words: "RUNNING"
}

// listJobs returns all jobs of this tool that Slurm knows. Slurm removes a job MinJobAge after
// its end.
func (s *Slurm) listJobs(ctx context.Context) ([]slurmJob, error) {
	text, err := s.runCommand(ctx, nil, "", "squeue", "--noheader", "--states=all", "--user="+s.User.Name, "--format=%i|%T|%j")
	if err != nil {
		return nil, err
	}
	var jobs []slurmJob
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), "|", 3)
		if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
			return nil, fmt.Errorf("cannot parse the output of squeue: %s", sanitizeText(line))
		}
		if strings.HasPrefix(parts[2], prefix) {
			jobs = append(jobs, slurmJob{parts[0], parts[1], parts[2]})
		}
	}
	return jobs, nil
}

// unfinished are the states of pending and running jobs (squeue(1), JOB STATE CODES).
var unfinished = []string{"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING",
	"STAGE_OUT", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}

// isOver reports whether the job has ended.
func (j slurmJob) isOver() bool { return !slices.Contains(unfinished, j.State) }

// cancelJob cancels a job.
func (s *Slurm) cancelJob(ctx context.Context, id string) error {
	_, err := s.runCommand(ctx, nil, "", "scancel", id)
	return err
}

// wasDisturbed reports whether a job was suspended or restarted at any time, so that its
// figures prove nothing; it returns an error if that can no longer be determined.
func (s *Slurm) wasDisturbed(ctx context.Context, id string) (bool, error) {
	text, err := s.runCommand(ctx, nil, "", "scontrol", "--oneliner", "show", "job", id)
	if err != nil {
		return false, err
	}
	fields := strings.Fields(text)
	if !slices.Contains(fields, "JobId="+id) {
		return false, fmt.Errorf("scontrol show job did not show job %s", id)
	}
	anew := slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "Restarts=") && f != "Restarts=0" })
	return anew || !slices.Contains(fields, "SuspendTime=None"), nil
}
