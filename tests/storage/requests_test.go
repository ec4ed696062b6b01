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

// sumRequests is the number of requests of the programs that the function wants.
func (l launch) sumRequests(wanted func(program string) bool) (n int) {
	for program, counts := range l.by {
		if wanted(program) {
			n += counts.Sum()
		}
	}
	return n
}

// isGojail says whether a program is a process of gojail's (prctl(2), PR_SET_NAME) or of its commands.
func isGojail(program string) bool { return strings.HasPrefix(program, "gojail") && !isProber(program) }

// isProber says whether a program asks the storage whether it answers.
func isProber(program string) bool { return program == "gojail-prober" }

func isSlurm(program string) bool { return strings.HasPrefix(program, "slurm") }

func isTask(program string) bool {
	return !isGojail(program) && !isSlurm(program) && !isProber(program)
}

func (l launch) String() string {
	var words []string
	for _, program := range slices.Sorted(maps.Keys(l.by)) {
		words = append(words, fmt.Sprintf("%s: %v", program, l.by[program]))
	}
	return fmt.Sprintf("%-32s gojail %3d, its probe %2d, slurmstepd %2d, the task and read-ahead %3d (%s)", l.name, l.sumRequests(isGojail), l.sumRequests(isProber), l.sumRequests(isSlurm), l.sumRequests(isTask), strings.Join(words, "; "))
}

// traceRequests runs an action and says whose requests it made.
func traceRequests(t *testing.T, name string, action func()) launch {
	t.Helper()
	trace, err := nfs.StartTrace()
	require.NoError(t, err)
	ended := false
	defer func() {
		if !ended { // the action has ended the test; the next one has a trace of its own
			trace.Stop()
		}
	}()
	action()
	ended = true
	by, err := trace.Stop()
	require.NoError(t, err)
	l := launch{name, by}
	t.Log(l)
	return l
}

// coldBound is what gojail's own part of a template may cost with cold caches.
const coldBound = 140

// probeBound is what one probe of the storage may cost: its mounts and the way to the root.
const probeBound = 8

// What a run of the health check may ask of each storage: one probe; and in the first run also what is needed to look into the
// jail, whatever its size, of which an emulated machine asks some again, since these caches are short.
const (
	healthBound      = 1
	healthWholeBound = 200
)

// TestRequests counts what each launch asks the server, and whose request each is: the
// task's own part is what the same program makes through chroot(1).
func TestRequests(t *testing.T) {
	b := sharedBed(t)
	n1 := b.hosts["n1"]
	step := func() { requireOutput(t, "", b.runStep("open", "n1", "true")) }
	bare := func() {
		r := n1.runAsRoot("chroot", "--userspec=5001:5001", "/nfs/open/jail", "/usr/bin/true")
		require.Zero(t, r.Code, r)
	}
	plain := func() {
		requireOutput(t, "", b.cluster.Run(harness.Alice, "srun", "-wn1", "--chdir=/nfs/open/home/alice", "true"))
	}
	dropCaches(t)
	traceRequests(t, "chroot, caches cold", bare)
	traceRequests(t, "chroot, at once", bare)
	plain()
	slurm := traceRequests(t, "step without a jail, cwd on NFS", plain)
	template := b.traceColdTemplate(t, "no template, caches cold")
	assert.LessOrEqual(t, template.sumRequests(isGojail), coldBound, "a template's own requests: %v", template)
	rows := []launch{
		traceRequests(t, "first step", step),
		traceRequests(t, "its end", func() { require.True(t, b.waitForNoJob()) }),
		traceRequests(t, "two steps of a job", func() {
			r := b.cluster.Run(harness.Alice, "salloc", "-wn1", "sh", "-c", "srun --jail=open true && srun --jail=open true")
			require.Zero(t, r.Code, r)
		}),
	}
	for _, row := range rows {
		assert.Zero(t, row.sumRequests(isGojail), "%s: gojail's own requests: %v", row.name, row)
		assert.LessOrEqual(t, row.sumRequests(isProber), 2*probeBound, "%s: probes: %v", row.name, row)
	}
	assert.Positive(t, slurm.sumRequests(isSlurm), "the trace sees requests: %v", slurm)
	assert.LessOrEqual(t, rows[0].sumRequests(isSlurm), slurm.sumRequests(isSlurm), "slurmstepd asks no more than without gojail")
	dropCaches(t)
	traceRequests(t, "first step, caches cold", step)
	traceRequests(t, "gojail check", func() { n1.runGojail("check") })
	assert.Zero(t, traceRequests(t, "gojail ls", func() { n1.runGojail("ls") }).sumRequests(isGojail))
}

