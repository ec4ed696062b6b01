// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// session is what a login session on the submit host has in its environment.
var session = []string{
	"LANG=de_DE.UTF-8", "LC_ALL=C", "TERM=xterm-256color", "MAIL=/var/mail/alice", "MINE=a b", "BASH_FUNC_mine%%=() {  :\n}",
	"LD_LIBRARY_PATH=/opt/lib", "LD_AUDIT=", "BASH_ENV=/dev/null", "ENV=/dev/null", "OLDPWD=/var",
	"XDG_RUNTIME_DIR=/run/user/5001", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/5001/bus,guid=1", "XDG_SESSION_ID=7",
	"XAUTHORITY=/run/user/5001/gdm/Xauthority", "PULSE_SERVER=unix:/var/run/user/5001/pulse/native", "VSCODE_IPC_HOOK_CLI=/run/user/5001/vscode.sock",
	"SSH_AUTH_SOCK=/tmp/ssh-1/agent.1", "SSH_CONNECTION=192.0.2.1 1 192.0.2.2 22", "KRB5CCNAME=FILE:/tmp/krb5cc_5001", "TMUX=/tmp/tmux-5001/default,1,0",
	"WAYLAND_DISPLAY=wayland-0", "DISPLAY=localhost:10.0", "FNM_PATHS=/run/user/5001/fnm/bin:/usr/bin",
}

// leftOut are the variables of the session that a step in a jail does not get: they lead into a directory that login sessions have.
var leftOut = []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "PULSE_SERVER", "VSCODE_IPC_HOOK_CLI"}

// environWay is a way to start a program with Slurm.
type environWay struct {
	name string
	args []string // srun, sbatch or salloc
	then []string // the program; default: printEnviron
}

// printEnviron prints the environment, separated by NUL.
var printEnviron = []string{"/usr/bin/env", "-0"}

var environWays = []environWay{
	{name: "srun", args: []string{"srun"}},
	{name: "srun ALL", args: []string{"srun", "--export=ALL"}},
	{name: "srun ALL and one", args: []string{"srun", "--export=ALL,ONE=1"}},
	{name: "srun one", args: []string{"srun", "--export=ONE=1,HOME"}},
	{name: "srun NONE", args: []string{"srun", "--export=NONE"}},
	{name: "srun NIL", args: []string{"srun", "--export=NIL"}},
	{name: "salloc", args: []string{"salloc", "-Q"}, then: append([]string{"/usr/bin/srun"}, printEnviron...)},
	{name: "sbatch", args: []string{"sbatch"}},
	{name: "sbatch ALL and one", args: []string{"sbatch", "--export=ALL,ONE=1"}},
	{name: "sbatch one", args: []string{"sbatch", "--export=ONE=1"}},
	{name: "sbatch NONE", args: []string{"sbatch", "--export=NONE"}},
	{name: "sbatch NIL", args: []string{"sbatch", "--export=NIL"}},
	{name: "sbatch --get-user-env", args: []string{"sbatch", "--get-user-env"}},
	{name: "as scrontab submits", args: []string{"sbatch", "--export-file=/home/alice/requested"}},
	{name: "srun in sbatch", args: []string{"sbatch"}, then: append([]string{"/usr/bin/srun"}, printEnviron...)},
	{name: "srun ALL in sbatch NONE", args: []string{"sbatch", "--export=NONE"}, then: append([]string{"cd\nsrun", "--export=ALL"}, printEnviron...)},
	{name: "srun in sbatch NONE", args: []string{"sbatch", "--export=NONE"}, then: append([]string{"/usr/bin/srun"}, printEnviron...)},
}

// readEnviron starts a program in one of the ways, and returns its environment.
func (w environWay) readEnviron(t *testing.T, c *harness.Cluster, options ...string) map[string]string {
	t.Helper()
	then := w.then
	if then == nil {
		then = printEnviron
	}
	args := append(append(slices.Clone(w.args), "-wn1", "-n1"), options...)
	var text, seen string
	if w.args[0] == "sbatch" {
		job := c.BatchEnv(harness.Alice, session, "#!/bin/sh\n"+strings.Join(then, " "), args[1:]...)
		text, seen = job.Output, job.String()
	} else {
		r := c.Do(harness.Command{User: harness.Alice, Env: session, Args: append(args, then...)})
		text, seen = r.Stdout, r.String()
	}
	require.NotEmpty(t, text, "%s: %s", w.name, seen)
	return parseEnviron(t, text)
}

