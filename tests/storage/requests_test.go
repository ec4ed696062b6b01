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

// ours says whether a program is a process of gojail's (prctl(2), PR_SET_NAME) or of its commands.
func ours(program string) bool { return strings.HasPrefix(program, "gojail") && !probes(program) }

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

// What a run of the health check may ask of each storage once the caches have expired: the way to the root and one probe,
// and in the first run also what is needed to look into the jail, whatever its size.
const (
	healthBound      = 3
	healthWholeBound = 150
)

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
	assert.Zero(t, traced(t, "gojail ls", func() { n1.gojail("ls") }).sum(ours))
}

// TestRequestsOfTheHealthCheck: the first run looks into the jails, and each later one of a node on which nothing changed
// makes one probe of each storage. Not with --dry-run, which remembers nothing.
func TestRequestsOfTheHealthCheck(t *testing.T) {
	b := bed(t)
	n1 := b.hosts["n1"]
	for _, tree := range trees { // with the shortest caches
		require.NoError(t, n1.mount("4.2", "/export/"+tree, "/nfs/"+tree, "nosuid", "nodev", "actimeo=1"))
		t.Cleanup(func() { assert.Zero(t, n1.root("umount", "-l", "/nfs/"+tree).Code) })
	}
	require.Zero(t, n1.gojail("reload").Code)
	for _, tree := range trees {
		prints(t, tree, b.srun(tree, "n1", "cat", "/etc/gojail-jail"))
	}
	changes := 0
	change := func() { // so that the next run looks into the jails
		changes++
		b.configure(t, fmt.Sprintf("%s# change %d\n", config, changes))
	}
	check := func(name string) int {
		row := traced(t, "health check, "+name, func() {
			r := n1.root("gojail-healthcheck", "--node=n1")
			require.Regexp(t, `(?m)^jail\s+(?i:ok)\s+all jails can be assembled`, r.Stdout, r)
		})
		return row.sum(ours)
	}
	change()
	forget(t)
	first := check("first, caches cold")
	assert.LessOrEqual(t, first, len(trees)*healthWholeBound)
	assert.Greater(t, first, len(trees)*healthBound, "it looks into the jails")
	for _, name := range []string{"later", "later again"} {
		expire()
		later := check(name + ", caches expired")
		assert.LessOrEqual(t, later, len(trees)*healthBound)
		assert.GreaterOrEqual(t, later, len(trees), "each storage is asked")
	}
	b.enlarge(t)
	change()
	forget(t)
	assert.LessOrEqual(t, check("first with 1000 directories more"), len(trees)*healthWholeBound)
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
	b.enlarge(t)
	large := b.coldTemplate(t, "and with 1000 directories more")
	assert.InDelta(t, small.sum(ours), large.sum(ours), 5)
}

// enlarge adds 1000 directories to the jail open, for the rest of the test.
func (b *testBed) enlarge(t *testing.T) {
	t.Helper()
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
}
