// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// places is the directory into which each place of root's scripts writes what its commands printed.
const places = "/run/places"

// writePlace returns a script that runs each command of rootCommands that root runs and that is no session, once per place.
func writePlace(name string) string {
	text := "#!/bin/bash\ncd /\nexec 2>&1\n[ ! -e " + places + "/" + name + " ] || exit 0\n{\n"
	for _, test := range rootCommands {
		if test.user != "root" || test.without != "the same" {
			continue
		}
		quoted := make([]string, len(test.command))
		for i, word := range test.command {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		text += "echo '" + test.name + ": '$(" + strings.Join(quoted, " ") + " </dev/null)\n"
	}
	return text + "} >" + places + "/" + name + ".new\nmv " + places + "/" + name + ".new " + places + "/" + name + "\nexit 0\n"
}

// TestPlacesOfRoot: a command that root runs as a user is on the node in each place in which Slurm or cron runs root's scripts, at the
// begin, during and at the end of jobs of that user's, and after them. A TaskProlog is in the jail, where su is nobody's way out.
func TestPlacesOfRoot(t *testing.T) {
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	conf := map[string]string{"TaskProlog": "/etc/slurm/task_prolog", "HealthCheckInterval": "1", "HealthCheckNodeState": "ANY"}
	files := map[string]string{"/etc/slurm/task_prolog": "#!/bin/sh\necho print $(su - alice -c 'cat /etc/gojail-jail || echo NODE' </dev/null 2>&1 | tail -n1)\n"}
	for name, key := range map[string]string{"prolog": "Prolog", "epilog": "Epilog", "health": "HealthCheckProgram"} {
		conf[key] = "/etc/slurm/" + name
		files[conf[key]] = writePlace(name)
	}
	files["/etc/slurm/cron"] = writePlace("cron")
	s, err := newSite(harness.Options{SlurmConf: conf, Files: files})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	for _, file := range []string{".profile", ".bash_profile", ".bashrc"} {
		require.NoError(t, os.WriteFile(s.Path("/home/alice/"+file), []byte("echo start-up file of alice\n"), 0o644))
	}
	want := ""
	for _, test := range rootCommands {
		if test.user == "root" && test.without == "the same" {
			want += test.name + ": " + strings.ReplaceAll(test.with, "\n", " ") + "\n"
		}
	}
	require.Zero(t, s.Root("mkdir", "-p", places).Code)
	requirePlaces := func(when string, names ...string) {
		t.Helper()
		for _, name := range names {
			var text []byte
			harness.Poll(2*harness.Timeout, func() bool { // a minute of crond's
				text, err = os.ReadFile(s.Path(places + "/" + name))
				return err == nil
			})
			assert.Equal(t, want, string(text), "%s, %s", name, when)
			os.Remove(s.Path(places + "/" + name))
		}
	}
	// The first Prolog is that of a job without a sandbox, the second one of a user with one; the same of the Epilogs.
	for _, when := range []string{"the first job", "another job beside it"} {
		s.startJob(t, harness.Alice, "--jail=debian")
		requirePlaces(when, "prolog", "health")
	}
	hasCron := s.startCron(t)
	other := s.startJob(t, harness.Alice, "--jail=debian")
	requirePlaces("the third job", "prolog")
	s.endJob(t, other)
	requirePlaces("at the end of one of three jobs", "epilog")
	if hasCron {
		requirePlaces("a line of root's crontab beside jobs", "cron")
	}
	r := s.Do(harness.Command{User: harness.Alice, Args: []string{"srun", "-Q", "-wn1", "--jail=debian", "true"}})
	require.Zero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "debian")
	assert.NotContains(t, r.Stdout, "NODE")
	assert.Contains(t, r.Stdout, "su: ", "a TaskProlog")
	requirePlaces("a step of another job", "prolog", "epilog")
}

// startCron starts busybox's crond with a line of root's for each minute, and reports whether the machine has it.
func (s *site) startCron(t *testing.T) bool {
	t.Helper()
	if _, err := os.Stat(s.Path("/usr/bin/busybox")); err != nil {
		t.Log("a crontab is not run: it needs busybox")
		return false
	}
	require.Zero(t, s.Root("mkdir", "-p", "/run/crontabs").Code)
	require.NoError(t, os.WriteFile(s.Path("/run/crontabs/root"), []byte("* * * * * /etc/slurm/cron\n"), 0o600))
	s.startInBackground(t, "root", "busybox", "crond", "-f", "-l0", "-L/run/crontabs.log", "-c", "/run/crontabs")
	return true
}
