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
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/run"
)

const (
	mine    = "gpu: GPU 3 is lost [node_problem] gojail (id 0badcafe)"
	stamp   = "root@2026-11-21T17:00:00"
	persons = "ADMIN SHUTDOWN"
)

func TestDecide(t *testing.T) {
	record := &Record{ID: "0badcafe", Check: "gpu", Reason: mine, Stamp: stamp}
	fresh := &Record{ID: "0badcafe", Check: "gpu", Reason: mine}
	renaming := &Record{ID: "1", Check: "disk", Reason: "disk: full [node_problem] gojail (id 1)", Before: record}
	const renamed = "gpu: GPU 3 is lost [node_problem] gojail (id 42)"
	for name, test := range map[string]struct {
		wish   Goal
		record *Record
		state  string
		reason string
		stamp  string
		want   Decision
	}{
		"healthy":                                 {Nothing, nil, "IDLE", "", "", Decision{}},
		"sick":                                    {ToDrain, nil, "IDLE", "", "", Decision{Drain, renamed}},
		"sick with jobs":                          {ToDrain, nil, "MIXED+CLOUD", "", "", Decision{Drain, renamed}},
		"sick, drained by a person":               {ToDrain, nil, "IDLE+DRAIN", persons, stamp, Decision{None, "it is already drained: " + persons}},
		"sick, drained without a reason":          {ToDrain, nil, "IDLE+DRAIN", "", "", Decision{None, "it is already drained: "}},
		"sick, drained by us without a record":    {ToDrain, nil, "IDLE+DRAIN", mine, stamp, Decision{None, "it is already drained: " + mine}},
		"sick, down":                              {ToDrain, nil, "DOWN", "", "", Decision{Drain, renamed}},
		"sick, down with a reason":                {ToDrain, nil, "DOWN+NOT_RESPONDING", "Not responding", "slurm@x", Decision{None, "it is already down: Not responding"}},
		"sick, a person's word on a good node":    {ToDrain, nil, "IDLE", "watch the fan", "root@x", Decision{Drain, renamed + "; was: watch the fan"}},
		"sick, our reason left over":              {ToDrain, nil, "IDLE", mine, stamp, Decision{Drain, renamed}},
		"sick, boots":                             {ToDrain, nil, "IDLE+REBOOT_ISSUED", "", "", Decision{None, "the node is REBOOT_ISSUED"}},
		"sick, in a maintenance":                  {ToDrain, nil, "IDLE+MAINTENANCE", "", "", Decision{None, "the node is MAINTENANCE"}},
		"still sick":                              {ToHold, record, "IDLE+DRAIN", mine, stamp, Decision{Confirm, ""}},
		"still sick, not yet confirmed":           {ToHold, fresh, "IDLE+DRAIN", mine, stamp, Decision{Confirm, ""}},
		"still sick, somebody else's same words":  {ToHold, fresh, "IDLE+DRAIN", mine, "alice@x", Decision{Forget, "it is already drained: " + mine}},
		"still sick, the drain never came":        {ToHold, fresh, "IDLE", "", "", Decision{Drain, renamed}},
		"still sick, a person resumed it":         {ToHold, record, "IDLE", mine, stamp, Decision{Drain, renamed}},
		"still sick, a person took over":          {ToHold, record, "IDLE+DRAIN", persons, "alice@x", Decision{Forget, "it is already drained: " + persons}},
		"sick of another":                         {ToRename, record, "IDLE+DRAIN", mine, stamp, Decision{Drain, renamed}},
		"sick of another, a person took over":     {ToRename, record, "IDLE+DRAIN", persons, stamp, Decision{Forget, "it is already drained: " + persons}},
		"sick of another, the new one never came": {ToHold, renaming, "IDLE+DRAIN", mine, stamp, Decision{Drain, renamed}},
		"mended":                         {ToUndrain, record, "IDLE+DRAIN", mine, stamp, Decision{Undrain, ""}},
		"mended with jobs":               {ToUndrain, record, "MIXED+DRAIN+COMPLETING", mine, stamp, Decision{Undrain, ""}},
		"mended before it was confirmed": {ToUndrain, fresh, "IDLE+DRAIN", mine, stamp, Decision{Undrain, ""}},
		"mended, while renaming":         {ToUndrain, renaming, "IDLE+DRAIN", mine, stamp, Decision{Undrain, ""}},
		"mended, a person took over":     {ToUndrain, record, "IDLE+DRAIN", persons, stamp, Decision{Forget, "it is already drained: " + persons}},
		"mended, a person said the same": {ToUndrain, record, "IDLE+DRAIN", mine, "root@2026-11-21T18:00:00", Decision{Forget, "it is already drained: " + mine}},
		"mended, a person added to it":   {ToUndrain, record, "IDLE+DRAIN", mine + " : see 17", stamp, Decision{Forget, "it is already drained: " + mine + " : see 17"}},
		"mended, our reason's beginning": {ToUndrain, record, "IDLE+DRAIN", mine[:20], stamp, Decision{Forget, "it is already drained: " + mine[:20]}},
		"mended, no reason at all":       {ToUndrain, record, "IDLE+DRAIN", "", "", Decision{Forget, "it is already drained: "}},
		"mended, down":                   {ToUndrain, record, "DOWN+DRAIN", mine, stamp, Decision{None, "the node is DOWN+DRAIN"}},
		"mended, fails":                  {ToUndrain, record, "IDLE+DRAIN+FAIL", mine, stamp, Decision{None, "the node is IDLE+DRAIN+FAIL"}},
		"mended, boots":                  {ToUndrain, record, "IDLE+DRAIN+REBOOT_REQUESTED", mine, stamp, Decision{None, "the node is IDLE+DRAIN+REBOOT_REQUESTED"}},
		"mended, in a maintenance":       {ToUndrain, record, "IDLE+DRAIN+MAINTENANCE", mine, stamp, Decision{None, "the node is IDLE+DRAIN+MAINTENANCE"}},
		"mended, resumed by a person":    {ToUndrain, record, "IDLE", mine, stamp, Decision{Forget, "the node is no longer drained"}},
	} {
		node := &nodeState{Name: "n1", State: strings.Split(test.state, "+"), Reason: test.reason, stamp: test.stamp}
		assert.Equal(t, test.want, planDecision(Request{Goal: test.wish, Check: "gpu", Text: "GPU 3 is lost"}, test.record, node, "42", ""), name)
	}
}

