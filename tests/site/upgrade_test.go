// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/site/wire"
)

// versionOf returns the version of gojail on a machine, and its contract.
func (g *guest) versionOf(t *testing.T) (version, contract string) {
	t.Helper()
	r := g.run("", "gojail version")
	found := regexp.MustCompile(`^gojail (\S+), contract (\d+)`).FindStringSubmatch(r.Stdout)
	require.NotNil(t, found, r)
	return found[1], found[2]
}

// requireAll runs a script as root on machines, and wants its success.
func requireAll(t *testing.T, guests []*guest, script string) {
	t.Helper()
	require.NoError(t, onAll(guests, script))
}

// drain drains both nodes, and waits until their jobs have ended.
func (s *site) drain(t *testing.T) {
	t.Helper()
	requireAll(t, s.onlyHead(), "scontrol update NodeName=n[1-2] State=DRAIN Reason=upgrade")
	require.True(t, poll(2*time.Minute, func() bool { return s.listNodes() == "n1 drained n2 drained\n" }), "%s", s.listNodes())
}

func (s *site) resume(t *testing.T) {
	t.Helper()
	requireAll(t, s.onlyHead(), "scontrol update NodeName=n[1-2] State=RESUME")
	s.requireIdle(t)
}

// installEarlier puts packages of an earlier commit in the place of the installed ones, on drained nodes. It returns their version.
func (s *site) installEarlier(t *testing.T, dir string) (version string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "build/site", dir, "version"))
	if err != nil {
		t.Skip("needs the history of the repository: make site, in a clone that is not shallow")
	}
	s.drain(t)
	requireAll(t, s.guests(), aptInstall(dir))
	requireAll(t, s.nodes(), "gojail reload && systemctl restart slurmd")
	s.resume(t)
	version, _ = s.n1.versionOf(t)
	require.Equal(t, strings.TrimSpace(string(text)), version)
	return version
}

// upgrade is docs/upgrades.md, Upgrade gojail, from step 3 on, whether the nodes are drained or not. Between the steps it calls what
// the caller does.
func (s *site) upgrade(t *testing.T, meanwhile func()) {
	t.Helper()
	steps := readProcedure(t, "upgrades.md", "Upgrade gojail")
	require.Len(t, steps, 7)
	steps.requireSays(t, 3, "in one call")
	steps.requireSays(t, 3, "the nodes first")
	requireAll(t, s.nodes(), aptInstall("new"))
	meanwhile()
	requireAll(t, s.onlyHead(), aptInstall("new"))
	meanwhile()
	steps.requireSays(t, 4, "`gojail init JAIL` for each jail")
	requireAll(t, s.nodes(), initJail)
	steps.requireSays(t, 5, "`gojail reload`")
	requireAll(t, s.nodes(), "gojail reload")
	meanwhile()
	steps.requireSays(t, 6, "Restart slurmd")
	requireAll(t, s.nodes(), "systemctl restart slurmd")
	s.requireUp(t)
	steps.requireSays(t, 7, "`gojail check` and `gojail-healthcheck list`")
	requireAll(t, s.nodes(), "gojail check && gojail-healthcheck list")
	meanwhile()
}

// requireUp waits until both nodes answer, drained or not.
func (s *site) requireUp(t *testing.T) {
	t.Helper()
	require.True(t, poll(3*time.Minute, func() bool {
		return s.head.run("", "timeout 60 sinfo -hNo %T | grep -cE '^(idle|mixed|allocated|draining|drained)$'").Stdout == "2\n"
	}), "%s", s.listNodes())
}

// requireNewVersion runs jobs in a jail on both nodes, which have the version of the packages of this tree.
func (s *site) requireNewVersion(t *testing.T) {
	t.Helper()
	version, _ := s.n1.versionOf(t)
	requireOutput(t, s.n1.run("", "dpkg-deb -f /site/new/gojail_*.deb Version"), version+"-1")
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
}

// TestUpgradeGojail: as docs/upgrades.md says, from the first commit with the same contract, under a running step and a session on a
// login node. Both go on, with a further step, and with a further session in the same sandbox.
func TestUpgradeGojail(t *testing.T) {
	s := sharedSite(t)
	_, contract := s.n1.versionOf(t)
	before := s.inventory()
	s.installEarlier(t, "same")
	_, earlier := s.n1.versionOf(t)
	require.Equal(t, contract, earlier)
	s.makeLoginNode(t)
	session := s.startSession(t, "before")
	j := s.submitJob(t, "n1")
	s.upgrade(t, func() { s.requireNewVersion(t) })
	j.requireGoesOn(t)
	another := s.startSession(t, "after")
	require.Zero(t, s.head.run("alice", "touch leave-before leave-after").Code)
	for _, ended := range []<-chan wire.Reply{session, another} {
		r := waitReply(ended)
		require.Zero(t, r.Code, r)
		assert.Regexp(t, "^debian 5001 ", r.Stdout)
	}
	s.requireNoLogin(t)
	s.assertNothingLeft(t, before)
	for _, g := range s.guests() {
		assert.Empty(t, strings.TrimSpace(g.run("", "dpkg --audit").Stdout))
	}
}
