// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is the shortest bound of a wait for an event: a machine that does much besides now and then stops a process for seconds.
const patience = time.Minute

// waitsFor maps the name of a function that waits for an event to the index of its argument that bounds the wait.
var waitsFor = map[string]int{
	"Eventually": 2, "EventuallyWithT": 2, "Poll": 0, "poll": 0, "After": 0, "SetDeadline": 0, "SetReadDeadline": 0, "SetWriteDeadline": 0,
}

// compares are the assertions whose first value is less than the second one.
var compares = map[string]bool{"Less": true, "Lessf": true, "LessOrEqual": true}

// durationUnits are the constants of package time, and those of tests/harness.
var durationUnits = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute,
	"Hour": time.Hour, "Slow": 1, "Timeout": time.Minute, "Late": time.Minute,
}

// readDuration returns the value of a duration, or of what time.Now().Add adds; it fails for one with a name of the test's own.
func readDuration(e ast.Expr) (d time.Duration, known bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return readDuration(e.X)
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 10, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		d, known = durationUnits[e.Sel.Name]
		return d, known
	case *ast.BinaryExpr:
		x, knowsX := readDuration(e.X)
		y, knowsY := readDuration(e.Y)
		if e.Op == token.MUL {
			return x * y, knowsX && knowsY
		}
		return x + y, e.Op == token.ADD && (knowsX && knowsY || x+y >= patience)
	case *ast.CallExpr:
		if calledName(e) == "Add" {
			return readDuration(e.Args[0])
		}
	}
	return 0, false
}

// calledName returns the name of the called function, without package or receiver.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// isElapsed reports whether an expression is time.Since(...).
func isElapsed(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && calledName(call) == "Since"
}

// isHasty reports whether an expression is a duration that is shorter than the shortest bound.
func isHasty(e ast.Expr) bool {
	d, known := readDuration(e)
	return known && d > 0 && d < patience
}

// explainWait returns what is wrong with a node of the syntax tree: a sleep, or a time by which something must have happened that a busy
// machine may exceed.
func explainWait(n ast.Node) string {
	switch n := n.(type) {
	case *ast.ForStmt:
		if init, ok := n.Init.(*ast.AssignStmt); ok && slices.ContainsFunc(init.Rhs, func(e ast.Expr) bool { _, end := e.(*ast.CallExpr); return end && isHasty(e) }) {
			return "loops for less than " + patience.String()
		}
	case *ast.BinaryExpr:
		if n.Op == token.LSS && isElapsed(n.X) && isHasty(n.Y) || n.Op == token.GTR && isElapsed(n.X) && isHasty(n.Y) {
			return "compares a time"
		}
	case *ast.CallExpr:
		name := calledName(n)
		if i, waits := waitsFor[name]; waits && i < len(n.Args) && isHasty(n.Args[i]) {
			return "waits for less than " + patience.String()
		}
		if compares[name] && len(n.Args) > 2 && isElapsed(n.Args[1]) {
			if d, known := readDuration(n.Args[2]); !known || d < patience {
				return "measures a time"
			}
		}
		if name == "WithTimeout" {
			if d, known := readDuration(n.Args[1]); known && d >= time.Second && d < patience { // a shorter one is to expire
				return "waits for less than " + patience.String()
			}
		}
		if name == "Sleep" {
			return "sleeps"
		}
	}
	return ""
}

// listPauses returns the sleeps of loops that look whether something has happened: the last statement of a loop, or that after each round.
func listPauses(file *ast.File) map[ast.Node]bool {
	pauses := map[ast.Node]bool{}
	add := func(s ast.Stmt) {
		if e, ok := s.(*ast.ExprStmt); ok {
			pauses[e.X] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if loop, ok := n.(*ast.ForStmt); ok {
			add(loop.Post)
			if body := loop.Body.List; len(body) > 0 {
				add(body[len(body)-1])
			}
		}
		return true
	})
	return pauses
}

