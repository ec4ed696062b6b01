// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/filelock"
)

// fakeScontrol keeps a node in the files state, reason, stamp and comment. It logs its calls, and first
// runs the file before-VERB.
const fakeScontrol = `#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >>calls
[ ! -e "before-$1" ] || . "./before-$1"
case "$1 $2" in
"show node")
	echo "NodeName=$3 Arch=x86_64 CoresPerSocket=1 "
	echo "   State=$(cat state) ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A"
	[ ! -s reason ] || echo "   Reason=$(head -n1 reason) [$(cat stamp)]"
	[ ! -s reason ] || sed 1d reason | sed 's/^/          /'
	[ ! -s comment ] || { printf '   Comment='; cat comment; echo; }
	echo
	;;
"update NodeName=n1")
	for word; do
		case "$word" in
		State=DRAIN) echo IDLE+DRAIN >state ;;
		State=UNDRAIN) echo IDLE >state ;;
		Reason=*) printf %s "${word#Reason=}" >reason; echo root@2026-11-21T17:00:$(wc -l <calls) >stamp ;;
		esac
	done
	;;
*) exit 1 ;;
esac
`

// site is a node with its fake controller.
type site struct {
	t          *testing.T
	dir        string
	reconciler Reconciler
	now        time.Time
	outcome    Outcome
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir(), now: time.Unix(1e9, 0)}
	for file, text := range map[string]string{"scontrol": fakeScontrol, "state": "IDLE", "reason": "", "stamp": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o700))
	}
	s.reconciler = Reconciler{
		Slurm: &Slurm{Slurm: config.Defaults().Slurm, Node: "n1", Lock: filepath.Join(s.dir, "lock")},
		Store: Store{Run: filepath.Join(s.dir, "run"), State: filepath.Join(s.dir, "state.d")},
		Now:   func() time.Time { return s.now },
	}
	s.reconciler.Slurm.Timeout = time.Minute
	s.reconciler.Slurm.Scontrol = filepath.Join(s.dir, "scontrol")
	for _, dir := range []string{s.reconciler.Store.Run, s.reconciler.Store.State} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	return s
}

// run performs runs of the health check, each in a new process: letters as for results.
func (s *site) run(runs string) {
	for _, letters := range strings.Fields(runs) {
		h, err := s.reconciler.Store.ReadHistory("boot")
		require.NoError(s.t, err)
		s.reconciler.History = h
		h.AddResults(results(letters))
		s.reconcile(letters)
		require.NoError(s.t, s.reconciler.Store.SaveHistory(h))
		s.now = s.now.Add(30 * time.Second)
	}
}

// hangForever is a part of scontrol that hangs.
const hangForever = "touch hanging; sleep 1000"

// reconcile performs one run. Where scontrol hangs, the time for its answer is over at that moment, and the next run comes when
// that scontrol is gone, however slow this machine is.
func (s *site) reconcile(letters string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if os.Remove(filepath.Join(s.dir, "hanging")) == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	s.outcome = s.reconciler.Reconcile(ctx, results(letters))
	lock, err := filelock.Wait(s.t.Context(), s.reconciler.Slurm.Lock)
	require.NoError(s.t, err)
	lock.Close()
}

func (s *site) boot() { require.NoError(s.t, os.Remove(s.reconciler.Store.historyPath())) }

func (s *site) set(file, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600))
}

// calls returns the calls of scontrol since the last time.
func (s *site) calls() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "calls"))
	require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, "calls")))
	return string(text)
}

// is asserts the state of the node in Slurm; the id in the reason is replaced by ID.
func (s *site) is(state, reason string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "state"))
	require.NoError(s.t, err)
	assert.Equal(s.t, state, strings.TrimSpace(string(text)))
	text, err = os.ReadFile(filepath.Join(s.dir, "reason"))
	require.NoError(s.t, err)
	if s.outcome.Record != nil {
		text = []byte(strings.ReplaceAll(string(text), s.outcome.Record.ID, "ID"))
	}
	assert.Equal(s.t, reason, string(text))
}

