// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/site/wire"
)

// localConf has a jail on the node's own disk, whose file system can map ids, with each kind of root. range wants a directory above it
// that is closed to users.
const localConf = `[jail.local]
root = "/srv/local/jail"
host = ["/etc/resolv.conf", "/etc/hosts", "/etc/passwd", "/etc/group"]
jail_root = ["self", "range"]
`

// addLocalJail gives n1 the jail of localConf, until the test ends.
func (s *site) addLocalJail(t *testing.T) {
	t.Helper()
	n1 := []*guest{s.n1}
	t.Cleanup(func() {
		requireAll(t, n1, write("/etc/gojail/gojail.toml", jailConf)+
			"rm -f /etc/subuid /etc/subgid; gojail reload; rm -rf --one-file-system /srv/local")
	})
	const ranges = "echo alice:200000:65536 | tee /etc/subuid >/etc/subgid\n"
	const made = "mkdir -m 700 /srv/local; mkdir /srv/local/jail\n" +
		"tar -C /srv/jails/debian --exclude=./usr/share -cf - . | tar -C /srv/local/jail -xpf -\n"
	requireAll(t, n1, "set -e\n"+made+ranges+write("/etc/gojail/gojail.toml", jailConf+localConf)+"gojail init local")
}

// begun lists the jobs of startSteps whose steps have begun, as they see it in their /tmp.
const begun = "ls -d /var/lib/gojail/jobs/*/tmp/begun 2>/dev/null | cut -d/ -f6"

// startSteps starts a job of one interactive step on n1 for each --jail-root, and one of "gojail run". It returns the numbers of the
// jobs, and where the ends of the steps come.
func (s *site) startSteps(t *testing.T) (jobs []string, ended []<-chan wire.Reply) {
	t.Helper()
	const wait = "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 1; done; cat " + marker
	for _, root := range []string{"", "--jail-root=self", "--jail-root=range"} {
		const srun = "timeout 3000 srun -Q -w n1 --chdir=/tmp --jail=local "
		ended = append(ended, s.head.start("alice", fmt.Sprintf("%s %s sh -c '%s'", srun, root, wait)))
	}
	ended = append(ended, s.n1.start("", "gojail run local -- sh -c '"+wait+"'"))
	require.True(t, poll(6*time.Minute, func() bool {
		jobs = strings.Fields(s.n1.run("", begun).Stdout)
		return len(jobs) == len(ended)
	}), "%v", s.n1.run("", begun+"; gojail ls; squeue; journalctl -n 30 --no-pager -u slurmd"))
	return jobs, ended
}

// requireStepsEnd lets the steps of startSteps end, and wants their output from the jail.
func (s *site) requireStepsEnd(t *testing.T, ended []<-chan wire.Reply) {
	t.Helper()
	requireAll(t, []*guest{s.n1}, "for file in /var/lib/gojail/jobs/*/tmp/begun; do touch ${file%begun}go; done")
	for i, end := range ended {
		r := waitReply(end)
		assert.Zero(t, r.Code, "%d: %v", i, r)
		assert.Equal(t, "debian\n", r.Stdout, "%d: %v", i, r)
	}
}

// refusedStep is what a further step of a job says whose sandbox a gojail with another contract has made.
const refusedStep = "another version was installed on this node while this job runs, and a new step cannot enter"

// requireEndsRefused lets a job of submitJob end: its running step ends well, its next step is refused in one line.
func (j *job) requireEndsRefused(t *testing.T) {
	t.Helper()
	require.Zero(t, j.site.head.run("alice", "touch go-"+j.id).Code)
	assert.Equal(t, "COMPLETED", j.waitEnd(), "%v", j.describe())
	r := j.site.head.run("alice", "cat slurm-"+j.id+".out")
	assert.Regexp(t, "^debian\n(?s:.*)\ndone\n$", r.Stdout)
	assert.Equal(t, 1, strings.Count(r.Stdout, refusedStep), r)
}

