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
	"github.com/gojail/gojail/internal/slurm"
)

// Slurm runs the commands of Slurm, which are in the directory of scontrol.
type Slurm struct {
	config.Slurm
	NCCL *settings.Settings
	User *Account // owner of the jobs
}

// newProgram returns a program with its arguments, whose timeout is that of one request to the controller.
func (s *Slurm) newProgram(argv ...string) slurm.Program {
	p := slurm.Program{Command: command.Command{Path: argv[0], Args: argv[1:]}, Conf: s.Conf, Timeout: s.Timeout}
	if !filepath.IsAbs(p.Path) {
		p.Path = filepath.Join(filepath.Dir(s.Scontrol), p.Path)
	}
	return p
}

// runCommand runs a command, as the jobs' account if as is not nil, and returns its standard output.
func (s *Slurm) runCommand(ctx context.Context, as *Account, input string, argv ...string) (string, error) {
	p := s.newProgram(argv...)
	p.Input = input
	if as != nil {
		p.Credential, p.Env = as.newCredential(), as.buildEnvironment()
	}
	text, err := slurm.Run(ctx, p)
	if err = refuse(err); errors.As(err, new(*refusedError)) {
		return "", err
	}
	return text, err
}

// refuse returns the error of a program; that of one that failed as a refusedError.
func refuse(err error) error {
	var failed *command.ExitError
	if errors.As(err, &failed) {
		return &refusedError{failed}
	}
	return err
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

// listNodes returns the states of the partition's nodes in Slurm's words: "idle". A node that cannot be read is not
// tested.
func (s *Slurm) listNodes(ctx context.Context) (map[string]string, error) {
	argv := []string{"sinfo", "--Node"}
	if s.NCCL.Partition != "" {
		argv = append(argv, "--partition="+s.NCCL.Partition)
	}
	states := map[string]string{}
	odd, err := slurm.Rows(ctx, s.newProgram(argv...), []string{"%N", "%T"}, func(row []string) error {
		if !isName(row[0]) || row[1] == "" {
			return errors.New("a node does not have a name and a state")
		}
		states[row[0]] = row[1]
		return nil
	})
	if err != nil {
		return nil, refuse(err)
	}
	if len(states) == 0 && odd.Count > 0 {
		return nil, fmt.Errorf("cannot parse the output of sinfo: %s", sanitizeText(odd.First))
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
// its end. Other jobs of the account may have any name.
func (s *Slurm) listJobs(ctx context.Context) ([]slurmJob, error) {
	var jobs []slurmJob
	odd, err := slurm.Rows(ctx, s.newProgram("squeue", "--states=all", "--user="+s.User.Name),
		[]string{"%i", "%T", "%j"}, func(row []string) error {
			switch {
			case row[0] == "" || row[1] == "":
				return errors.New("a job does not have a number and a state")
			case strings.HasPrefix(row[2], prefix):
				jobs = append(jobs, slurmJob{row[0], row[1], row[2]})
			}
			return nil
		})
	if err == nil && odd.Count > 0 { // it may be a job of this tool
		err = fmt.Errorf("cannot parse the output of squeue: %s", sanitizeText(odd.First))
	}
	return jobs, refuse(err)
}

// unfinished are the states of pending and running jobs (squeue(1), JOB STATE CODES).
var unfinished = []string{"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING",
	"EXPEDITING", "STAGE_OUT", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}

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
	anew := slices.ContainsFunc(fields, func(f string) bool {
		return strings.HasPrefix(f, "Restarts=") &&
			f != "Restarts=0"
	})
	return anew || !slices.Contains(fields, "SuspendTime=None"), nil
}
