// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// What becomes of a step whose output, error file and working directory are in one directory.
const (
	lands   = ""        // the task finds its output at the path that Slurm names, and so do later jobs
	own     = "own"     // the task does, but the directory is the job's own
	refused = "refused" // Slurm or gojail say why
)

// place is a directory that a step's options name.
type place struct {
	dir  string
	want string // lands, own, refused, or a text of the line that refuses the step
}

// layout is a tree of a jail, and of its node, whose directories lead to one another.
type layout struct {
	name  string
	tree  string // shell script in the root of the jail, before gojail init
	node  string // shell script on the node
	undo  string // likewise, afterwards
	keys  string // of the jail, in gojail.toml
	on    []place
	init  string // what gojail init says, if it fails
	check string // a line of gojail check

	nested map[string]bool // directories of steps within a batch job, and whether they find their files there
}

const moveHome = "mkdir -p var; mv home var/home; "

var layouts = []layout{
	{name: "real", node: "mkdir -m 1777 /opt/out; echo written >/opt/out/e0.gojail; chmod 666 /opt/out/e0.gojail", undo: "rm -r /opt/out", on: []place{{"/home/alice", lands}, {"/data", lands}, {"/var/tmp", lands}, {"/tmp", own}, {"/dev/shm", own},
		{"/nosuch", refused}, {"/opt/out", "which is the node's"}, {"/root", refused}}},
	{name: "home", tree: moveHome + "ln -s var/home home", on: []place{{"/home/alice", lands}}},
	{name: "homeabs", tree: moveHome + "ln -s /var/home home", keys: "readonly = false\n", on: []place{{"/home/alice", lands}}},
	{name: "homechain", tree: "mkdir srv/x; mv home srv/x/home; ln -s srv/x first; ln -s first/home home", on: []place{{"/home/alice", lands}, {"/srv/x/home/alice", lands}}},
	{name: "homeboth", tree: moveHome + "ln -s var/home home", node: "mv /home /var/home; ln -s var/home /home", undo: "rm /home; mv /var/home /home",
		on: []place{{"/home/alice", lands}, {"/var/home/alice", lands}}},
	{name: "homenode", node: "mkdir /export; mv /home /export/home; ln -s /export/home /home", undo: "rm /home; mv /export/home /home; rmdir /export",
		on:    []place{{"/home/alice", lands}, {"/export/home/alice", refused}},
		check: `has no /export/home, where /home of this node leads`},
	{name: "homesame", tree: "mkdir export; ln -s ../home export/home", node: "mkdir /export; mv /home /export/home; ln -s /export/home /home",
		undo: "rm /home; mv /export/home /home; rmdir /export", on: []place{{"/home/alice", lands}, {"/export/home/alice", lands}}},
	{name: "homevar", tree: "ln -s ../home var/home", node: "mv /home /var/home; ln -s var/home /home", undo: "rm /home; mv /var/home /home",
		on: []place{{"/home/alice", lands}, {"/var/home/alice", lands}}},
	{name: "homemount", tree: moveHome + "ln -s var/home home", keys: "[[jail.homemount.mounts]]\ndestination = \"/var/home\"\nsource = \"/home\"\noptions = [\"rbind\"]\n", on: []place{{"/home/alice", lands}}},
	{name: "homeetc", tree: "mv home etc/home; ln -s etc/home home", on: []place{{"/home/alice", refused}},
		check: "/home of the jail leads to /etc/home"},
	{name: "datalink", tree: moveHome + "ln -s var/home home", keys: "data = [\"/home\"]\n", on: []place{{"/home/alice", lands}, {"/data", refused}}},
	{name: "datanone", keys: "data = [\"/home\", \"/nosuch\"]\n", on: []place{{"/home/alice", lands}}, check: "data: /nosuch has no effect"},
	{name: "vartmp", tree: "rmdir var/tmp; ln -s /tmp var/tmp", on: []place{{"/var/tmp", own}, {"/tmp", own}}},
	{name: "vartmpro", tree: "rmdir var/tmp; ln -s ../tmp var/tmp", keys: "readonly = true\n", on: []place{{"/var/tmp", own}, {"/tmp", own}}},
	{name: "vartmprw", tree: "rmdir var/tmp; ln -s /tmp var/tmp", keys: "writable = \"tmpfs\"\n", on: []place{{"/var/tmp", own}, {"/tmp", own}}},
	{name: "vartmpshm", tree: "rmdir var/tmp; ln -s /dev/shm var/tmp", on: []place{{"/var/tmp", own}, {"/dev/shm", own}}},
	{name: "vartmpnode", node: "mv /var/tmp /var/moved; ln -s /tmp /var/tmp", undo: "rm /var/tmp; mv /var/moved /var/tmp",
		on: []place{{"/var/tmp", refused}, {"/tmp", own}}, check: "/var/tmp of this node leads to another directory"},
	{name: "vartmpaway", node: "mkdir /scratch; mv /var/tmp /scratch/tmp; ln -s /scratch/tmp /var/tmp", undo: "rm /var/tmp; mv /scratch/tmp /var/tmp; rmdir /scratch",
		on: []place{{"/var/tmp", refused}, {"/home/alice", lands}}},
	{name: "vartmpboth", tree: "rmdir var/tmp; ln -s /tmp var/tmp", node: "mv /var/tmp /var/moved; ln -s /tmp /var/tmp", undo: "rm /var/tmp; mv /var/moved /var/tmp",
		on: []place{{"/var/tmp", own}, {"/tmp", own}}},
	{name: "tmp", tree: "rmdir tmp; ln -s var/tmp tmp", on: []place{{"/tmp", own}, {"/var/tmp", own}, {"/home/alice", lands}}},
	{name: "tmpshm", tree: "rmdir tmp; ln -s /dev/shm tmp", on: []place{{"/tmp", own}, {"/dev/shm", own}, {"/var/tmp", lands}}},
	{name: "tmpdata", tree: "rmdir tmp; mkdir -m 1777 data/tmp; ln -s data/tmp tmp", on: []place{{"/tmp", own}, {"/data", lands}}},
	{name: "tmplink", tree: "ln -s /tmp scratch; ln -s dev/shm ram", on: []place{{"/scratch", own}, {"/ram", own}}},
	{name: "linkmany", tree: "for i in 1 2 3 4 5 6 7 8 9; do mkdir -p -m 1777 srv/projects/of-users-$i; ln -s srv/projects/of-users-$i projects-of-users-$i; done",
		on: []place{{"/projects-of-users-1", lands}, {"/projects-of-users-9", lands}}},
	{name: "spoollink", node: "mv /var/spool/slurmd /var/spool/moved; ln -s moved /var/spool/slurmd", undo: "rm /var/spool/slurmd; mv /var/spool/moved /var/spool/slurmd",
		on: []place{{"/home/alice", lands}, {"/tmp", own}}},
	{name: "spoolparent", node: "mv /var/spool /var/moved; ln -s moved /var/spool", undo: "rm /var/spool; mv /var/moved /var/spool",
		on: []place{{"/home/alice", lands}, {"/tmp", own}}},
	{name: "nested", tree: "mkdir -m 1777 data/in; ln -s in data/inside; ln -s /opt/out data/outside; echo written >data/in/i0.gojail", node: "mkdir -m 1777 /opt/out; echo written >/opt/out/i0.gojail",
		undo: "rm -r /opt/out", nested: map[string]bool{"/data/inside": true, "/data/outside": false, "/data/missing": false}},
	{name: "tmpnone", tree: "rmdir tmp; ln -s /nosuch tmp", init: "a symbolic link to /nosuch, which does not exist in the jail",
		on: []place{{"/home/alice", "mount target /tmp does not exist in the jail"}}, check: "mount targets are missing in /srv/jails/tmpnone: /tmp (a symbolic link to /nosuch)"},
	{name: "tmpfile", tree: "rmdir tmp; touch tmp", init: "mount target /tmp in /srv/jails/tmpfile must be a directory",
		on: []place{{"/home/alice", refused}}, check: "mount target /tmp in /srv/jails/tmpfile must be a directory"},
}