// parseEnviron returns the variables of an environment as printEnviron prints it.
func parseEnviron(t *testing.T, text string) map[string]string {
	t.Helper()
	environ := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		name, value, found := strings.Cut(entry, "=")
		require.True(t, found, "%q of %q", entry, text)
		environ[name] = value
	}
	return environ
}

// environFiles are the files of a cluster on which environments are read.
func environFiles() map[string]string {
	files := maps.Clone(jailed.Files)
	files["/home/alice/.bash_profile"] = "export PROFILE=1\n"
	files["/home/alice/requested"] = "SLURM_GET_USER_ENV=1\x00" // what scrontab asks for, and nothing else (_entry_to_job in its scrontab.c); sbatch adds to it
	return files
}

// dropJobs removes what differs between two jobs, and what asks for a jail.
func dropJobs(environ map[string]string) map[string]string {
	for name := range environ {
		switch {
		case strings.HasPrefix(name, "SLURM_JAIL"), strings.HasPrefix(name, "SLURM_SPANK_"), strings.HasPrefix(name, "SPANK_"):
			delete(environ, name)
		case strings.HasPrefix(name, "SLURM"), strings.HasPrefix(name, "SRUN_"):
			environ[name] = ""
		}
	}
	return environ
}

// requireSame requires that two environments have the same variables with the same values.
func requireSame(t *testing.T, want, got map[string]string, of string) {
	t.Helper()
	var differences []string
	for name, value := range want {
		if other, found := got[name]; !found || other != value {
			differences = append(differences, "lacks "+name+"="+value)
		}
	}
	for name, value := range got {
		if other, found := want[name]; !found || other != value {
			differences = append(differences, "has "+name+"="+value)
		}
	}
	slices.Sort(differences)
	assert.Empty(t, strings.Join(differences, "\n"), of)
}

// TestEnvironment compares the environment of programs in a jail with the one that plain Slurm gives them, in each way to start one. With
// job_submit/gojail a job for which slurmd would run "su - USER" has the variables of an account, but none of PAM and of login scripts, and no games.
func TestEnvironment(t *testing.T) {
	options := jailed
	options.Files = environFiles()
	plain := harness.Start(t, options)
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	maps.Copy(options.SlurmConf, map[string]string{"JobSubmitPlugins": "gojail", "PluginDir": harness.PluginDirs(t)})
	cured := harness.Start(t, options)
	for _, way := range environWays {
		t.Run(way.name, func(t *testing.T) {
			want := dropJobs(way.readEnviron(t, plain))
			for _, name := range leftOut {
				delete(want, name)
			}
			requireSame(t, want, dropJobs(way.readEnviron(t, plain, "--jail=debian")), "su, --jail=debian")
			for _, option := range []string{"--jail=debian", "--jail=none"} {
				requireWithoutScripts(t, want, dropJobs(way.readEnviron(t, cured, option)), option)
			}
		})
	}
}

// requireWithoutScripts requires that an environment with job_submit/gojail is that on plain Slurm, where slurmd runs "su - USER" without what PAM and
// login scripts set.
func requireWithoutScripts(t *testing.T, want, got map[string]string, option string) {
	t.Helper()
	want = maps.Clone(want)
	if option == "--jail=none" {
		maps.DeleteFunc(got, func(name, _ string) bool { return slices.Contains(leftOut, name) })
	}
	if want["PROFILE"] != "" {
		want["PATH"] = strings.TrimSuffix(want["PATH"], ":/usr/local/games:/usr/games")
		for _, name := range []string{"MAIL", "PROFILE", "SHLVL", "_"} {
			delete(want, name)
			delete(got, name)
		}
	}
	requireSame(t, want, got, option)
}

// TestSessionDirectoryOfAJail requires that the variables that lead into it stay where the administrator shows /run/user in a jail.
func TestSessionDirectoryOfAJail(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, harness.DefaultConfig+"[[jail.other.mounts]]\ndestination = \"/run/user\"\ntype = \"bind\"\nsource = \"/run/user\"\noptions = [\"rbind\"]\n")
	require.Zero(t, c.Root("install", "-d", "-o", "alice", "-m", "700", "/run/user/5001").Code)
	require.Zero(t, c.Gojail("n1", "init", "other").Code)
	for jail, want := range map[string]string{"other": "/run/user/5001", "debian": "none"} {
		r := c.Do(harness.Command{User: harness.Alice, Env: session, Args: []string{"srun", "-Q", "-wn1", "--jail=" + jail, "sh", "-c", "echo ${XDG_RUNTIME_DIR-none}"}})
		requireOutput(t, want, r)
	}
}
