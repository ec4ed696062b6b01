// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// findVictim returns the pid of a victim on the node.
func (s *site) findVictim(t *testing.T, tag string) int {
	t.Helper()
	for _, p := range s.Find(attackPath + " victim " + tag) {
		if strings.HasPrefix(p.Command, attackPath) {
			return p.Pid
		}
	}
	require.Fail(t, "no victim "+tag)
	return 0
}

// mark is the text that a job writes, and that must not appear elsewhere.
const mark = "written by an attack"

// opening is a batch job that makes slurmstepd open files outside of the jail.
type opening struct {
	name   string
	jail   string
	option string
	file   string // a pattern of files on the node: one of them shows the mark if the attack wrote there
	text   string // the job's output shows it if the attack read there
	output string // of the job, in the jail, for text
	limit  string // why the attack is not stopped, or that it is a control
}

// listOpenings returns the attacks of TestThroughSlurm; the arguments are paths of processes.
func listOpenings(node, other, bobs string) []opening {
	const control = "it is a control"
	return []opening{
		{name: "control: write", jail: "none", option: "--output=/data/alice/attack-control", file: "/data/alice/attack-control", limit: control},
		{name: "control: write by a descriptor", jail: "none", option: "--output=/proc/self/root/data/alice/attack-root", file: "/data/alice/attack-root", limit: control},
		{name: "write to the node's dev shm", option: "--output=/dev/shm/attack", file: "/dev/shm/attack"},
		{name: "write to the node's tmp", option: "--output=/tmp/attack", file: "/tmp/attack"},
		{name: "write to the node's var tmp", option: "--output=/var/tmp/attack", file: "/var/tmp/attack"},
		{name: "write to the node's home", option: "--output=/home/alice/attack", file: "/home/alice/attack"},
		{name: "write through slurmstepd's root", option: "--output=/proc/self/root/data/alice/attack-own", file: "/data/alice/attack-own"},
		{name: "write through slurmstepd's directory", option: "--output=/proc/self/cwd/../../../../data/alice/attack-cwd", file: "/data/alice/attack-cwd"},
		{name: "write through slurmstepd's descriptors", option: "--output=/proc/self/fd/%a/data/alice/attack-fd-%a", file: "/data/alice/attack-fd-*"},
		{name: "write through a process of the node", option: "--output=" + node + "/root/data/alice/attack-node", file: "/data/alice/attack-node"},
		{name: "write to another job's tmp", option: "--output=" + other + "/root/tmp/attack-job", file: other + "/root/tmp/attack-job"},
		{name: "read another job's environment", option: "--input=" + other + "/environ", text: "SLURM_JOB_ID="},
		{name: "control: read the environment", jail: "none", option: "--input=" + other + "/environ", text: "SLURM_JOB_ID=", limit: control},
		{name: "read another user's environment", option: "--input=" + bobs + "/environ", text: "SLURM_JOB_ID="},
		{name: "read a file of the node", option: "--input=" + outside, text: "a file of the node"},
	}
}

// TestThroughSlurm covers files that slurmstepd opens at paths of the user's, before there is a task in the jail.
func TestThroughSlurm(t *testing.T) {
	s := sharedSite(t)
	s.startVictims(t, "closed")
	process := func(tag string) string { return fmt.Sprintf("/proc/%d", s.findVictim(t, tag)) }
	list := listOpenings(process("node"), process("job-of-alice"), process("job-of-bob"))
	var ids []string
	for i, o := range list {
		if o.jail == "" {
			o.jail = "closed"
		}
		args := []string{"sbatch", "--parsable", "-wn1", "--jail=" + o.jail, o.option}
		if strings.Contains(o.option, "%a") {
			args = append(args, "--array=3-30")
		}
		if o.text != "" {
			list[i].output = fmt.Sprintf("/home/alice/attack-%d", i)
			args = append(args, "--output="+list[i].output)
			if o.jail != "none" {
				list[i].output = "/srv/jails/" + o.jail + list[i].output
			}
		}
		r := s.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/bash\necho " + mark + "\ntr '\\0' '\\n'\n", Args: args})
		require.Zero(t, r.Code, r)
		ids = append(ids, strings.TrimSpace(r.Stdout))
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.Root("squeue", "-h", "-j", strings.Join(ids, ",")).Stdout == "" }))
	for i, o := range list {
		t.Run(o.name, func(t *testing.T) {
			assert.Equal(t, o.limit != "", s.wasOpened(o), "%s %s: %v", o.option, o.limit, s.JobFields(ids[i]))
		})
	}
}

// wasOpened reports whether a job read or wrote the file of the attack, and removes what it wrote.
func (s *site) wasOpened(o opening) bool {
	pattern, want := o.file, mark
	if o.text != "" {
		pattern, want = o.output, o.text
	}
	files, _ := filepath.Glob(s.Path(pattern))
	done := false
	for _, file := range files {
		text, _ := os.ReadFile(file)
		done = done || strings.Contains(string(text), want)
		os.Remove(file)
	}
	return done
}