// TestOutputIsWhereSlurmSays starts steps whose files and working directories are in directories that lead to
// others, in the jail and on the node. Each step finds its output at the path that Slurm names, or is refused with
// a line, and nothing is left anywhere else.
func TestOutputIsWhereSlurmSays(t *testing.T) {
	config := strings.ReplaceAll(layoutConfig, "NAME", "debian")
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: config[:strings.LastIndex(config, "[[")]})
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) { l.run(t, c) })
	}
}

func (l *layout) run(t *testing.T, c *harness.Cluster) {
	shell := func(script string) {
		r := c.Root("sh", "-euc", script)
		require.Zero(t, r.Code, r)
	}
	require.NoError(t, c.WriteConfig(strings.Replace(strings.ReplaceAll(layoutConfig, "NAME", l.name), "[[", l.keys+"[[", 1)))
	shell(strings.ReplaceAll(layoutTree, "NAME", l.name) + l.tree)
	if l.node != "" {
		shell(l.node)
		defer shell("cd /; " + l.undo)
	}
	made := c.Gojail("n1", "init", l.name)
	assert.Equal(t, l.init == "", made.Code == 0, made)
	assert.Contains(t, made.Stderr, l.init)
	if l.check != "" {
		assert.Contains(t, c.Gojail("n1", "check").Stdout, l.check)
	}
	root := "/srv/jails/" + l.name
	places := []string{"/tmp/", "/var/tmp/", "/dev/shm", root + "/tmp", root + "/dev/shm", root + "/run"}
	for i, p := range l.on {
		l.runSteps(t, c, p)
		if l.init == "" && (i < 1 || p.want != lands) { // without a jail all columns are the same
			l.runAllocation(t, c, p)
			if !p.isWritten() {
				l.runWithInput(t, c, p)
			}
		}
		if i < 1 || l.name == "real" {
			l.runBatch(t, c, p)
		}
		switch p.want {
		case lands:
			places = append(places, "-not", "-path", root+p.dir+"/*")
		case own:
			places = append([]string{root + p.dir}, places...)
		}
	}
	for dir, found := range l.nested {
		l.runNested(t, c, dir, found)
		places = append(places, "-not", "-path", root+"/data/in/*")
	}
	require.True(t, c.WaitIdle())
	stray := c.Root(append(append([]string{"find"}, places...), "-name", "*.gojail")...)
	assert.Empty(t, stray.Stdout, "in a directory that no job of the jail sees: %s", l.name)
}

