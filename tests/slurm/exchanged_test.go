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

// exchanges are directories that lead to output of a job, and shell scripts in the root of its jail that put others in their
// places.
var exchanges = []struct {
	name, tree, exchange string
	at                   string // where the earlier output is then, in the root of the jail; "": in the job's own /tmp
	follows              bool   // a later job finds its output where the link leads then
}{
	{"directory", "mkdir data/out", "mv data/out data/old; mkdir data/out", "data/old", false},
	{"data", "mkdir data/out", "mv data data.old; mkdir -p data/out", "data.old/out", false},
	{"link", "mkdir data/a data/b; ln -s a data/out", "ln -s b data/new; mv -T data/new data/out", "data/a", false},
	{"toplink", "mkdir -p srv/a/out srv/b/out; rmdir data; ln -s srv/a data", "ln -s srv/b new; mv -T new data", "srv/a/out", true},
	{"toplinkabs", "mkdir -p srv/a/out srv/b/out; rmdir data; ln -s /srv/a data", "ln -s /srv/b new; mv -T new data", "srv/a/out", true},
	{"toplinktwo", "mkdir -p srv/a/out srv/b/out; rmdir data; ln -s srv/a one; ln -s one data", "ln -s srv/b new; mv -T new one", "srv/a/out", true},
	{"toplinkbelow", "mkdir -p srv/a/out srv/b/out; rmdir data; ln -s a srv/l; ln -s srv/l data", "ln -s b srv/new; mv -T srv/new srv/l", "srv/a/out", false},
	{"toplinkgone", "mkdir -p srv/a/out; rmdir data; ln -s srv/a data", "rm data; mkdir -p data/out", "srv/a/out", true},
	{"toplinktmp", "rmdir data; ln -s tmp data", "mkdir -p srv/b/out; ln -s srv/b new; mv -T new data", "", true},
	{"toplinktotmp", "mkdir -p srv/a/out; rmdir data; ln -s srv/a data", "ln -s tmp new; mv -T new data", "srv/a/out", false},
	{"toplinkmany", "mkdir -p srv/a/out srv/b/out; rmdir data; ln -s srv/a data; for i in 1 2 3 4 5 6 7 8 9; do ln -s srv/a before-the-data-$i; ln -s srv/a next-to-the-data-$i; done",
		"ln -s srv/b new; mv -T new data", "srv/a/out", true},
	{"dirtolink", "mkdir -p data/out srv/b/out", "mv data data.old; ln -s srv/b data", "data.old/out", true},
	{"tmplink", "mkdir data/out", "mv data/out data/old; ln -s /tmp data/out", "data/old", false},
	{"outward", "mkdir data/out", "mv data/out data/old; ln -s ../../../../../tmp data/out", "data/old", false},
	{"gone", "mkdir data/out", "mv data/out data/old", "data/old", false},
	{"file", "mkdir data/out", "mv data data.old; touch data", "data.old/out", false},
}

// exchangedSteps is a script of salloc: a step that writes before and after the exchange, one that is begun after it.
const exchangedSteps = `
srun -Q sh -c 'mkdir -p /data/out'
srun -Q --output=/data/out/early%t.gojail sh -c 'echo first; touch /home/alice/begun; until [ -e /home/alice/go ]; do sleep 0.05; done; echo written' &
until [ -e /home/alice/exchanged ]; do sleep 0.05; done
srun -Q --overlap --output=/data/out/late%t.gojail sh -c 'echo written; cat /data/out/late0.gojail >/home/alice/late'
touch /home/alice/go /srv/jails/NAME/home/alice/go
wait
touch /home/alice/waits
until [ -e /home/alice/read ]; do sleep 0.05; done
`

// openToAll is a part of such a script that lets each user write to the directories.
const openToAll = "; for dir in data/ srv/; do [ ! -d $dir ] || chmod -R 1777 $dir; done; "