// TestUpgradeFromTheLastRelease: from the packages of the last release, whose contract is another one, to those of this tree and
// back, on nodes that nobody has drained, under a batch job, steps with each kind of root, gojail run and a session on a login node.
// What runs goes on and ends well. A further step or session is refused in one line, but by 0.1.0, which gives the step a sandbox of
// its own. New jobs work at each moment, also while two nodes have two versions. At the end nothing is left on a node.
func TestUpgradeFromTheLastRelease(t *testing.T) {
	s := sharedSite(t)
	_, contract := s.n1.versionOf(t)
	before := s.inventory()
	earlier := s.installEarlier(t, "release")
	_, earlierContract := s.n1.versionOf(t)
	require.NotEqual(t, contract, earlierContract)
	s.addLocalJail(t)
	s.makeLoginNode(t)

	session := s.startSession(t, "before")
	j := s.submitJob(t, "n1")
	jobs, steps := s.startSteps(t)
	s.requireSaysWhatStays(t, earlierContract, append(jobs, j.id))
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	s.upgrade(t, func() { s.requireNewVersion(t) })
	for _, id := range append(jobs, j.id) {
		assert.Regexp(t, `(?m)^`+id+` +\S+ +\d+ +`+earlier+` .* foreign `, s.n1.run("", "gojail ls").Stdout)
	}
	const foreign = "a version of gojail with another contract"
	assert.Regexp(t, `(?m)^WARN  jobs: `+foreign+` .* `+j.id+`\b`, s.n1.run("", "gojail check").Stdout)
	const login = "sandbox of another version of gojail"
	assert.Contains(t, s.head.run("", "gojail check").Stdout, "WARN  sessions: login-5001 is a "+login)
	r := s.n2.run("", sshToHead+"true")
	assert.Contains(t, r.Stderr, "processes of yours on this node are in a "+login, r)
	s.requireStepsEnd(t, steps)
	j.requireEndsRefused(t)
	s.requireSessionEnds(t, session, "before")

	session = s.startSession(t, "after")
	j = s.submitJob(t, "n1")
	_, steps = s.startSteps(t)
	requireAll(t, s.nodes(), aptInstall("release"))
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	requireAll(t, s.onlyHead(), aptInstall("release"))
	requireAll(t, s.nodes(), "gojail reload && systemctl restart slurmd")
	s.requireUp(t)
	version, _ := s.n1.versionOf(t)
	assert.Equal(t, earlier, version)
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	s.requireStepsEnd(t, steps)
	j.requireGoesOn(t)
	s.requireSessionEnds(t, session, "after")

	s.drain(t)
	s.upgrade(t, func() {})
	s.resume(t)
	requireAll(t, s.nodes(), "gojail sweep")
	s.requireNewVersion(t)
	s.submitJob(t, "n1").requireGoesOn(t)
	s.assertNothingLeft(t, before)
	for _, g := range s.guests() {
		assert.Empty(t, strings.TrimSpace(g.run("", "dpkg --audit").Stdout))
	}
}

// requireSaysWhatStays upgrades only n1, and wants the line that names the sandboxes of the earlier contract there.
func (s *site) requireSaysWhatStays(t *testing.T, contract string, jobs []string) {
	t.Helper()
	r := s.n1.run("", "cd /site/new && apt-get -s install -qy ./gojail_*.deb ./gojail-slurm_*.deb ./gojail-slurm-24.11_*.deb")
	assert.Contains(t, r.Stdout, "2 upgraded, 1 newly installed, 0 to remove", r)
	r = s.n1.run("", aptInstall("new"))
	require.Zero(t, r.Code, r)
	line := findLine(r.Stdout, "or sessions have sandboxes of contract "+contract+" on this node: ")
	for _, id := range jobs {
		assert.Contains(t, strings.Fields(line), id, r)
	}
}

// findLine returns the line of a text that has these words, or "".
func findLine(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			return line
		}
	}
	return ""
}

// requireSessionEnds lets a session of startSession end, and waits until nothing of it is left.
func (s *site) requireSessionEnds(t *testing.T, session <-chan wire.Reply, name string) {
	t.Helper()
	require.Zero(t, s.head.run("alice", "touch leave-"+name).Code)
	r := waitReply(session)
	require.Zero(t, r.Code, r)
	assert.Regexp(t, "^debian 5001 ", r.Stdout)
	s.requireNoLogin(t)
}