// isWritten reports whether a step finds its files in a place.
func (p *place) isWritten() bool { return p.want == lands || p.want == own }

// checkOutcome checks what a step said and whether the task found its files.
func (l *layout) checkOutcome(t *testing.T, p place, found bool, said string) {
	t.Helper()
	assert.Equal(t, p.isWritten(), found, "%s in %s: %s", l.name, p.dir, said)
	if p.isWritten() {
		return
	}
	assert.Regexp(t, `gojail: |Could not open|couldn't chdir`, said, "%s in %s", l.name, p.dir)
	if strings.Contains(said, "] error: Could not open std") { // in the log of slurmd
		assert.Contains(t, said, `gojail: Slurm looked for --output, --error and --input of the step in jail "`+l.name+`", not on the node: the directory must exist `+
			"in the jail, in a data directory such as /home, or be /tmp, /var/tmp or /dev/shm; see: gojail check")
	}
	if p.want != refused {
		assert.Contains(t, said, p.want, l.name)
	}
}

// findOutput is a task that finds its output in the file of its first argument.
const findOutput = `echo written; grep -q written "$1"`

// runSteps runs steps by srun, each in an allocation of its own: with a path of the output, with a working
// directory, and from a directory that is one on the node, where Slurm may start the task in /tmp.
func (l *layout) runSteps(t *testing.T, c *harness.Cluster, p place) {
	run := func(dir, args string) (harness.Result, string) {
		since := len(c.Log("n1"))
		c.Root("rm", "-f", "/home/alice/e.gojail")
		r := c.Do(harness.Command{User: harness.Alice, Dir: dir, Args: []string{"sh", "-c", "srun -Q -wn1 --jail=" + l.name + " " + args}})
		return r, r.String() + readFile(c, "/home/alice/e.gojail") + c.Log("n1")[since:]
	}
	const isThere = " sh -c '[ $(/bin/pwd -P) = $(cd -P PLACE && /bin/pwd -P) ]'"
	for i, args := range []string{
		"--output=PLACE/o%t.gojail --error=/home/alice/e.gojail sh -c '" + findOutput + "' sh PLACE/o0.gojail",
		"--chdir=PLACE --output=o%t.gojail sh -c '" + findOutput + "' sh PLACE/o0.gojail",
		"--chdir=PLACE" + isThere,
	} {
		r, said := run("/", strings.ReplaceAll(args, "PLACE", p.dir))
		if i == 2 && l.init == "" && !p.isWritten() {
			p.want = refused // without a file gojail has nothing to say: Slurm says that it cannot change to the directory
		}
		l.checkOutcome(t, p, r.Code == 0 && !strings.Contains(r.Stderr, "launch failed") && !strings.Contains(r.Stderr, "couldn't chdir"), said)
	}
	if at := c.Run(harness.Alice, "sh", "-c", "cd -P "+p.dir+" && pwd -P"); at.Code == 0 && l.init == "" {
		r, said := run(p.dir, strings.ReplaceAll(isThere, "PLACE", strings.TrimSpace(at.Stdout)))
		// Below /opt Slurm finds the node's directory, and says itself that the task cannot change to it.
		explains := l.explainsDirectory(said) || (strings.HasPrefix(p.dir, "/opt/") && strings.Contains(said, "couldn't chdir to"))
		assert.True(t, r.Code == 0 || explains, "%s from %s: %s", l.name, p.dir, said)
	}
}

