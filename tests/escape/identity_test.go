// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// carol is an account whose uid lies in alice's range of subordinate ids.
const carol = "123456"

// dan is such an account of a directory service.
const dan = "140000"

// become are the words with which alice has a program run as a uid of the node, in a jail with --jail-root=range.
func become(account string) []string {
	uid, _ := strconv.Atoi(account)
	id := strconv.Itoa(uid - 100000)
	return []string{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"}
}

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

// startJobOf starts a job of a user by number, and returns its number.
func (s *site) startJobOf(t *testing.T, uid string) string {
	t.Helper()
	r := s.Root("setpriv", "--reuid="+uid, "--regid="+uid, "--clear-groups", "sbatch", "--parsable", "-n1", "-wn2", "--chdir=/tmp", "--output=/dev/null", "--jail=none", "--wrap=sleep 321")
	require.Zero(t, r.Code, r)
	job := strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { s.Root("scancel", job) })
	return job
}

// isInQueue reports whether a job has not ended.
func (s *site) isInQueue(job string) bool {
	return strings.TrimSpace(s.Root("squeue", "-ho", "%T", "-j", job).Stdout) != ""
}

// cancelAs cancels a job as root of alice's jail that has taken another uid of the node.
func (s *site) cancelAs(uid, job string) harness.Result {
	return s.Run(harness.Alice, slices.Concat(closedRange.command, become(uid), []string{"scancel", job})...)
}

// accountOfCarol are the lines of carol's account.
var accountOfCarol = map[string]string{"/etc/passwd": "carol:x:" + carol + ":" + carol + "::/home/carol:/bin/sh\n", "/etc/group": "carol:x:" + carol + ":\n"}

// TestRangeDoesNotActAsAnAccount attacks the account whose uid lies in the attacker's range: root in the jail becomes that uid, which munge
// would certify to slurmctld. The launch is refused; where this node does not know the account, Slurm's commands find no munge.
func TestRangeDoesNotActAsAnAccount(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	t.Run("known", func(t *testing.T) {
		s.addLines(t, accountOfCarol)
		job := s.startJobOf(t, carol)
		r := s.cancelAs(carol, job)
		assert.NotZero(t, r.Code, r)
		assert.Contains(t, r.Stderr, "gojail: --jail-root=range: the ids 100000-165535 of alice in /etc/subuid include uid 123456 of carol; "+
			"ask your administrator to write alice:296608:65536 in its place, whose ids are free", r)
		assert.True(t, s.isInQueue(job), r)
	})
	t.Run("unknown", func(t *testing.T) {
		restore := s.addLines(t, accountOfCarol)
		job := s.startJobOf(t, carol)
		restore() // the name service of this node has forgotten carol
		r := s.cancelAs(carol, job)
		assert.NotZero(t, r.Code, r)
		assert.Contains(t, r.Stderr, "munge", r)
		assert.True(t, s.isInQueue(job), r)
	})
}

// remedies are what gojail check says to do: the file, and the line to write.
var remedies = regexp.MustCompile(`of alice in (/etc/sub[ug]id) [^;]*; write (alice:[0-9]+:65536) in its place`)