// TestRequestsOfTheHealthCheck: the first run looks into the jails, and each later one of a node on which nothing changed
// makes one probe of each storage. Not with --dry-run, which remembers nothing.
func TestRequestsOfTheHealthCheck(t *testing.T) {
	b := sharedBed(t)
	n1 := b.hosts["n1"]
	for _, tree := range trees { // with the shortest caches
		require.NoError(t, n1.mountPath("4.2", "/export/"+tree, "/nfs/"+tree, "nosuid", "nodev", "actimeo=1"))
		t.Cleanup(func() { assert.Zero(t, n1.runAsRoot("umount", "-l", "/nfs/"+tree).Code) })
	}
	// An emulated machine with cold caches takes longer than the 8 s of the check, and what is unfinished is not looked into again.
	patient := b.cluster.Path("/etc/gojail/health.toml")
	require.NoError(t, os.WriteFile(patient, []byte("total = \"2m\"\ncheck.jail.timeout = \"1m\"\n"), 0o644))
	t.Cleanup(func() { require.NoError(t, os.Remove(patient)) })
	require.Zero(t, n1.runGojail("reload").Code)
	for _, tree := range trees {
		requireOutput(t, tree, b.runStep(tree, "n1", "cat", "/etc/gojail-jail"))
	}
	changes := 0
	change := func() { // so that the next run looks into the jails
		changes++
		b.configure(t, fmt.Sprintf("%s# change %d\n", config, changes))
	}
	check := func(name string) int {
		row := traceRequests(t, "health check, "+name, func() {
			r := n1.runAsRoot("gojail-healthcheck", "--node=n1")
			require.Regexp(t, `(?m)^jail\s+(?i:ok)\s+all jails can be assembled`, r.Stdout, r)
		})
		return row.sumRequests(isGojail)
	}
	change()
	dropCaches(t)
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
	dropCaches(t)
	assert.LessOrEqual(t, check("first with 1000 directories more"), len(trees)*healthWholeBound)
}

// traceColdTemplate traces a first step on a node that has neither a template nor anything in its caches.
func (b *testBed) traceColdTemplate(t *testing.T, name string) launch {
	t.Helper()
	require.Zero(t, b.hosts["n1"].runGojail("reload").Code)
	dropCaches(t)
	return traceRequests(t, name, func() { requireOutput(t, "", b.runStep("open", "n1", "true")) })
}

// TestTemplateOfALargeJail: what a template asks does not grow with the jail.
func TestTemplateOfALargeJail(t *testing.T) {
	b := sharedBed(t)
	small := b.traceColdTemplate(t, "a jail")
	b.enlarge(t)
	large := b.traceColdTemplate(t, "and with 1000 directories more")
	assert.InDelta(t, small.sumRequests(isGojail), large.sumRequests(isGojail), 5)
}

// enlarge adds 1000 directories to the jail open, for the rest of the test.
func (b *testBed) enlarge(t *testing.T) {
	t.Helper()
	var added []string
	for _, dir := range []string{"", "etc", "usr", "var", "home"} {
		for i := range 200 {
			added = append(added, b.serverPath("open/jail", dir, fmt.Sprintf("more-%d", i)))
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