// explainsDirectory reports whether a line says why a step runs in /tmp.
func (l *layout) explainsDirectory(said string) bool {
	return regexp.MustCompile(`gojail: jail "` + l.name + `" has no /\S+, from which the job was submitted: the step runs in /tmp; ask your administrator to mount ` +
		`that directory in the jail, or give --chdir=DIR`).MatchString(said)
}

// probeAllocation is a script of salloc with steps of one job. What it prints begins with + where a task finds its
// file, else with -.
const probeAllocation = `
probe() { column=$1; shift; if srun -Q "$@" | grep -q written; then echo "+$column"; else echo "-$column"; fi; }
probe error --error=PLACE/e%t.gojail sh -c 'echo written >&2; cat PLACE/e0.gojail'
probe later cat PLACE/o0.gojail
probe variables sh -c 'echo written >$TMPDIR/t.gojail && cp PLACE/made/t.gojail $HOME/h.gojail && cat PLACE/h.gojail'
`

// runAllocation runs steps in one allocation of salloc: with paths of the error file and the input, with what an
// earlier job left, and with a directory in variables of programs, which Slurm does not open.
func (l *layout) runAllocation(t *testing.T, c *harness.Cluster, p place) {
	since := len(c.Log("n1"))
	columns := map[string]bool{"error": p.isWritten(), "later": p.want == lands, "variables": p.isWritten()}
	r := c.Do(harness.Command{User: harness.Alice, Dir: "/", Env: []string{"TMPDIR=" + p.dir + "/made", "HOME=" + p.dir},
		Args: []string{"salloc", "-Q", "-n1", "-wn1", "--jail=" + l.name, "sh", "-c", strings.ReplaceAll(probeAllocation, "PLACE", p.dir)}})
	said := r.String() + c.Log("n1")[since:]
	for column, want := range columns {
		found := strings.Contains(r.Stdout, "+"+column+"\n")
		assert.NotEqual(t, found, strings.Contains(r.Stdout, "-"+column+"\n"), "%s in %s: %s: %s", l.name, p.dir, column, said)
		if column == "variables" && !want {
			continue // the jail may have the directory, whatever Slurm can open there
		}
		assert.Equal(t, want, found, "%s in %s: %s: %s", l.name, p.dir, column, said)
	}
	l.checkOutcome(t, p, p.isWritten(), said)
}