// TestRangeIsRefusedWithTheIDsOfOthers requires the refusal of ranges by uid and by gid, in first steps, batch jobs and with --jail-mount, the
// line of gojail check, and that its remedy, carried out to the letter, helps.
func TestRangeIsRefusedWithTheIDsOfOthers(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	for name, test := range map[string]struct {
		lines map[string]string
		fault string // up to the remedy
	}{
		"account":            {accountOfCarol, "of alice in /etc/subuid include uid 123456 of carol"},
		"group":              {map[string]string{"/etc/group": "staff2:x:100000:alice\n"}, "of alice in /etc/subgid include gid 100000 of group staff2"},
		"another's range":    {map[string]string{"/etc/subgid": "carol:165535:65536\n"}, "of alice in /etc/subgid overlap those of carol there (carol:165535:65536)"},
		"ids for useradd":    {map[string]string{"/etc/login.defs": "\nUID_MAX 100000\n"}, "of alice in /etc/subuid are such as useradd gives to accounts: UID_MAX of /etc/login.defs is 100000"},
		"range of a runtime": {map[string]string{"/etc/subuid": "containers:100000:65536\n"}, "of alice in /etc/subuid overlap those of containers there (containers:100000:65536)"},
	} {
		t.Run(name, func(t *testing.T) {
			s.addLines(t, test.lines)
			for _, more := range [][]string{nil, {"--jail-mount=/data/alice:/mnt"}} {
				r := s.Run(harness.Alice, slices.Concat(closedRange.command, more, []string{"true"})...)
				assert.NotZero(t, r.Code, r)
				assert.Contains(t, r.Stderr, "gojail: --jail-root=range: the ids 100000-165535 "+test.fault+"; ask your administrator to write alice:", r)
			}
			job := s.Batch(harness.Alice, "true", "--jail=closed", "--jail-root=range", "--output=/home/alice/refused.out")
			t.Cleanup(func() { os.Remove(s.Path("/home/alice/refused.out")) })
			assert.Equal(t, "FAILED", job.State, job)

			check := s.Gojail("n1", "check", "-q").Stdout
			require.Contains(t, check, "FAIL  subordinate ids: --jail-root=range: the ids 100000-165535 "+test.fault+"; write alice:")
			for _, remedy := range remedies.FindAllStringSubmatch(check, -1) {
				s.addLines(t, map[string]string{remedy[1]: ""}) // as it is, for the end of the test
				require.Zero(t, s.Root("sed", "-i", "s/^alice:100000:65536$/"+remedy[2]+"/", remedy[1]).Code)
			}
			r := s.Run(harness.Alice, append(slices.Clone(closedRange.command), "true")...)
			assert.Zero(t, r.Code, r)
			assert.NotContains(t, s.Gojail("n1", "check", "-q").Stdout, "of alice in ")
		})
	}
}

// TestRangeWithADirectoryService covers accounts that the name service does not list.
func TestRangeWithADirectoryService(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	s.useDirectory(t)
	launch := func() harness.Result {
		return s.Run(harness.Alice, append(slices.Clone(closedRange.command), "true")...)
	}
	r := launch()
	assert.Zero(t, r.Code, "nobody can know of dan: %s", r)
	check := s.Gojail("n1", "check", "-q").Stdout
	_, command, found := strings.Cut(check, "WARN  subordinate ids: --jail-root=range: directory of nsswitch.conf may have accounts in the ranges that it does not list: "+
		"gojail compares those with processes here or jobs of Slurm only; for each range verify that this prints nothing, as here for the first: ")
	require.True(t, found, check)
	command, _, _ = strings.Cut(command, "\n")
	assert.Equal(t, "dan:x:140000:140000::/tmp:/bin/sh\n", s.Root("sh", "-c", command).Stdout, command)

	job := s.startJobOf(t, dan)
	r = s.cancelAs(dan, job)
	assert.NotZero(t, r.Code, r)
	assert.Regexp(t, "gojail: --jail-root=range: the ids 100000-165535 of alice in /etc/subuid include uid 140000 of (job "+job+"|process [0-9]+); ask your", r.Stderr)
	assert.True(t, s.isInQueue(job), r)
	s.Root("scancel", job)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return !s.isInQueue(job) }))

	for file, want := range map[string]string{"fail": "cannot ask the name service whether an account has uid 100000: ", "hang": "it does not answer in time; try again"} {
		require.NoError(t, os.WriteFile(s.Path("/srv/directory/"+file), nil, 0o644))
		r = launch()
		require.NoError(t, os.Remove(s.Path("/srv/directory/"+file)))
		assert.NotZero(t, r.Code, r)
		assert.Contains(t, r.Stderr, want, r)
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return launch().Code == 0 }), "it answers again")
}

// useDirectory adds a name service to those of the cluster for the rest of the test.
func (s *site) useDirectory(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(s.Path("/srv/directory"), 0o755))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", s.Path("/srv/directory/libnss_directory.so.2"), "testdata/directory.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		s.Root("sh", "-c", "cp /srv/directory/nsswitch.conf /etc; cp /srv/directory/ld.so.cache /etc; rm -r /srv/directory")
	})
	require.Zero(t, s.Root("sh", "-ec", "cp /etc/nsswitch.conf /etc/ld.so.cache /srv/directory; sed -i 's/^passwd:.*/passwd: files directory/' /etc/nsswitch.conf; "+
		"ldconfig -C /etc/ld.so.cache /srv/directory").Code)
}

