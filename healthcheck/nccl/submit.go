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
	"github.com/gojail/gojail/internal/slurmcmd"
)

// Submission is how a test is submitted.
type Submission struct {
	Sbatch []string `json:"sbatch"` // the command
	Script string   `json:"script"` // its standard input
}

// submission makes a whole-node job of a test: of low priority, so that anybody
// else's job that could start goes first. reservation is "" for the configured one.
func (s *Slurm) submission(t *Test, reservation string) Submission {
	c := s.NCCL
	argv := []string{"sbatch", "--parsable", "--job-name=" + t.Name,
		"--nodes=" + strconv.Itoa(len(t.Nodes)), "--nodelist=" + strings.Join(t.Nodes, ","), "--ntasks-per-node=" + strconv.Itoa(c.Tasks),
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
	return Submission{append(argv, c.Options...), script(c, len(t.Nodes))}
}

// script runs all_reduce_perf over the sizes that are judged by. srun binds no
// processes to cores: NCCL knows better where its threads belong.
func script(c *settings.Settings, nodes int) string {
	var sizes []int64
	for _, row := range c.Rows(nodes) {
		size, _ := settings.Bytes(row.Size) // was checked
		sizes = append(sizes, size)
	}
	if len(sizes) == 0 {
		sizes = []int64{1 << 30}
	}
	words := []string{"srun", "--ntasks-per-node=" + strconv.Itoa(c.Tasks), "--cpu-bind=none"}
	if c.MPI != "" {
		words = append(words, "--mpi="+c.MPI)
	}
	words = append(words, c.Command, "-b", strconv.FormatInt(slices.Min(sizes), 10), "-e", strconv.FormatInt(slices.Max(sizes), 10),
		"-f", "2", "-g", strconv.Itoa(c.GPUs/c.Tasks))
	return "#!/bin/sh\nexec " + shell(append(words, c.Args...)) + "\n"
}

// shell quotes words for sh.
func shell(words []string) string {
	var quoted []string
	for _, word := range words {
		if word == "" || strings.Trim(word, letters+"_./=:,@%+-") != "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted = append(quoted, word)
	}
	return strings.Join(quoted, " ")
}

// submit submits a test and returns the job's number.
func (s *Slurm) submit(ctx context.Context, t *Test, reservation string) (string, error) {
	sub := s.submission(t, reservation)
	text, err := s.call(ctx, s.User, sub.Script, sub.Sbatch...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(text), ";")
	if _, err := strconv.ParseUint(id, 10, 32); err != nil {
		return "", fmt.Errorf("cannot understand what sbatch says: %s", plain(text))
	}
	return id, nil
}

// file is where this machine sees the output of a test.
func (s *Slurm) file(t *Test) string {
	dir := s.NCCL.Here
	if dir == "" {
		dir = s.NCCL.Output
	}
	return filepath.Join(dir, t.Name+".out")
}

// readOutput reads what the job wrote so far, with the rights of its account.
func (s *Slurm) readOutput(ctx context.Context, t *Test) (string, error) {
	return s.call(ctx, s.User, "", "/usr/bin/head", "-c", strconv.Itoa(slurmcmd.OutputMost), "--", s.file(t))
}

// removeOutputs removes the output of tests that were passed; the others are kept for people.
func (s *Slurm) removeOutputs(ctx context.Context, tests []*Test) error {
	argv := []string{"/bin/rm", "-f", "--"}
	for _, t := range tests {
		if t.pass() {
			argv = append(argv, s.file(t))
		}
	}
	_, err := s.call(ctx, s.User, "", argv...)
	return err
}