// runWithInput runs a batch job that has only its input in a place. A step of srun with --input= that contains %t may hang if its task
// is short, in Slurm alone (of 24.11.5 the fourth of plain srun --input=/tmp/e%t.in true), and the job's other steps with it.
func (l *layout) runWithInput(t *testing.T, c *harness.Cluster, p place) {
	since := len(c.Log("n1"))
	job := c.Batch(harness.Alice, "grep -q written\n", "-wn1", "--jail="+l.name, "--chdir=/", "--output=/home/alice/i.gojail", "--input="+p.dir+"/e0.gojail")
	l.checkOutcome(t, p, job.State == "COMPLETED", job.String()+c.Log("n1")[since:])
}

// runBatch does with sbatch what runAllocation does.
func (l *layout) runBatch(t *testing.T, c *harness.Cluster, p place) {
	since := len(c.Log("n1"))
	args := []string{"-wn1", "--jail=" + l.name, "--chdir=" + p.dir, "--output=b.gojail", "--error=" + p.dir + "/be.gojail"}
	script := `#!/bin/sh
cd /
echo written
echo written >&2
echo written >"$TMPDIR/bt.gojail"
echo written >"$HOME/bh.gojail"
for name in b be bt bh; do
	grep -q written PLACE/$name.gojail || exit 1
done
`
	if p.want == lands {
		args = append(args, "--input=o0.gojail")
		script += "grep -q written\n"
	}
	job := c.BatchEnv(harness.Alice, []string{"TMPDIR=" + p.dir, "HOME=" + p.dir}, strings.ReplaceAll(script, "PLACE", p.dir), args...)
	log := c.Log("n1")[since:]
	l.checkOutcome(t, p, job.State == "COMPLETED", job.String()+log)
	if strings.Contains(log, "] error: Could not open std") {
		assert.Contains(t, c.Root("scontrol", "-o", "show", "job", job.ID).Stdout, "AdminComment=gojail: Slurm looked for --output, ", "the user sees why")
	}
}

// nestedSteps is a batch script with steps whose files, or working directory, are in one directory. It prints + and a column where a step finds
// its file, else -, and waits for each line that says why it did not. srun ends with 0 where slurmstepd could not open its files.
const nestedSteps = `#!/bin/sh
probe() {
	column=$1; shift
	said=$(srun "$@" 2>&1) && case $said in *"launch failed"*) false ;; esac && found=+ || found=-
	echo "$said"
	echo "$found$column"
}
probe output --output=PLACE/o%t.gojail sh -c 'echo written; grep -q written PLACE/o0.gojail'
probe error --error=PLACE/e%t.gojail sh -c 'echo written >&2; grep -q written PLACE/e0.gojail'
probe cwd --chdir=PLACE sh -c '[ "$(/bin/pwd -P)" = "$(cd -P PLACE && /bin/pwd -P)" ]'
until [ $(grep -c '^-' /home/alice/n.out) -le $(grep -c 'gojail: \|chdir' /home/alice/n.out) ]; do sleep 0.05; done
`

// runNested starts steps by srun in a batch job, whose output shows the user why a step finds no file.
func (l *layout) runNested(t *testing.T, c *harness.Cluster, dir string, found bool) {
	job := c.Batch(harness.Alice, strings.ReplaceAll(nestedSteps, "PLACE", dir), "-wn1", "--jail="+l.name, "--output=/home/alice/n.out", "--chdir=/home/alice")
	said := readFile(c, "/srv/jails/"+l.name+"/home/alice/n.out")
	assert.Equal(t, "COMPLETED", job.State, "%s: %s: %s", dir, job, said)
	for _, column := range []string{"output", "error", "cwd"} {
		assert.Equal(t, found, strings.Contains(said, "+"+column+"\n"), "%s: %s: %s", dir, column, said)
		assert.Equal(t, !found, strings.Contains(said, "-"+column+"\n"), "%s: %s: %s", dir, column, said)
	}
}
