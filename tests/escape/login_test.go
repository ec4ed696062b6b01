// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// loginScript is alice's ~/.bash_profile on the node. It leaves a trace there.
const loginScript = "id -un >>/home/alice/ran-on-the-node\n"

// printJail is a batch script that prints the jail in which it runs.
const printJail = "#!/bin/sh\ncat /etc/gojail-jail\n"

// login is a way to submit a batch job for which slurmd runs the user's login scripts on the node.
type login struct {
	name   string
	env    []string
	script string // default: printJail
	args   []string
}

var logins = []login{
	{name: "--get-user-env", args: []string{"sbatch", "--parsable", "--get-user-env"}},
	{name: "--export=NONE", args: []string{"sbatch", "--parsable", "--export=NONE"}},
	{name: "--export=NAME=VALUE", args: []string{"sbatch", "--parsable", "--export=NAME=VALUE"}},
	{name: "#SBATCH --get-user-env", args: []string{"sbatch", "--parsable"},
		script: "#!/bin/sh\n#SBATCH --get-user-env\ncat /etc/gojail-jail\n"},
	{name: "SBATCH_EXPORT", env: []string{"SBATCH_EXPORT=NONE"}, args: []string{"sbatch", "--parsable"}},
	{name: "SBATCH_GET_USER_ENV", env: []string{"SBATCH_GET_USER_ENV=1"}, args: []string{"sbatch", "--parsable"}},
	{name: "a variable of the user's", env: []string{"SLURM_GET_USER_ENV=1"}, args: []string{"sbatch", "--parsable"}},
	{name: "a client of the user's own", args: []string{"/tmp/twice"}},
}

// loginCures are the counter-measures of a site; the first, nothing, is the control.
var loginCures = []struct {
	name, last string // the last release that has it
	conf       func(t *testing.T) map[string]string
}{
	{name: "control", conf: func(*testing.T) map[string]string { return nil }},
	{name: "JobSubmitPlugins=gojail", conf: func(t *testing.T) map[string]string {
		return map[string]string{"JobSubmitPlugins": "gojail", "PluginDir": harness.PluginDirs(t)}
	}},
	{name: "GetEnvTimeout=0", last: "24.11", conf: func(*testing.T) map[string]string {
		return map[string]string{"GetEnvTimeout": "0"}
	}},
}

// TestLoginScripts submits jobs for which slurmd would run the user's login scripts on the node
// before any plugin. Each cure prevents that, whatever client submits the job.
func TestLoginScripts(t *testing.T) {
	client, err := os.ReadFile("testdata/twice.c")
	require.NoError(t, err)
	for _, cure := range loginCures {
		if cure.last != "" && harness.Version() > cure.last {
			continue
		}
		t.Run(cure.name, func(t *testing.T) {
			c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"closed"}, Config: compulsory, SlurmConf: cure.conf(t),
				Files: map[string]string{"/home/alice/.bash_profile": loginScript, "/tmp/twice.c": string(client)}})
			r := c.Root("gcc", "-Wall", "-Wextra", "-Werror", "-o", "/tmp/twice", "/tmp/twice.c", "-lslurm")
			require.Zero(t, r.Code, r)
			cured := cure.name != "control"
			assert.Equal(t, cured, !strings.Contains(c.Gojail("n1", "check").Stdout, "WARN  features: sbatch --get-user-env"))
			for _, l := range logins {
				t.Run(l.name, func(t *testing.T) { submitLogin(t, c, l, cured) })
			}
		})
	}
}

// submitLogin submits a job in its jail, whose login script runs on the node unless that is cured.
func submitLogin(t *testing.T, c *harness.Cluster, l login, cured bool) {
	t.Helper()
	ran := c.Path("/home/alice/ran-on-the-node")
	require.NoError(t, os.RemoveAll(ran))
	if l.script == "" {
		l.script = printJail
	}
	r := c.Do(harness.Command{User: harness.Alice, Env: l.env, Stdin: l.script, Args: l.args})
	require.Zero(t, r.Code, r)
	job := c.WaitJob(harness.Job{ID: strings.TrimSpace(r.Stdout), Submit: r})
	assert.Equal(t, "COMPLETED closed\n", job.State+" "+job.Output, job)
	_, err := os.Stat(ran)
	assert.Equal(t, cured, os.IsNotExist(err), "the login script ran on the node: %v", err)
}

// compulsory is a gojail.toml that allows no job outside of a jail.
const compulsory = `default = "closed"
allow_none = false
scratch = "/var/lib/gojail/%n"
[slurm]
spool = "/var/spool/slurmd/%n"
[jail.closed]
root = "/srv/jails/closed"
`
