// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/run"
)

func TestDecideWithUnkilled(t *testing.T) {
	silent := Record{ID: "0badcafe", Check: "gpu", Reason: mine, Stamp: stamp, Silent: true}
	fault, unconfirmed, renaming := silent, silent, silent
	fault.Silent = false
	unconfirmed.Stamp = ""
	renaming.Before = &silent
	const slurm, later = "Slurm could not kill a process (Kill task failed)", "root@2026-11-21T17:05:00"
	foreign := Decision{Forget, "it is already drained: Kill task failed"}
	for name, test := range map[string]struct {
		goal                           Goal
		record                         *Record
		state, reason, stamp, unkilled string
		want                           Decision
	}{
		"storage is silent":                  {ToHold, &silent, "IDLE+DRAIN", unkilledReason, later, "", Decision{None, slurm + " while the storage does not answer"}},
		"storage is back":                    {ToUndrain, &silent, "IDLE+DRAIN", unkilledReason, later, "", Decision{Undrain, ""}},
		"back, a process is left":            {ToUndrain, &silent, "IDLE+DRAIN", unkilledReason, later, "process 7", Decision{None, slurm + ", and there is still process 7"}},
		"back, a job is left":                {ToUndrain, &silent, "MIXED+DRAIN", unkilledReason, later, "", Decision{None, slurm + ", and the node still has a job"}},
		"back, a job ends":                   {ToUndrain, &silent, "IDLE+DRAIN+COMPLETING", unkilledReason, later, "", Decision{None, slurm + ", and the node still has a job"}},
		"back, and maintained":               {ToUndrain, &silent, "IDLE+DRAIN+MAINTENANCE", unkilledReason, later, "", Decision{None, "the node is IDLE+DRAIN+MAINTENANCE"}},
		"back, resumed":                      {ToUndrain, &silent, "IDLE", unkilledReason, later, "", Decision{Forget, "the node is no longer drained"}},
		"another check fails":                {ToRename, &silent, "IDLE+DRAIN", unkilledReason, later, "", foreign},
		"a person's words":                   {ToUndrain, &silent, "IDLE+DRAIN", "Kill task failed, see 17", later, "", Decision{Forget, "it is already drained: Kill task failed, see 17"}},
		"a person's reason":                  {ToUndrain, &silent, "IDLE+DRAIN", unkilledReason, "alice@2026-11-21T17:05:00", "", foreign},
		"drained for another fault":          {ToUndrain, &fault, "IDLE+DRAIN", unkilledReason, later, "", foreign},
		"drained by Slurm first":             {ToDrain, nil, "IDLE+DRAIN", unkilledReason, later, "", Decision{None, "it is already drained: Kill task failed"}},
		"own reason was never seen":          {ToUndrain, &unconfirmed, "IDLE+DRAIN", unkilledReason, later, "", foreign},
		"own reason was to become another's": {ToUndrain, &renaming, "IDLE+DRAIN", unkilledReason, later, "", foreign},
	} {
		node := &nodeState{Name: "n1", State: strings.Split(test.state, "+"), Reason: test.reason, stamp: test.stamp}
		assert.Equal(t, test.want, planDecision(Request{Goal: test.goal, Check: "gpu"}, test.record, node, "42", test.unkilled), name)
	}
}

// runSilent is run with results whose failures are storage that does not answer.
func (s *site) runSilent(runs string) {
	for _, letters := range strings.Fields(runs) {
		h, err := s.reconciler.Store.ReadHistory("boot")
		require.NoError(s.t, err)
		s.reconciler.History = h
		all := results(letters)
		for i := range all {
			all[i].Silent = letters[i] == 'f'
		}
		h.AddResults(all)
		s.outcome = s.reconciler.Reconcile(context.Background(), all)
		require.NoError(s.t, s.reconciler.Store.SaveHistory(h))
		s.now = s.now.Add(time.Minute)
	}
}

// TestUnkilledProcessDuringAnOutage: Slurm's drain ends with the outage, once no process is left.
func TestUnkilledProcessDuringAnOutage(t *testing.T) {
	s := newSite(t)
	left := "process 7"
	s.reconciler.FindUnkilled = func() string { return left }
	s.runSilent("fo fo")
	s.is("IDLE+DRAIN", reasonA)
	s.set("reason", unkilledReason)
	s.set("stamp", "root@2026-12-01T00:00:00")
	s.runSilent("fo fo fo fo fo fo oo oo oo")
	s.is("IDLE+DRAIN", unkilledReason)
	assert.Equal(t, Decision{None, "Slurm could not kill a process (Kill task failed), and there is still process 7"}, s.outcome.Decision)
	left = ""
	s.runSilent("oo oo oo oo oo oo")
	s.is("IDLE", unkilledReason)
	assert.Nil(t, s.outcome.Record)
}

// TestUnkilledProcessDuringAnotherFault stays with a person.
func TestUnkilledProcessDuringAnotherFault(t *testing.T) {
	s := newSite(t)
	s.reconciler.FindUnkilled = func() string { return "" }
	s.run("fo fo")
	s.set("reason", unkilledReason)
	s.set("stamp", "root@2026-12-01T00:00:00")
	s.runSilent("fo fo oo oo oo oo oo oo oo oo")
	s.is("IDLE+DRAIN", unkilledReason)
}

// TestSilenceIsRemembered: a run whose check hangs repeats the last text.
func TestSilenceIsRemembered(t *testing.T) {
	silent, other, good := results("f")[0], results("f")[0], results("o")[0]
	silent.Silent = true
	other.Text = "another"
	var c CheckHistory
	for i, step := range []struct {
		result run.Result
		want   bool
	}{{silent, true}, {results("f")[0], true}, {other, false}, {results("f")[0], false}, {silent, true}, {good, true}, {good, true}, {good, false}} {
		c = c.addResult(step.result)
		assert.Equal(t, step.want, c.Silent, i)
	}
}