// listHasty returns the lines of a file of tests that wait for a time, have no comment that says why, and are not the pause of a loop.
func listHasty(file *ast.File) (found []string) {
	explained, pauses := map[int]bool{}, listPauses(file)
	for _, group := range file.Comments {
		explained[fileSet.Position(group.Pos()).Line] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || pauses[n] {
			return n != nil
		}
		line := fileSet.Position(n.Pos()).Line
		if why := explainWait(n); why != "" && !explained[line] {
			found = append(found, fmt.Sprintf("%d %s", line, why))
		}
		return true
	})
	return found
}

// ofTests matches the packages that only tests use.
var ofTests = regexp.MustCompile(`test$|^tests/harness$|/fake/`)

// TestWaits: a test waits for events, and a bound that only a hang exceeds is the same everywhere. What a test must do by the clock, it says
// in a comment on that line.
func TestWaits(t *testing.T) {
	var found []string
	for _, p := range allPackages(t) {
		for name, file := range p.files {
			if !isTest(name) && !ofTests.MatchString(p.path) {
				continue
			}
			for _, line := range listHasty(file) {
				found = append(found, fmt.Sprintf("%s:%s; wait for an event, for a minute at least, or say beside it why this time is right",
					path.Join(p.path, name), line))
			}
		}
	}
	failEach(t, found)
}

// TestWaitsAreFound: each form of a wait for a time is found, and no other.
func TestWaitsAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"require.Eventually(t, done, 10*time.Second, time.Millisecond)":                 "waits for less than 1m0s",
		"require.Eventually(t, done, time.Minute, time.Millisecond)":                    "",
		"require.Eventually(t, done, limit, time.Millisecond)":                          "",
		"harness.Poll(20*time.Second*harness.Slow, done)":                               "waits for less than 1m0s",
		"harness.Poll(harness.Timeout, done)":                                           "",
		"select { case <-time.After(time.Second): }":                                    "waits for less than 1m0s",
		"select { case <-time.After(time.Second): } // nothing comes":                   "",
		"c.SetReadDeadline(time.Now().Add(2 * (time.Second + time.Minute)))":            "",
		"c.SetReadDeadline(time.Now().Add(2 * time.Second))":                            "waits for less than 1m0s",
		"assert.Less(t, time.Since(begin), limit)":                                      "measures a time",
		"assert.Less(t, time.Since(begin), limit+time.Second)":                          "measures a time",
		"assert.Less(t, time.Since(begin), limit+harness.Late)":                         "",
		"assert.Less(t, 1, 2)":                                                          "",
		"for begin := time.Now(); time.Since(begin) < time.Second; { done() }":          "compares a time",
		"for time.Since(begin) < time.Hour { done() }":                                  "",
		"time.Sleep(time.Millisecond)":                                                  "sleeps",
		"time.Sleep(time.Millisecond) // a lease is older than a second":                "",
		"for !done() { time.Sleep(time.Millisecond) }":                                  "",
		"for ; !done(); time.Sleep(time.Millisecond) { }":                               "",
		"for range 3 { time.Sleep(time.Millisecond); done() }":                          "sleeps",
		"for range 3 { done(func() { time.Sleep(time.Millisecond) }) }":                 "sleeps",
		"for end := time.Now().Add(time.Second); !done() && time.Now().Before(end); {}": "loops for less than 1m0s",
		"for end := time.Now().Add(time.Minute); !done() && time.Now().Before(end); {}": "",
		"for i := 7; i < 9; i++ { done() }":                                             "",
		"ctx, cancel := context.WithTimeout(t.Context(), time.Second)":                  "waits for less than 1m0s",
		"ctx, cancel := context.WithTimeout(t.Context(), time.Minute)":                  "",
		"ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)":             "",
	} {
		file, err := parser.ParseFile(fileSet, "x.go", "package p\nfunc f() {\n"+line+"\n}\n", parser.ParseComments)
		require.NoError(t, err, line)
		if want != "" {
			want = "3 " + want
		}
		got := ""
		for _, found := range listHasty(file) {
			got = found
		}
		assert.Equal(t, want, got, line)
	}
}
