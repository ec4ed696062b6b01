// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/nccl/settings"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/oneline"
)

// Submission is the sbatch command and script of a test.
type Submission struct {
	Sbatch []string `json:"sbatch"` // the command
	Script string   `json:"script"` // its standard input
}

// buildSubmission returns the whole-node job of a test, with low priority, so that any other
// job that could start goes first. reservation is "" for the configured one.
func (s *Slurm) buildSubmission(t *Test, reservation string) Submission {
	c := s.NCCL
	argv := []string{"sbatch", "--parsable", "--job-name=" + t.Name,
		"--nodes=" + strconv.Itoa(len(t.Nodes)), "--nodelist=" + strings.Join(t.Nodes, ","), "--ntasks-per-node=" +
			strconv.Itoa(c.Tasks),
		"--exclusive", "--mem=0", "--no-requeue", "--nice=10000", "--chdir=/",
		"--time=" + strconv.Itoa(int(math.Ceil(c.Time.Minutes()))),
		"--output=" + filepath.Join(c.Output, t.Name+".out"), "--open-mode=truncate"}
	if reservation == "" {
		reservation = c.Reservation
	}
	gres := c.Gres
	switch gres {
	case "":
		gres = "gpu:" + strconv.Itoa(c.GPUs)
	case "none":
		gres = ""
	}
	for _, option := range [][2]string{{"--gres=", gres}, {"--partition=", c.Partition}, {"--qos=", c.QOS},
		{"--account=", c.Account}, {"--reservation=", reservation}} {
		if option[1] != "" {
			argv = append(argv, option[0]+option[1])
		}
	}
	return Submission{append(argv, c.Options...), buildScript(c, len(t.Nodes))}
}

// logDomains has NCCL log the NVLink domain of each GPU.
const logDomains = `export NCCL_DEBUG="${NCCL_DEBUG:-INFO}" NCCL_DEBUG_SUBSYS="${NCCL_DEBUG_SUBSYS:-INIT}"` + "\n"

// buildScript returns a script that runs all_reduce_perf over the judged sizes. srun does not
// bind processes to cores, since NCCL places its threads itself.
func buildScript(c *settings.Settings, nodes int) string {
	var sizes []int64
	for _, row := range c.ListExpected(nodes) {
		size, _ := settings.ParseBytes(row.Size) // checked by Settings.Check
		sizes = append(sizes, size)
	}
	if len(sizes) == 0 {
		sizes = []int64{1 << 30}
	}
	words := []string{"srun", "--ntasks-per-node=" + strconv.Itoa(c.Tasks), "--cpu-bind=none"}
	if c.MPI != "" {
		words = append(words, "--mpi="+c.MPI)
	}
	words = append(words, c.Command, "-b", strconv.FormatInt(slices.Min(sizes), 10), "-e",
		strconv.FormatInt(slices.Max(sizes), 10),
		"-f", "2", "-g", strconv.Itoa(c.GPUs/c.Tasks))
	log := ""
	if nodes > 1 {
		log = logDomains
	}
	return "#!/bin/sh\n" + log + "exec " + quoteShell(append(words, c.Args...)) + "\n"
}

// quoteShell quotes words for sh.
func quoteShell(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, oneline.ShellWord(word))
	}
	return strings.Join(quoted, " ")
}

// submitJob submits a test and returns the job's number.
func (s *Slurm) submitJob(ctx context.Context, t *Test, reservation string) (string, error) {
	sub := s.buildSubmission(t, reservation)
	text, err := s.runCommand(ctx, s.User, sub.Script, sub.Sbatch...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(text), ";")
	if _, err := strconv.ParseUint(id, 10, 32); err != nil {
		return "", fmt.Errorf("cannot parse the output of sbatch: %s", sanitizeText(text))
	}
	return id, nil
}

// outputPath returns the path of a test's output on this machine.
func (s *Slurm) outputPath(t *Test) string {
	dir := s.NCCL.Here
	if dir == "" {
		dir = s.NCCL.Output
	}
	return filepath.Join(dir, t.Name+".out")
}

// readOutput reads the current output of the job, with the rights of its account.
func (s *Slurm) readOutput(ctx context.Context, t *Test) (string, error) {
	return s.runCommand(ctx, s.User, "", "/usr/bin/head", "-c", strconv.Itoa(command.OutputMost), "--", s.outputPath(t))
}

// removeOutputs removes the output of tests that passed; other output is kept for inspection.
func (s *Slurm) removeOutputs(ctx context.Context, tests []*Test) error {
	argv := []string{"/bin/rm", "-f", "--"}
	for _, t := range tests {
		if t.hasPassed() {
			argv = append(argv, s.outputPath(t))
		}
	}
	_, err := s.runCommand(ctx, s.User, "", argv...)
	return err
}
