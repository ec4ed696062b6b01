// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Job is a batch job that has ended, or could not be submitted.
type Job struct {
	ID       string
	State    string // COMPLETED, FAILED, ...; "" when sbatch refused
	ExitCode string // status:signal, as scontrol prints it
	Output   string // of the script, from wherever the file lies, without srunNotices
	Seen     string // the path of the output file in the machine, "" if there is none
	Submit   Result // of sbatch
}

func (j Job) String() string {
	return fmt.Sprintf("job %s %s %s, output in %q: %s\nsbatch: %s", j.ID, j.State, j.ExitCode, j.Seen, j.Output, j.Submit)
}

// Batch submits a script and waits for the end of the job. Without --output in
// args the output goes to slurm-JOB.out in the user's home.
func (c *Cluster) Batch(user, script string, args ...string) Job {
	return c.BatchEnv(user, nil, script, args...)
}

// BatchEnv is Batch with variables in the environment of sbatch.
func (c *Cluster) BatchEnv(user string, env []string, script string, args ...string) Job {
	if !strings.HasPrefix(script, "#!") {
		script = "#!/bin/bash\n" + script
	}
	submit := c.Do(Command{User: user, Env: env, Stdin: script, Args: append([]string{"sbatch", "--parsable"}, args...)})
	job := Job{ID: strings.TrimSpace(submit.Stdout), Submit: submit}
	if submit.Code != 0 {
		return job
	}
	return c.WaitJob(job)
}

var unfinished = []string{"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "STAGE_OUT"}

// srunNotices matches the lines of srun's own that a script's output may have: of a step that had to wait for the one before, and of
// the number of its threads on a machine with few CPUs (26.11).
var srunNotices = regexp.MustCompile(`(?m)^srun: (Step created for |Job \d+ step creation (temporarily|still) disabled, |warning: WORKERPOOL_THREADS=).*\n`)

// WaitJob waits for the end of a job and reads its output.
func (c *Cluster) WaitJob(job Job) Job {
	var fields map[string]string
	Poll(Timeout, func() bool {
		fields = c.JobFields(job.ID)
		job.State = fields["JobState"]
		return job.State != "" && !slices.Contains(unfinished, job.State)
	})
	job.ExitCode = fields["ExitCode"]
	job.Output, job.Seen = c.ReadAnywhere(fields["StdOut"])
	job.Output = srunNotices.ReplaceAllString(job.Output, "")
	return job
}

// JobFields returns the fields of `scontrol show job`; none for an unknown job.
func (c *Cluster) JobFields(id string) map[string]string {
	fields := map[string]string{}
	for _, word := range strings.Fields(c.Root("scontrol", "-o", "show", "job", id).Stdout) {
		if key, value, found := strings.Cut(word, "="); found && fields[key] == "" {
			fields[key] = value
		}
	}
	return fields
}

// ReadAnywhere reads a file from the node, or else from the first jail that has it, and returns its path as
// well. The node comes first, because a jail's storage may hang.
func (c *Cluster) ReadAnywhere(file string) (text, seen string) {
	for _, jail := range append([]string{""}, c.options.Jails...) {
		seen = file
		if jail != "" {
			seen = path.Join("/srv/jails", jail, file)
		}
		if text, err := os.ReadFile(c.Path(seen)); err == nil {
			return string(text), seen
		}
	}
	return "", ""
}

// Poll calls done until it returns true, and reports whether it did so in time. At most a tenth of the time is that of calls: a command
// of Slurm keeps a processor busy that the awaited process needs.
func Poll(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); ; {
		begin := time.Now()
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(min(max(9*time.Since(begin), 25*time.Millisecond), 250*time.Millisecond))
	}
}
