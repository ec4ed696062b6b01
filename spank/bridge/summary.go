// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurm"
)

// summaryTimeout is the timeout for slurmdbd's answer; after summaryPause it is asked once more.
const (
	summaryTimeout = 10 * time.Second
	summaryPause   = 5 * time.Second
)

// writeSummary writes the summary of a job that ended to its record in slurmdbd, where sacct finds it. scontrol(1)
// changes no job that has ended, and slurmctld has told slurmdbd of the end by the time of the epilog.
func (r *request) writeSummary() ([]mount.Tree, error) {
	c, err := r.loadConfig()
	if err != nil || c.Slurm.Summary == "" { // it was changed meanwhile
		return nil, err
	}
	path := node.FindSlurmCommand(c, "sacctmgr")
	if path == "" {
		return nil, fmt.Errorf("cannot write the summary of job %s: there is no sacctmgr in /usr/bin, or the "+
			"directory bin of a path of slurm.host in %s", r.words["job"], c.Path)
	}
	conf := c.Slurm.Conf
	if c.Slurm.Cache != "" {
		conf = c.Slurm.Cache
	}
	p := slurm.Program{Command: command.Command{Path: path, Args: []string{"--immediate", "modify", "job", "where",
		"jobid=" + r.words["job"],
		"set", c.Slurm.Summary + "=" + describeEnd(r.words["summary"])}}, Conf: filepath.Join(conf, "slurm.conf"),
		Timeout: summaryTimeout}
	for try := 0; ; try++ {
		_, err = slurm.Run(context.Background(), p)
		if err == nil || try > 0 {
			break
		}
		time.Sleep(summaryPause) // slurmdbd may not know of a short job yet
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the summary of job %s to slurmdbd: %w", r.words["job"], err)
	}
	return nil, nil
}

// describeEnd returns the fields of a job's line in the journal that its record in slurmdbd does not have.
func describeEnd(line string) string {
	if _, fields, found := strings.Cut(line, " jail="); found {
		return "gojail: jail=" + fields
	}
	return "gojail: " + line
}
