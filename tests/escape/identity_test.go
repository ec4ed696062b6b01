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

// carol is an account whose uid lies in alice's range of subordinate ids.
const carol = "123456"

// asCarol are the words with which alice has a program run as carol's uid of the node, in a jail with --jail-root=range.
var asCarol = []string{"setpriv", "--reuid=23456", "--regid=23456", "--clear-groups"}

// addLines adds lines to files of the cluster for the rest of the test, or until the function that it returns is called.
func (s *site) addLines(t *testing.T, files map[string]string) (restore func()) {
	t.Helper()
	kept := map[string][]byte{}
	for path := range files {
		keep, err := os.ReadFile(s.Path(path))
		require.NoError(t, err)
		kept[path] = keep
	}
	restore = func() {
		for path, keep := range kept {
			require.NoError(t, os.WriteFile(s.Path(path), keep, 0o644))
		}
	}
	t.Cleanup(restore)
	for path, lines := range files {
		require.NoError(t, os.WriteFile(s.Path(path), append(kept[path][:len(kept[path]):len(kept[path])], lines...), 0o644))
	}
	return restore
}

// startJobOfCarol starts a job of carol's and returns its number.
func (s *site) startJobOfCarol(t *testing.T) string {
	t.Helper()
	r := s.Root("setpriv", "--reuid="+carol, "--regid="+carol, "--clear-groups", "sbatch", "--parsable", "-n1", "-wn2", "--chdir=/tmp", "--output=/dev/null", "--jail=none", "--wrap=sleep 321")
	require.Zero(t, r.Code, r)
	job := strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { s.Root("scancel", job) })
	return job
}

// isInQueue reports whether a job has not ended.
func (s *site) isInQueue(job string) bool {
	return strings.TrimSpace(s.Root("squeue", "-ho", "%T", "-j", job).Stdout) != ""
}

// TestRangeDoesNotActAsAnAccount attacks the account whose uid lies in the attacker's range: root in the jail becomes that uid, which munge
// would certify to slurmctld.
func TestRangeDoesNotActAsAnAccount(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	account := map[string]string{"/etc/passwd": "carol:x:" + carol + ":" + carol + "::/home/carol:/bin/sh\n", "/etc/group": "carol:x:" + carol + ":\n"}
	cancel := func(job string) harness.Result {
		return s.Run(harness.Alice, append(append(append([]string{}, closedRange.command...), asCarol...), "scancel", job)...)
	}
	t.Run("unknown", func(t *testing.T) {
		restore := s.addLines(t, account)
		job := s.startJobOfCarol(t)
		restore() // the name service of this node has forgotten carol
		r := cancel(job)
		assert.NotZero(t, r.Code, r)
		assert.Contains(t, r.Stderr, "munge", r)
		assert.True(t, s.isInQueue(job), r)
	})
}

// connecting is a program that prints which Unix sockets it can connect to.
const connecting = `for (@ARGV) { socket(S, PF_UNIX, SOCK_STREAM, 0) or die; print "connected to $_\n" if connect(S, sockaddr_un($_)) }`

// TestRangeHasNoMunge requires that an id of a range reaches munge's socket by no mount of the jail, while root of --jail-root=self, who is
// the user, does.
func TestRangeHasNoMunge(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	const dir, socket = "/run/munge", "/run/munge/munge.socket.2"
	for _, place := range []string{"/srv/jails/closed/opt/shown", "/srv/jails/closed/data/shown"} {
		require.NoError(t, os.MkdirAll(s.Path(place), 0o755))
		t.Cleanup(func() { os.RemoveAll(s.Path(place)) })
	}
	require.NoError(t, os.WriteFile(s.Path("/srv/jails/closed/opt/socket"), nil, 0o644))
	t.Cleanup(func() { os.Remove(s.Path("/srv/jails/closed/opt/socket")) })
	mount := func(source, destination, options string) string {
		return "[[jail.closed.mounts]]\nsource = \"" + source + "\"\ndestination = \"" + destination + "\"\noptions = [" + options + "]\n"
	}
	for name, test := range map[string]struct {
		slurm, jail, option string
		path                string // of the socket in the jail
	}{
		"by default":                    {path: socket},
		"with its directory":            {slurm: "host = [\"" + dir + "\"]\n", path: socket},
		"with a mount":                  {jail: mount(dir, dir, ""), path: socket},
		"with a mount of the socket":    {jail: mount(socket, "/opt/socket", ""), path: "/opt/socket"},
		"with a mount of all":           {jail: mount("/run", "/opt/shown", `"rbind"`), path: "/opt/shown/munge/munge.socket.2"},
		"with a mount in data":          {jail: mount(dir, "/data/shown", ""), path: "/data/shown/munge.socket.2"},
		"with a mount in data, ro":      {jail: mount(dir, "/data/shown", `"ro"`), path: "/data/shown/munge.socket.2"},
		"with a mount of the user's":    {option: "--jail-mount=" + dir + ":/mnt", path: "/mnt/munge.socket.2"},
		"with the user's mount, ro":     {option: "--jail-mount=" + dir + ":/mnt:ro", path: "/mnt/munge.socket.2"},
		"with the user's mount of /run": {option: "--jail-mount=/run:/mnt", path: "/mnt/munge/munge.socket.2"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(configuration, "[slurm]\n", "[slurm]\n"+test.slurm, 1)
			text = strings.Replace(text, "[jail.closed]\n", test.jail+"[jail.closed]\n", 1)
			text = strings.Replace(text, "[[jail.closed.user_mounts]]\n", "[[jail.closed.user_mounts]]\nsource = \"/run\"\n[[jail.closed.user_mounts]]\n", 1)
			require.NoError(t, s.WriteConfig(text))
			t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
			connect := func(mode string, become ...string) harness.Result {
				args := []string{"srun", "-Q", "-wn1", "--jail=closed", "--jail-root=" + mode, test.option}
				if test.option == "" {
					args = args[:len(args)-1]
				}
				return s.Run(harness.Alice, append(append(args, become...), "perl", "-MSocket", "-e", connecting, test.path)...)
			}
			for _, become := range [][]string{nil, asCarol} {
				r := connect("range", become...)
				assert.Zero(t, r.Code, r)
				assert.Empty(t, r.Stdout, r)
			}
			r := connect("self")
			assert.Equal(t, "connected to "+test.path+"\n", r.Stdout, "control: %s", r)
		})
	}
}
