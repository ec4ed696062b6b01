// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
)

// setAgo sets the stamp of the reason, as Slurm shows it, of a time before the present of the site.
func (s *site) setAgo(user string, ago time.Duration) {
	s.set("stamp", user+"@"+s.now.Add(-ago).Format("2006-01-02T15:04:05"))
}

// loseRecord boots a node whose /var does not outlive that.
func (s *site) loseRecord() {
	s.boot()
	require.NoError(s.t, os.Remove(s.reconciler.Store.recordPath()))
}

// TestADrainOutlivesABootWithoutItsRecord is TestADrainOutlivesABoot on a node without a persistent /var.
func TestADrainOutlivesABootWithoutItsRecord(t *testing.T) {
	s := newSite(t)
	s.run("fo fo")
	s.setAgo("root", 30*time.Second)
	s.loseRecord()
	s.run("oo")
	assert.Equal(t, "a", s.outcome.Record.Check, "and the metric says that the node is drained")
	assert.Equal(t, Decision{None, "it is drained by check a, and the record of that, which was lost, is made again"}, s.outcome.Decision)
	s.run("oo")
	s.is("IDLE+DRAIN", reasonA)
	s.run("oo")
	s.is("IDLE", "a: text of a [node_problem] gojail (id "+s.lastID()+")")
	assert.Nil(t, s.outcome.Record)
}

// TestALostRecordOfAFaultThatStays: the drain stays, and ends with the fault.
func TestALostRecordOfAFaultThatStays(t *testing.T) {
	s := newSite(t)
	s.run("fo fo")
	s.setAgo("root", 30*time.Second)
	s.calls()
	s.loseRecord()
	s.set("before-show", "exit 1")
	s.run("fo")
	assert.NoError(t, s.outcome.Err, "slurmctld does not answer yet")
	s.set("before-show", "")
	s.run("fo fo fo")
	s.is("IDLE+DRAIN", reasonA)
	assert.NotContains(t, s.calls(), "update")
	s.run("oo oo oo")
	s.is("IDLE", "a: text of a [node_problem] gojail (id "+s.lastID()+")")
}

// TestNoRecordIsMadeOfAnothersDrain: a person may drain a node in this program's words, and check nccl does from another machine.
func TestNoRecordIsMadeOfAnothersDrain(t *testing.T) {
	for name, test := range map[string]struct {
		state, reason, user string
		ago                 time.Duration
	}{
		"the same words, later":       {"IDLE+DRAIN", "", "root", -2 * time.Minute},
		"the same words, by an admin": {"IDLE+DRAIN", "", "alice", 30 * time.Second},
		"more words":                  {"IDLE+DRAIN", "a: text of a [node_problem] gojail (id ID) : see 17", "root", 30 * time.Second},
		"another id":                  {"IDLE+DRAIN", "a: text of a [node_problem] gojail (id 0badcafe)", "root", 30 * time.Second},
		"a person's words":            {"IDLE+DRAIN", persons, "root", 30 * time.Second},
		"another machine's check":     {"IDLE+DRAIN", "nccl: slow [node_problem] gojail (id ID)", "root", 30 * time.Second},
		"not drained":                 {"IDLE", "", "root", 30 * time.Second},
	} {
		s := newSite(t)
		s.run("fo fo")
		if test.reason != "" {
			s.set("reason", strings.ReplaceAll(test.reason, "ID", s.lastID()))
		}
		s.set("state", test.state)
		s.setAgo(test.user, test.ago)
		s.calls()
		s.loseRecord()
		s.run("oo oo oo oo oo")
		assert.Equal(t, "show node n1\n", s.calls(), name)
		assert.Nil(t, s.outcome.Record, name)
		assert.NoFileExists(t, s.reconciler.Store.recordPath(), name)
	}
}

// TestNoRecordIsMadeOfACheckThatOnlyWarns, nor of one that is switched off: it may be another machine's.
func TestNoRecordIsMadeOfACheckThatOnlyWarns(t *testing.T) {
	now := time.Unix(1e9, 0)
	id, err := newID(now)
	require.NoError(t, err)
	node := &nodeState{State: []string{"IDLE", "DRAIN"}, Reason: "a: x [node_problem] gojail (id " + id + "); was: fan", stamp: "root@" + now.Format("2006-01-02T15:04:05")}
	checks := results("o")
	assert.Equal(t, &Record{ID: id, Check: "a", Reason: node.Reason, Stamp: node.stamp}, findLostRecord(node, checks))
	checks[0].Check.Severity = check.WarnOnly
	assert.Nil(t, findLostRecord(node, checks))
	assert.Nil(t, findLostRecord(node, nil))
}

// TestSlurmIsNotAskedForALostRecord where a record was there in this boot, or the controller says that the node is healthy.
func TestSlurmIsNotAskedForALostRecord(t *testing.T) {
	s := newSite(t)
	s.reconciler.Healthy = "yes"
	s.run("oo oo")
	assert.Empty(t, s.calls())

	s = newSite(t)
	s.run("fo fo")
	s.setAgo("root", 30*time.Second)
	s.boot()
	s.run("oo")
	require.NoError(t, os.Remove(s.reconciler.Store.recordPath()))
	s.calls()
	s.run("oo oo oo oo")
	assert.Empty(t, s.calls())

	s = newSite(t)
	s.reconciler.DryRun = true
	s.run("oo")
	assert.Empty(t, s.calls())
}