func TestNothingIsWrittenForAnyWishThatIsNone(t *testing.T) {
	for _, state := range []string{"IDLE", "IDLE+DRAIN", "DOWN"} {
		node := &nodeState{State: strings.Split(state, "+"), Reason: mine, stamp: stamp}
		assert.Equal(t, Decision{}, planDecision(Request{}, &Record{Reason: mine, Stamp: stamp}, node, "42", ""))
	}
}

// results returns results of checks "a", "b", ... by letters: f fail, o ok, w warn, u unknown,
// n not applicable.
func results(letters string) []run.Result {
	verdicts := map[rune]check.Verdict{'f': check.Fail, 'o': check.OK, 'w': check.Warn,
		'u': check.Unknown, 'n': check.NotApplicable}
	var all []run.Result
	for i, letter := range letters {
		row := check.Check{Name: string(rune('a' + i)), Severity: check.Drain, BadRuns: 2, GoodRuns: 3}
		all = append(all, run.Result{Check: row, Finding: check.NewFinding(verdicts[letter], "text of %c", 'a'+i)})
	}
	return all
}

func TestWants(t *testing.T) {
	record := &Record{ID: "1", Check: "a", Reason: "x"}
	for name, test := range map[string]struct {
		runs   string // of one node, one word a run
		record *Record
		want   string
	}{
		"fine":                            {"oo oo oo", nil, "nothing "},
		"bad once":                        {"oo fo", nil, "nothing "},
		"bad, good, bad":                  {"fo oo fo", nil, "nothing "},
		"bad twice":                       {"fo fo", nil, "drain a"},
		"bad, unknown, bad":               {"fo uo fo", nil, "drain a"},
		"the first of two":                {"of of ff ff", nil, "drain a"},
		"bad, then good too few times":    {"fo fo oo oo", nil, "nothing "},
		"bad, good too few times, bad":    {"fo fo oo oo fo", nil, "drain a"},
		"one mends, the other is bad":     {"ff ff of", nil, "drain b"},
		"bad, then good":                  {"fo fo oo wo oo", nil, "nothing "},
		"unknown is not good":             {"fo fo oo uo oo", record, "hold a"},
		"drained, good too few times":     {"fo fo oo oo", record, "hold a"},
		"what is gone is not mended":      {"fo fo no no no no", nil, "drain a"},
		"unknown for ever":                {"uu uu uu uu", nil, "nothing "},
		"drained, still bad":              {"fo fo", record, "hold a"},
		"drained, others are bad too":     {"ff ff", record, "hold a"},
		"drained, mended, others are bad": {"of of of of", record, "rename b"},
		"drained, mended":                 {"fo fo oo oo oo", record, "undrain a"},
		"drained, booted, good once":      {"oo", record, "nothing "},
		"drained, booted, good enough":    {"oo oo oo", record, "undrain a"},
		"drained, booted, unknown":        {"uo uo uo uo", record, "nothing "},
		"drained, booted, gone":           {"no no no no", record, "nothing "},
		"drained, mended, another begins": {"oo oo oo of", record, "nothing "},
		"drained by a check that is off":  {"o o", &Record{ID: "1", Check: "z", Reason: "x"}, "undrain z"},
	} {
		h := &History{}
		var last []run.Result
		for _, letters := range strings.Fields(test.runs) {
			last = results(letters)
			h.AddResults(last)
		}
		assert.Equal(t, test.want, h.planRequest(last, test.record).String(), name)
	}
}