const reasonA = "a: text of a [node_problem] gojail (id ID)"

func TestAFaultComesAndGoes(t *testing.T) {
	s := newSite(t)
	s.run("oo")
	assert.Equal(t, "show node n1\n", s.calls(), "once after a boot, for a drain whose record is lost")
	s.run("oo oo fo oo")
	assert.Empty(t, s.calls(), "no question as long as nothing is wanted")
	s.run("fo fo")
	s.is("IDLE+DRAIN", reasonA)
	s.calls()
	s.run("fo fo ff fo oo oo")
	assert.Empty(t, s.calls(), "nor as long as nothing else is")
	s.run("oo oo oo")
	s.is("IDLE", strings.ReplaceAll(reasonA, "ID", s.lastID()))
	assert.Nil(t, s.outcome.Record)
	s.calls()
	s.run("oo oo oo")
	assert.Empty(t, s.calls())
}

// TestResumedAfterARepair: a person need not wait for the last good run.
func TestResumedAfterARepair(t *testing.T) {
	for name, after := range map[string]string{"with our record": "oo", "and then with another fault": "of"} {
		s := newSite(t)
		s.run("fo fo fo")
		s.is("IDLE+DRAIN", reasonA)
		s.set("state", "IDLE")
		s.now = s.now.Add(time.Hour)
		s.run(after)
		assert.Equal(t, Forget, s.outcome.Action, name)
		assert.Nil(t, s.outcome.Record, name)
		s.run("oo")
		assert.Equal(t, None, s.outcome.Action, name)
		assert.NotContains(t, strings.Replace(s.calls(), "update", "", 1), "update", "%s: but for the drain", name)
	}
	s := newSite(t)
	s.run("fo fo fo")
	s.set("state", "IDLE")
	s.now = s.now.Add(time.Hour)
	s.run("oo fo")
	assert.Equal(t, Drain, s.outcome.Action, "it was no repair")
}

// lastID returns the id in the reason.
func (s *site) lastID() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "reason"))
	require.NoError(s.t, err)
	_, id, _ := strings.Cut(string(text), "(id ")
	return strings.TrimSuffix(id, ")")
}

func TestADrainOutlivesABoot(t *testing.T) {
	s := newSite(t)
	s.run("fo fo")
	s.boot()
	s.run("oo oo")
	s.is("IDLE+DRAIN", reasonA)
	s.run("oo")
	s.is("IDLE", strings.ReplaceAll(reasonA, "ID", s.lastID()))
}

func TestTheReasonFollowsTheFault(t *testing.T) {
	s := newSite(t)
	s.run("fo fo ff ff of of")
	s.is("IDLE+DRAIN", reasonA)
	s.run("of")
	s.is("IDLE+DRAIN", "b: text of b [node_problem] gojail (id ID)")
	s.run("oo oo oo")
	assert.Equal(t, Undrain, s.outcome.Action)
}

// A person drains a node; later the controller's answer is empty, then the checks
// are good again: LBNL NHC's issue 134.
func TestAPersonsDrainSurvives(t *testing.T) {
	s := newSite(t)
	s.set("state", "IDLE+DRAIN")
	s.set("reason", persons)
	s.set("stamp", stamp)
	s.run("fo fo fo")
	s.set("before-show", "exit 0")
	s.run("ff ff of of of of")
	s.set("before-show", "echo 'NodeName=n1 '; exit 0")
	s.run("fo fo")
	s.set("before-show", "")
	s.run("fo fo oo oo oo oo oo")
	s.is("IDLE+DRAIN", persons)
	assert.NotContains(t, s.calls(), "update")
}

func TestAPersonTakesANodeOver(t *testing.T) {
	for _, reason := range []string{persons, reasonA + " : see 17"} {
		s := newSite(t)
		s.run("fo fo")
		s.set("reason", reason)
		s.set("stamp", "alice@2026-11-21T18:00:00")
		s.calls()
		s.run("oo oo oo oo oo")
		s.is("IDLE+DRAIN", reason)
		assert.Equal(t, "show node n1\n", s.calls())
		assert.Nil(t, s.outcome.Record)
	}
}

