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
	found := regexp.MustCompile(`^gojail ([0-9.]+), contract (\d+)`).FindStringSubmatch(r.Stdout)
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

// installEarlier puts packages of an earlier commit in the place of the installed ones, on drained nodes.
func (s *site) installEarlier(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(repository, "build/site", dir)); err != nil {
		t.Skip("needs the packages of an earlier commit: make site, in a clone with its history")
	}
	s.drain(t)
	// In packages of before, plugstack.conf.d/gojail.conf is a conffile, of which dpkg would ask.
	requireAll(t, s.guests(), aptInstall(dir)+" -o Dpkg::Options::=--force-confold")
	requireAll(t, s.nodes(), "gojail reload && systemctl restart slurmd")
	s.resume(t)
	version, _ := s.n1.versionOf(t)
	require.Equal(t, "0.0.9", version)
}

// upgrade is docs/operations.md, Upgrade gojail, from step 2 on. Between the steps it calls what the caller does.
func (s *site) upgrade(t *testing.T, meanwhile func()) {
	t.Helper()
	steps := readProcedure(t, "operations.md", "Upgrade gojail")
	require.Len(t, steps, 6)
	steps.requireSays(t, 2, "Install the packages")
	requireAll(t, s.guests(), aptInstall("new"))
	meanwhile()
	steps.requireSays(t, 3, "`gojail init JAIL` for each jail")
	requireAll(t, s.nodes(), initJail)
	meanwhile()
	steps.requireSays(t, 4, "`gojail reload`")
	requireAll(t, s.nodes(), "gojail reload")
	meanwhile()
	steps.requireSays(t, 5, "Restart slurmd")
	requireAll(t, s.nodes(), "systemctl restart slurmd")
	steps.requireSays(t, 6, "`gojail check` and `gojail-healthcheck list`")
	requireAll(t, s.nodes(), "gojail check && gojail-healthcheck list")
	meanwhile()
}

// TestUpgradeGojail: as docs/operations.md says, from the first commit with the same contract under a running step and a session on a
// login node, and from the last with another contract on drained nodes.
func TestUpgradeGojail(t *testing.T) {
	s := sharedSite(t)
	_, contract := s.n1.versionOf(t)
	text, err := os.ReadFile(filepath.Join(repository, "build/version"))
	require.NoError(t, err)
	version := strings.TrimSpace(string(text))
	first := readProcedure(t, "operations.md", "Upgrade gojail")[0]
	assert.Contains(t, first, "If it is another one, drain the nodes.")
	jobInJail := func() {
		t.Helper()
		requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	}
	upgraded := func() {
		t.Helper()
		now, _ := s.n1.versionOf(t)
		assert.Equal(t, version, now)
		jobInJail()
	}
	t.Run("same contract", func(t *testing.T) {
		before := s.inventory()
		s.installEarlier(t, "same")
		_, earlier := s.n1.versionOf(t)
		require.Equal(t, contract, earlier)
		jobInJail()
		s.makeLoginNode(t)
		session := s.startSession(t, "before")
		j := s.submitJob(t, "n1")
		s.upgrade(t, upgraded)
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
	})
	t.Run("another contract", func(t *testing.T) {
		before := s.inventory()
		s.installEarlier(t, "other")
		_, earlier := s.n1.versionOf(t)
		require.NotEqual(t, contract, earlier)
		jobInJail()
		s.drain(t)
		s.upgrade(t, func() {})
		s.resume(t)
		upgraded()
		s.submitJob(t, "n1").requireGoesOn(t)
		s.assertNothingLeft(t, before)
	})
	for _, g := range s.guests() {
		assert.Empty(t, strings.TrimSpace(g.run("", "dpkg --audit").Stdout))
	}
}
