// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// left prints what a job may leave on a node, a line each: processes of users and of slurmstepd, sandboxes, mounts of the
// node's own mount namespace, files, what gojail knows of VFs, addresses and interfaces, and cgroups. What slurmd keeps there
// is not a job's, nor the scratch directory that the end of a job prepares for one to come.
const left = `
ps -eo user:16=,args= | grep -E '^(alice|bob) |slurmstepd' | grep -v -E 'slurmstepd infinity|grep' | sed 's/^/process /'
cut -d' ' -f5 /proc/1/mountinfo | sort | sed 's/^/mount /'
find /run/gojail/jobs /run/gojail/ended /run/gojail/net/jobs /var/lib/gojail/jobs /var/lib/gojail/jobs/.trash /var/lib/slurm/slurmd -mindepth 1 \
	\( -name .trash -o -name .tried -o -name 'spare.*' -o -name 'cred_state*' -o -name 'hwloc_topo*' -o -name 'n[12]_*.*' \) -prune -o -print 2>/dev/null | sort | sed 's/^/file /'
gojail vf ls | sed 's/^/vf /'
ip -o link | sed 's/^[0-9]*: \([^:]*\):.*/link \1/' | sort
ip -o addr | awk '{ print "address", $2, $4 }' | sort
find /sys/fs/cgroup -type d -name 'job_*' | sed 's/^/cgroup /'
`

// inventory returns what is on each node. A step ends a little later for its user than for the node.
func (s *site) inventory() map[string]string {
	all := map[string]string{}
	for _, g := range s.nodes() {
		last := ""
		poll(6*time.Minute, func() bool {
			r := g.run("", left)
			settled := r.Stdout == last && !strings.Contains(last, "process ") && !strings.Contains(last, "cgroup ")
			last = r.Stdout
			return settled
		})
		all[g.machine.Name] = last
	}
	return all
}

// assertNothingLeft compares the nodes with an earlier inventory, and asks Slurm whether it has drained one.
func (s *site) assertNothingLeft(t *testing.T, before map[string]string) {
	t.Helper()
	s.requireIdle(t)
	assert.Equal(t, before, s.inventory())
	assert.Empty(t, s.head.run("", "sinfo -hRo '%E %N'").Stdout)
}