// The same text, set again by a person, counts as that person's reason.
func TestAPersonsSameWordsAreTheirs(t *testing.T) {
	s := newSite(t)
	s.run("fo fo")
	s.set("stamp", "root@2026-12-01T00:00:00")
	s.calls()
	s.run("oo oo oo oo")
	assert.Equal(t, "show node n1\n", s.calls())
}

// scontrol fails, hangs, or answers for another node: LBNL NHC's issues 161, 159 and 95.
func TestWithoutAnAnswerNothingIsWritten(t *testing.T) {
	for name, before := range map[string]string{
		"empty":        "exit 0",
		"fails":        "echo 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1",
		"hangs":        hangForever,
		"another node": "echo 'NodeName=n10 Arch=x'; echo '   State=IDLE ThreadsPerCore=1'; exit 0",
		"two nodes":    "echo 'NodeName=n1 Arch=x'; echo '   State=IDLE ThreadsPerCore=1'",
		"no state":     "echo 'NodeName=n1 Arch=x'; exit 0",
		"a new state":  "echo 'NodeName=n1 Arch=x'; echo '   State=IDLE+% ThreadsPerCore=1'; exit 0",
		"cut reason":   "echo 'NodeName=n1 Arch=x'; echo '   State=IDLE+DRAIN ThreadsPerCore=1'; echo '   Reason=x'; exit 0",
	} {
		s := newSite(t)
		s.set("before-show", before)
		s.run("fo fo")
		assert.Error(t, s.outcome.Err, name)
		assert.NotContains(t, s.calls(), "update", name)

		s.set("before-show", "")
		s.run("fo")
		s.is("IDLE+DRAIN", reasonA)
		s.set("before-show", before)
		s.run("oo oo oo oo")
		s.is("IDLE+DRAIN", reasonA)

		s.set("before-show", "")
		s.run("oo")
		assert.Equal(t, Undrain, s.outcome.Action, name)
	}
}

// The update is lost or has no answer, or this process is killed during it.
func TestAnUpdateWithoutAnAnswerIsSeenToLater(t *testing.T) {
	for name, before := range map[string]string{
		"refused":         "exit 1",
		"hangs":           hangForever,
		"hangs, but came": "echo IDLE+DRAIN >state; printf %s \"${4#Reason=}\" >reason; echo root@x >stamp; " + hangForever,
	} {
		s := newSite(t)
		s.set("before-update", before)
		s.run("fo fo")
		assert.Error(t, s.outcome.Err, name)
		s.set("before-update", "")
		s.run("fo")
		s.is("IDLE+DRAIN", reasonA)
		s.run("oo oo oo")
		assert.Equal(t, Undrain, s.outcome.Action, name)
	}
}

func TestAPersonWhoResumesASickNodeSeesItDrainedAgain(t *testing.T) {
	s := newSite(t)
	s.run("fo fo fo")
	s.set("state", "IDLE")
	s.run(strings.Repeat("fo ", 11))
	s.is("IDLE+DRAIN", reasonA)
}

// Slurm does not always clear reasons, and people set reasons on nodes that take jobs.
func TestAReasonOnANodeThatTakesJobsIsKeptInOurs(t *testing.T) {
	s := newSite(t)
	s.set("reason", "say \"hä\"")
	s.set("stamp", "alice@2026-11-21T18:00:00")
	s.run("fo fo")
	s.is("IDLE+DRAIN", reasonA+"; was: say 'h??'")
	s.run("oo oo oo")
	assert.Equal(t, Undrain, s.outcome.Action)
	s.run("fo fo")
	s.is("IDLE+DRAIN", reasonA)
}

func TestDryRunChangesNothing(t *testing.T) {
	s := newSite(t)
	s.reconciler.DryRun = true
	s.run("fo fo")
	assert.Equal(t, Drain, s.outcome.Action)
	assert.Equal(t, "show node n1\n", s.calls())
	record, err := s.reconciler.Store.readRecord()
	assert.NoError(t, err)
	assert.Nil(t, record)
}
