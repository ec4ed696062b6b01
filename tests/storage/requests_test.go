// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// launch is a row of the table of requests: what n1 does, and whose requests it makes.
type launch struct {
	name string
	by   map[string]nfs.Counts // by program
}

// sum is the number of requests of the programs that the function wants.
func (l launch) sum(wanted func(program string) bool) (n int) {
	for program, counts := range l.by {
		if wanted(program) {
			n += counts.Sum()
		}
	}
	return n
}

// ours says whether a program is a process of gojail's (prctl(2), PR_SET_NAME), or of its commands, which start /proc/self/exe for what may hang.
func ours(program string) bool {
	return (strings.HasPrefix(program, "gojail") || program == "exe") && !probes(program)
}

// probes says whether a program asks the storage whether it answers.
func probes(program string) bool { return program == "gojail-prober" }

func slurms(program string) bool { return strings.HasPrefix(program, "slurm") }

func theTasks(program string) bool { return !ours(program) && !slurms(program) && !probes(program) }

func (l launch) String() string {
	var words []string
	for _, program := range slices.Sorted(maps.Keys(l.by)) {
		words = append(words, fmt.Sprintf("%s: %v", program, l.by[program]))
	}
	return fmt.Sprintf("%-32s gojail %3d, its probe %2d, slurmstepd %2d, the task and read-ahead %3d (%s)", l.name, l.sum(ours), l.sum(probes), l.sum(slurms), l.sum(theTasks), strings.Join(words, "; "))
}

// traced runs an action and says whose requests it made.
func traced(t *testing.T, name string, action func()) launch {
	t.Helper()
	trace, err := nfs.StartTrace()
	require.NoError(t, err)
	action()
	by, err := trace.Stop()
	require.NoError(t, err)
	l := launch{name, by}
	t.Log(l)
	return l
}

// forget drops what the kernel keeps of every file that nobody has open.
func forget(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
}

// coldBound is what gojail's own part of a template may cost with cold caches.
const coldBound = 140

// probeBound is what one probe of the storage may cost: its mounts and the way to the root.
const probeBound = 8

// healthBound is what a run of the health check may ask of each jail: one probe, and
// the attributes of the mount targets once their cache has expired.
const healthBound = 60

// TestRequests counts what each launch asks the server, and whose request each is: the
// task's own part is what the same program makes through chroot(1).
func TestRequests(t *testing.T) {
	b := bed(t)
	n1 := b.hosts["n1"]
	step := func() { prints(t, "", b.srun("open", "n1", "true")) }
	bare := func() {
		r := n1.root("chroot", "--userspec=5001:5001", "/nfs/open/jail", "/usr/bin/true")
		require.Zero(t, r.Code, r)
	}
	plain := func() {
		prints(t, "", b.cluster.Run(harness.Alice, "srun", "-wn1", "--chdir=/nfs/open/home/alice", "true"))
	}
	forget(t)
	traced(t, "chroot, caches cold", bare)
	traced(t, "chroot, at once", bare)
	plain()
	slurm := traced(t, "step without a jail, cwd on NFS", plain)
	template := b.coldTemplate(t, "no template, caches cold")
	assert.LessOrEqual(t, template.sum(ours), coldBound, "a template's own requests: %v", template)
	rows := []launch{
		traced(t, "first step", step),
		traced(t, "its end", func() { require.True(t, b.waitEmpty()) }),
		traced(t, "two steps of a job", func() {
			r := b.cluster.Run(harness.Alice, "salloc", "-wn1", "sh", "-c", "srun --jail=open true && srun --jail=open true")
			require.Zero(t, r.Code, r)
		}),
	}
	for _, row := range rows {
		assert.Zero(t, row.sum(ours), "%s: gojail's own requests: %v", row.name, row)
		assert.LessOrEqual(t, row.sum(probes), 2*probeBound, "%s: probes: %v", row.name, row)
	}
	assert.LessOrEqual(t, rows[0].sum(slurms), slurm.sum(slurms), "slurmstepd asks no more than without gojail")
	forget(t)
	traced(t, "first step, caches cold", step)
	traced(t, "gojail check", func() { n1.gojail("check") })
	health := traced(t, "health check", func() { n1.root("gojail-healthcheck", "--node=n1", "--dry-run") })
	assert.LessOrEqual(t, health.sum(ours), len(trees)*healthBound, "a health check: %v", health)
	assert.Zero(t, traced(t, "gojail ls", func() { n1.gojail("ls") }).sum(ours))
}

// coldTemplate traces a first step on a node that has neither a template nor anything in its caches.
func (b *testBed) coldTemplate(t *testing.T, name string) launch {
	t.Helper()
	require.Zero(t, b.hosts["n1"].gojail("reload").Code)
	forget(t)
	return traced(t, name, func() { prints(t, "", b.srun("open", "n1", "true")) })
}

// TestTemplateOfALargeJail: what a template asks does not grow with the jail.
func TestTemplateOfALargeJail(t *testing.T) {
	b := bed(t)
	small := b.coldTemplate(t, "a jail")
	var added []string
	for _, dir := range []string{"", "etc", "usr", "var", "home"} {
		for i := range 200 {
			added = append(added, b.file("open/jail", dir, fmt.Sprintf("more-%d", i)))
		}
	}
	t.Cleanup(func() {
		for _, dir := range added {
			os.Remove(dir)
		}
	})
	for _, dir := range added {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	large := b.coldTemplate(t, "and with 1000 directories more")
	assert.InDelta(t, small.sum(ours), large.sum(ours), 5)
}