// TestSelfActsAsTheUser requires that munge certifies root of --jail-root=self as the user.
func TestSelfActsAsTheUser(t *testing.T) {
	s := sharedSite(t)
	start := func(user string) string {
		r := s.Run(user, "sbatch", "--parsable", "-n1", "-wn2", "--chdir=/tmp", "--output=/dev/null", "--jail=none", "--wrap=sleep 321")
		require.Zero(t, r.Code, r)
		job := strings.TrimSpace(r.Stdout)
		t.Cleanup(func() { s.Root("scancel", job) })
		return job
	}
	of := map[string]string{harness.Alice: start(harness.Alice), harness.Bob: start(harness.Bob)}
	for _, user := range []string{harness.Bob, harness.Alice} {
		r := s.Run(harness.Alice, append(slices.Clone(closedSelf.command), "scancel", of[user])...)
		t.Log(r)
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return !s.isInQueue(of[harness.Alice]) }))
	assert.True(t, s.isInQueue(of[harness.Bob]))
}

// TestNegativePermissions shows a limit: with --jail-root=range root leaves the group to which a file's mode or ACL denies what others may.
func TestNegativePermissions(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	require.Zero(t, s.Root("sh", "-ec", "echo secret >/data/shared/file; chown bob:alice /data/shared/file; chmod 604 /data/shared/file").Code)
	t.Cleanup(func() { os.Remove(s.Path("/data/shared/file")) })
	for _, p := range []place{closedUser, closedSelf, closedRange} {
		command := slices.Concat(p.command, []string{"--jail-mount=/data/shared:/mnt"})
		if p.name == closedRange.name {
			command = append(command, "setpriv", "--regid=5", "--clear-groups")
		}
		r := s.Run(p.user, append(command, "cat", "/mnt/file")...)
		assert.Equal(t, p.name == closedRange.name, r.Stdout == "secret\n", "%s: %s", p.name, r)
	}
}

// TestRangeLeavesNoFilesOfItsIDs requires that files which root of a range writes to mounts of the site are the user's, whatever id of the range
// writes them, and that it changes no file of others there.
func TestRangeLeavesNoFilesOfItsIDs(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	for _, place := range []string{"/srv/jails/closed/opt/shown", "/srv/jails/closed/data/shown"} {
		require.NoError(t, os.MkdirAll(s.Path(place), 0o755))
		t.Cleanup(func() { os.RemoveAll(s.Path(place)) })
	}
	require.Zero(t, s.Root("sh", "-ec", "mkdir -m 1777 /shared; mkdir /shared/alice; chown alice:alice /shared/alice; echo old >/shared/of-root; chmod 666 /shared/of-root").Code)
	t.Cleanup(func() { s.Root("rm", "-r", "/shared") })
	for _, at := range []string{"/opt/shown", "/data/shown"} {
		mount := "[[jail.closed.mounts]]\nsource = \"/shared\"\ndestination = \"" + at + "\"\noptions = [\"rbind\", \"nosuid\", \"nodev\"]\n"
		require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[jail.closed]\n", mount+"[jail.closed]\n", 1)))
		t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
		const write = `cd "$0"; for f in new alice/new; do touch $f; chmod 4755 $f; done; echo new >of-root; true`
		for _, words := range [][]string{nil, become(carol)} {
			r := s.Run(harness.Alice, slices.Concat(closedRange.command, words, []string{"sh", "-c", write, at})...)
			require.Zero(t, r.Code, r)
		}
		files := s.Root("find", "/shared", "-type", "f", "-printf", "%p %U\n").Stdout
		assert.ElementsMatch(t, []string{"/shared/alice/new 5001", "/shared/of-root 0"}, strings.Split(strings.TrimSpace(files), "\n"), at)
		assert.Equal(t, "old\n", s.Root("cat", "/shared/of-root").Stdout, at)
		require.Zero(t, s.Root("sh", "-ec", "rm -f /shared/alice/new /shared/new; echo old >/shared/of-root").Code)
	}
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
	require.Zero(t, s.Root("mkdir", dir+"/below").Code)
	t.Cleanup(func() { s.Root("rmdir", dir+"/below") })
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
		"with another socket's":         {slurm: "munge = \"/run/munge/below/socket\"\n", jail: mount("/run", "/opt/shown", `"rbind"`), path: "/opt/shown/munge/munge.socket.2"},
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
			for _, words := range [][]string{nil, become(carol)} {
				r := connect("range", words...)
				assert.Zero(t, r.Code, r)
				assert.Empty(t, r.Stdout, r)
			}
			r := connect("self")
			assert.Equal(t, "connected to "+test.path+"\n", r.Stdout, "control: %s", r)
		})
	}
}