// TestOutputInExchangedDirectory exchanges directories while a job runs whose output is in them. What the early step writes is where its file
// went; a step that begins later, of the job or of another one, finds its output, or a line says why it has none.
func TestOutputInExchangedDirectory(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: strings.Split(strings.ReplaceAll(layoutConfig, "NAME", "debian"), "[[")[0]})
	shell := func(script string) {
		r := c.Root("sh", "-euc", script)
		require.Zero(t, r.Code, r)
	}
	for _, row := range exchanges {
		t.Run(row.name, func(t *testing.T) {
			root := "/srv/jails/" + row.name
			require.NoError(t, c.WriteConfig(strings.ReplaceAll(layoutConfig, "NAME", row.name)))
			shell("cd /home/alice; rm -f exchanged go waits read said; " + strings.ReplaceAll(layoutTree, "NAME", row.name) + row.tree + openToAll)
			made := c.Gojail("n1", "init", row.name)
			require.Zero(t, made.Code, made)
			ended := make(chan harness.Result, 1)
			go func() {
				ended <- c.Do(harness.Command{User: harness.Alice, Dir: "/", Args: []string{"sh", "-c", `exec salloc -n1 -wn1 "$@" 2>/home/alice/said`, "sh",
					"--jail=" + row.name, "sh", "-c", strings.ReplaceAll(exchangedSteps, "NAME", row.name)}})
			}()
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("test", "-e", root+"/home/alice/begun").Code == 0 }))
			shell("cd " + root + "; " + row.exchange + openToAll + "touch /home/alice/exchanged")
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("test", "-e", "/home/alice/waits").Code == 0 }))
			explained := regexp.MustCompile(`gojail: (--output or --error: the job sees another file than Slurm at /\S+, or none: |Slurm looked for --output, )`)
			said := ""
			isTold := func() bool {
				said = readFile(c, "/home/alice/said")
				return readFile(c, root+"/home/alice/late") == "written\n" || explained.MatchString(said)
			}
			assert.True(t, harness.Poll(harness.Timeout, isTold), "neither output nor a line on the user's terminal: %s", said)
			shell("touch /home/alice/read")
			<-ended
			if row.at != "" {
				assert.Equal(t, "first\nwritten\n", readFile(c, root+"/"+row.at+"/early0.gojail"), said)
			}
			next := func() bool {
				next := c.Run(harness.Alice, "srun", "-wn1", "--jail="+row.name, "--output=/data/out/next%t.gojail", "sh", "-c",
					"echo written; cat /data/out/next0.gojail >/home/alice/next")
				said = next.String()
				found := readFile(c, root+"/home/alice/next") == "written\n"
				return found || !row.follows && explained.MatchString(said) // a template follows a second after the storage was asked
			}
			assert.True(t, harness.Poll(harness.Timeout, next), "neither output nor a line on the user's terminal: %s", said)
			require.True(t, c.WaitIdle())
			assert.Empty(t, c.Root("find", "/tmp/", root+"/tmp", root+"/run", root+"/dev/shm", "-name", "*.gojail").Stdout, "in a directory that no job of the jail sees")
		})
	}
}

// TestSecondSandboxHasTheJobsTmp exchanges /tmp and /dev of a jail's root, or makes them links, before a job gets a second sandbox by --jail-mount,
// in which its steps find what they left in /tmp and /dev/shm in the first.
func TestSecondSandboxHasTheJobsTmp(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: strings.Split(strings.ReplaceAll(layoutConfig, "NAME", "debian"), "[[")[0]})
	for _, row := range []struct{ name, tree, exchange string }{
		{"same", "", "true"},
		{"link", "rmdir tmp; ln -s var/tmp tmp", "true"},
		{"directory", "", "mv tmp tmp.old; mkdir -m 1777 tmp"},
		{"todata", "", "mv tmp tmp.old; mkdir -m 1777 data/tmp; ln -s data/tmp tmp"},
		{"fromlink", "rmdir tmp; ln -s var/tmp tmp", "ln -s data/tmp new; mkdir -m 1777 data/tmp; mv -T new tmp"},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := strings.ReplaceAll(layoutConfig, "NAME", row.name)
			require.NoError(t, c.WriteConfig(config+"[[jail."+row.name+".user_mounts]]\nsource = \"/home\"\n"))
			r := c.Root("sh", "-euc", "rm -f /home/alice/exchanged /home/alice/left; "+strings.ReplaceAll(layoutTree, "NAME", row.name)+row.tree)
			require.Zero(t, r.Code, r)
			made := c.Gojail("n1", "init", row.name)
			require.Zero(t, made.Code, made)
			const script = `
srun -Q sh -c 'for dir in /tmp /dev/shm; do echo "$dir" >$dir/whose; done; echo "#!/bin/sh
echo runs" >/tmp/program; chmod +x /tmp/program'
touch /home/alice/left; until [ -e /home/alice/exchanged ]; do sleep 0.05; done
srun -Q --jail-mount=/home/alice:/srv sh -c 'cat /tmp/whose /dev/shm/whose; /tmp/program'
`
			ended := make(chan harness.Result, 1)
			go func() {
				ended <- c.Do(harness.Command{User: harness.Alice, Dir: "/", Args: []string{"salloc", "-Q", "-n1", "-wn1", "--jail=" + row.name, "sh", "-c", script}})
			}()
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("test", "-e", "/home/alice/left").Code == 0 }))
			r = c.Root("sh", "-euc", "cd /srv/jails/"+row.name+"; "+row.exchange+"; touch /home/alice/exchanged")
			assert.Zero(t, r.Code, r)
			requireOutput(t, "/tmp\n/dev/shm\nruns", <-ended)
			r = c.Root("find", "/srv/jails/"+row.name+"/", "-name", "whose")
			assert.Empty(t, r.Stdout, "in the jail's root: %s", r)
		})
	}
}