func TestWarningsNeverDrain(t *testing.T) {
	h := &History{}
	bad := results("f")
	bad[0].Check.Severity = check.WarnOnly
	for range 10 {
		h.AddResults(bad)
	}
	assert.Equal(t, Request{}, h.planRequest(bad, nil))
}

func TestTheHistoryOfAnUnchangedNodeStaysTheSame(t *testing.T) {
	store := Store{Run: t.TempDir()}
	for _, letters := range []string{"owun", "ffff"} {
		h := &History{}
		for range 5 {
			h.AddResults(results(letters))
		}
		require.NoError(t, store.SaveHistory(h))
		require.NoError(t, unwritable(store, func() error {
			assert.Empty(t, h.AddResults(results(letters)))
			return store.SaveHistory(h)
		}))
	}
}

// unwritable does it where a file cannot be written.
func unwritable(s Store, do func() error) error {
	if err := os.Mkdir(s.historyPath()+".new", 0o700); err != nil {
		return err
	}
	defer os.Remove(s.historyPath() + ".new")
	return do()
}

func TestAsk(t *testing.T) {
	now := time.Unix(1000, 0)
	confirmed, fresh := &Record{Stamp: stamp}, &Record{}
	want := Request{Goal: ToHold, Check: "a"}
	for name, test := range map[string]struct {
		asked  Asked
		want   Request
		record *Record
		health string
		ask    bool
	}{
		"nothing":                         {Asked{}, Request{}, nil, "", false},
		"new":                             {Asked{}, want, confirmed, "", true},
		"asked before":                    {Asked{"hold a", 950}, want, confirmed, "", false},
		"asked long ago":                  {Asked{"hold a", 700}, want, confirmed, "", true},
		"asked in the future":             {Asked{"hold a", 5000}, want, confirmed, "", true},
		"something else":                  {Asked{"drain a", 950}, want, confirmed, "", true},
		"unconfirmed":                     {Asked{"hold a", 950}, want, fresh, "", true},
		"known to be drained":             {Asked{"hold a", 700}, want, confirmed, "no", false},
		"new, and drained":                {Asked{}, want, nil, "no", true},
		"drained and mended":              {Asked{"undrain a", 700}, Request{Goal: ToUndrain, Check: "a"}, confirmed, "no", true},
		"a person has resumed it":         {Asked{"hold a", 950}, want, confirmed, "yes", true},
		"another's state, not ours":       {Asked{"drain a", 950}, Request{Goal: ToDrain, Check: "a"}, nil, "yes", false},
		"a word of a release yet to come": {Asked{"hold a", 950}, want, confirmed, "maybe", false},
	} {
		h := &History{Asked: test.asked}
		assert.Equal(t, test.ask, h.mustAsk(test.want, test.record, now, 5*time.Minute, test.health), name)
	}
}

func TestForget(t *testing.T) {
	h := &History{Checks: map[string]CheckHistory{"a": {Bad: 2, Counts: true, Text: "x", State: []byte(`{"seen":1}`)}}}
	known, err := h.ForgetCheck("b", check.Forgotten{Record: 7})
	assert.NoError(t, err)
	assert.False(t, known)
	known, err = h.ForgetCheck("a", check.Forgotten{Record: 7})
	assert.NoError(t, err)
	assert.True(t, known)
	assert.Equal(t, CheckHistory{Counts: true, Text: "x", State: []byte(`{"forgotten":7}`)}, h.Checks["a"], "the next runs say whether it is mended")
}

func TestAddTellsWhatIsNew(t *testing.T) {
	h := &History{}
	assert.Empty(t, h.AddResults(results("on")))
	assert.Equal(t, []Change{{"a", check.Fail, "text of a"}}, h.AddResults(results("fn")))
	assert.Equal(t, []Change{{"a", check.Fail, "text of a"}}, h.AddResults(results("fn")), "counts now")
	assert.Empty(t, h.AddResults(results("fn")))
	assert.Equal(t, []Change{{"a", check.OK, "text of a"}}, h.AddResults(results("on")))
}

// TestReasonNamesTheCheck: sinfo -R shows the first 20 characters.
func TestReasonNamesTheCheck(t *testing.T) {
	for _, c := range checks.All() {
		reason := Request{Check: c.Name, Text: "text (id 1) of it"}.formatReason("0badcafe", "")
		assert.Contains(t, reason[:20], c.Name)
		assert.True(t, isOurs(reason), reason)
		assert.True(t, isOurs(reason+"; was: somebody's"), reason)
	}
}

func TestReasonsOfOthers(t *testing.T) {
	for _, other := range []string{"", "fix (id 3)", "[node_problem] other: x (id 1)", "see [node_problem] gojail (id 1)", "gpu: GPU 3 [node_problem] gojail",
		"[node_problem] gojail: gpu: GPU 3 is lost (id 0badcafe)"} {
		assert.False(t, isOurs(other), other)
	}
}
