// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

const short, long = 200 * time.Millisecond, time.Hour

// checks are the checks of the children.
func checks() []check.Check {
	fine := func(_ context.Context, h *check.Host) check.Finding {
		f := check.NewFinding(check.OK, "fine on %s", h.Node)
		f.Detail, f.State = string(h.State), json.RawMessage(`"now"`)
		return f
	}
	forever := func(_ context.Context, h *check.Host) check.Finding {
		pid := filepath.Join(h.Roots.Run, "pid")
		_ = os.WriteFile(pid+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
		_ = os.Rename(pid+".new", pid)
		if f, err := os.OpenFile(filepath.Join(h.Roots.Run, "begun"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
			_, _ = f.WriteString(".")
		}
		select {}
	}
	frozen := func(_ context.Context, h *check.Host) check.Finding { // in the cgroup of version 1 that the file group names
		group, err := os.ReadFile(filepath.Join(h.Roots.Run, "group"))
		if err == nil {
			err = os.WriteFile(filepath.Join(string(group), "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(string(group), "freezer.state"), []byte("FROZEN"), 0)
		}
		if err != nil {
			return check.NewFinding(check.Unknown, "%v", err)
		}
		select {}
	}
	broken := func(context.Context, *check.Host) check.Finding { panic("no\nidea") }
	gone := func(context.Context, *check.Host) check.Finding { os.Exit(7); panic("") }
	asks := func(ctx context.Context, h *check.Host) check.Finding {
		out, err := h.Command(ctx, "/bin/sh", "-c", "echo $0:$HOME:$SECRET", "hello")
		return check.NewFinding(check.OK, "%s%v", out, err)
	}
	waits := func(_ context.Context, h *check.Host) check.Finding { // until the first one is in its place
		for {
			if _, err := os.Stat(filepath.Join(h.Roots.Run, "pid")); err == nil {
				return check.NewFinding(check.OK, "it came")
			}
			time.Sleep(time.Millisecond)
		}
	}
	starts := func(_ context.Context, h *check.Host) check.Finding {
		_, err := h.Command(context.Background(), "/bin/sh", "-c", "sleep 1000 & wait")
		return check.NewFinding(check.OK, "%v", err)
	}
	executes := func(_ context.Context, h *check.Host) check.Finding {
		_, err := h.Command(context.Background(), filepath.Join(h.Roots.Run, "program"))
		return check.NewFinding(check.OK, "%v", err)
	}
	return []check.Check{
		{Name: "executes", Timeout: long, Run: executes},
		{Name: "fine", Timeout: long, Run: fine},
		{Name: "forever", Timeout: short, Run: forever, HangVerdict: check.Fail},
		{Name: "frozen", Timeout: short, Run: frozen, HangVerdict: check.Fail},
		{Name: "broken", Timeout: long, Run: broken},
		{Name: "gone", Timeout: long, Run: gone, HangVerdict: check.Fail},
		{Name: "asks", Timeout: long, Run: asks},
		{Name: "waits", Timeout: long, Run: waits},
		{Name: "starts", Timeout: short, Run: starts, HangVerdict: check.Fail},
	}
}

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "child":
		if err := Serve(checks(), os.Stdin, os.Stdout, LockFD); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) == 3 && os.Args[1] == "parent":
		r := Runner{Host: check.Host{Roots: check.Roots{Run: os.Args[2]}}, Locks: os.Args[2], Self: self(),
			Checks: []check.Check{in("a", "forever")}}
		r.Checks[0].Timeout = long
		r.Run(context.Background())
	default:
		os.Exit(m.Run())
	}
}

func self() []string { return []string{"/proc/self/exe", "child"} }

// in returns a check in a child.
func in(child, name string) check.Check {
	for _, c := range checks() {
		if c.Name == name {
			c.Child = child
			return c
		}
	}
	panic(name)
}

func runner(t *testing.T, list ...check.Check) *Runner {
	dir := t.TempDir()
	r := &Runner{
		Host:   check.Host{Node: "n1", Roots: check.Roots{Run: dir}, Settings: config.DefaultSettings()},
		States: map[string]json.RawMessage{"fine": json.RawMessage(`"before"`)},
		Checks: list, Locks: dir, Self: self(),
	}
	return r
}

// said returns each result as "name: verdict: text".
func said(results []Result) []string {
	var all []string
	for _, r := range results {
		all = append(all, fmt.Sprintf("%s: %v: %s", r.Check.Name, r.Verdict, r.Text))
	}
	return all
}

func TestChecksOfSeveralChildren(t *testing.T) {
	results := runner(t, in("a", "fine"), in("a", "fine"), in("b", "fine")).Run(context.Background())
	assert.Equal(t, []string{"fine: ok: fine on n1", "fine: ok: fine on n1", "fine: ok: fine on n1"}, said(results))
	for _, r := range results {
		assert.Equal(t, `"before"`, r.Detail)
		assert.Equal(t, `"now"`, string(r.State))
	}
}

func TestOneThatHangsOrBreaksStopsNoOther(t *testing.T) {
	results := runner(t, in("a", "broken"), in("a", "forever"), in("a", "fine"), in("a", "gone"), in("a", "fine")).Run(context.Background())
	assert.Equal(t, []string{"broken: unknown: the check panicked; please report it", "forever: fail: does not answer",
		"fine: ok: fine on n1", "gone: unknown: the process of the check ended", "fine: ok: fine on n1"}, said(results))
	assert.Contains(t, results[3].Detail, "exit status 7")
	assert.Equal(t, "no\nidea", results[0].Detail)
}

// TestASlowCheckIsAWarningUntilItsProcessStays: a process that ends after it was killed at its
// timeout was slow.
func TestASlowCheckIsAWarningUntilItsProcessStays(t *testing.T) {
	slow := in("a", "forever")
	slow.SlowReason = func(h *check.Host) string {
		if string(h.State) == "true" {
			return ""
		}
		return "slow: as may be"
	}
	r := runner(t, slow)
	assert.Equal(t, []string{"forever: warn: slow: as may be"}, said(r.Run(context.Background())))
	r = runner(t, slow)
	r.States["forever"] = json.RawMessage("true")
	assert.Equal(t, []string{"forever: fail: does not answer"}, said(r.Run(context.Background())))

	r = runner(t, slow)
	lock, err := takeLock(r.slotPath(0)) // as the process of an earlier run does that is still there
	require.NoError(t, err)
	defer lock.Close()
	_, err = lock.WriteString("forever")
	require.NoError(t, err)
	assert.Equal(t, []string{"forever: fail: does not answer"}, said(r.Run(context.Background())))
}

// TestAHangIsDescribedByWhatWasSeen: a check may remember what the one before it found out.
func TestAHangIsDescribedByWhatWasSeen(t *testing.T) {
	hung := in("a", "forever")
	hung.HangText = func(h *check.Host) string { return string(h.State) }
	r := runner(t, hung)
	assert.Equal(t, []string{"forever: fail: does not answer"}, said(r.Run(context.Background())))
	r = runner(t, hung)
	r.States["forever"] = json.RawMessage("srv:/export does not answer")
	lock, err := takeLock(r.slotPath(0)) // as the process of an earlier run does that is still there
	require.NoError(t, err)
	defer lock.Close()
	_, err = lock.WriteString("forever")
	require.NoError(t, err)
	assert.Equal(t, []string{"forever: fail: srv:/export does not answer"}, said(r.Run(context.Background())))
}

func TestTheWholeEndsAlsoIfEverythingHangs(t *testing.T) {
	var list []check.Check
	for i := range 20 {
		check := in([]string{"a", "b", "c"}[i%3], "forever")
		check.Timeout = long
		list = append(list, check)
	}
	// One in each child hangs before the end comes: none creates a file after it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := runner(t, list...)
	go func() {
		for ctx.Err() == nil {
			if begun, _ := os.ReadFile(filepath.Join(r.Locks, "begun")); len(begun) == 3 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for _, s := range said(r.Run(ctx)) {
		assert.Equal(t, "forever: unknown: not checked in time", s)
	}
	assert.ErrorIs(t, ctx.Err(), context.Canceled, "all that can hang do")
}

func TestAStuckChildIsNotJoined(t *testing.T) {
	r := runner(t, in("a", "fine"), in("a", "forever"), in("b", "fine"))
	lock, err := takeLock(filepath.Join(r.Locks, "child.0.lock"))
	require.NoError(t, err)
	_, err = lock.WriteString("forever")
	require.NoError(t, err)
	want := []string{"fine: unknown: an earlier check of the same process still hangs", "forever: fail: does not answer", "fine: ok: fine on n1"}
	assert.Equal(t, want, said(r.Run(context.Background())))
	assert.NoFileExists(t, filepath.Join(r.Locks, "pid"))

	lock.Close() // it is gone
	r.Checks = r.Checks[:1]
	assert.Equal(t, []string{"fine: ok: fine on n1"}, said(r.Run(context.Background())))
}

func TestOneProcessIsEnoughWhereNothingHangs(t *testing.T) {
	r := runner(t, in("a", "fine"), in("b", "fine"), in("c", "asks"), in("a", "fine"))
	r.Run(context.Background())
	assert.FileExists(t, r.slotPath(0))
	assert.NoFileExists(t, r.slotPath(1))
}

// Requests that are not read fill the pipe at some point.
func TestManyQuestionsBesideOneThatHangs(t *testing.T) {
	r := runner(t, in("a", "forever"), in("a", "fine"), in("a", "fine"), in("a", "fine"), in("a", "fine"))
	r.States["fine"] = json.RawMessage(`"` + strings.Repeat("x", 20<<10) + `"`)
	want := []string{"forever: fail: does not answer", "fine: ok: fine on n1", "fine: ok: fine on n1", "fine: ok: fine on n1", "fine: ok: fine on n1"}
	assert.Equal(t, want, said(r.Run(context.Background())))
}

// A slow check delays only its own child, and the run waits for it.
func TestTheOthersDoNotWaitForOneThatIsSlow(t *testing.T) {
	r := runner(t, in("a", "forever"), in("a", "fine"), in("b", "waits"), in("c", "fine"))
	r.Checks[0].Timeout = long
	ctx, cancel := context.WithTimeout(context.Background(), 30*patience)
	defer cancel()
	want := []string{"forever: unknown: not checked in time", "fine: unknown: not checked in time", "waits: ok: it came", "fine: ok: fine on n1"}
	assert.Equal(t, want, said(r.Run(ctx)))
}

func TestWhatIsHangingIsNamedInTheLock(t *testing.T) {
	r := runner(t, in("a", "fine"), in("a", "forever"))
	r.Run(context.Background())
	by, err := os.ReadFile(filepath.Join(r.Locks, "child.0.lock"))
	require.NoError(t, err)
	assert.Equal(t, "forever", strings.TrimSpace(string(by)))
}

// A process may get stuck before its first check.
func TestTheLockDoesNotNameACheckOfAnEarlierProcess(t *testing.T) {
	r := runner(t, in("a", "fine"))
	require.NoError(t, os.WriteFile(r.slotPath(0), []byte("forever"), 0o600))
	r.Checks[0].Timeout = short
	r.Self = []string{"/bin/sleep", "1000"}
	r.Run(context.Background())
	by, err := os.ReadFile(r.slotPath(0))
	require.NoError(t, err)
	assert.Empty(t, string(by))
	assert.EqualError(t, &heldError{"x.lock", ""}, "a process of an earlier run (task unknown) is stuck; to find it: fuser -v x.lock")
}
