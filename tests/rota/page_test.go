// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// turnMinutes is the longest that a slot may take.
const turnMinutes = 15

var (
	recipe  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*\n((?:\t.*\n)+)`)
	testDir = regexp.MustCompile(`\./tests/[a-z/]+[a-z]`)
	// runsTests matches what a recipe has that runs tests.
	runsTests = regexp.MustCompile(`\(GO\) test |summary -|/test |tests/fuzz\.sh`)
)

// makeCall is a call of make in the table.
type makeCall struct {
	slot, target string
	values       map[string]string
	dirs         []string // whose tests it runs
}

var (
	call  = regexp.MustCompile(`\bmake ([a-z-]+)([^&;]*)`)
	value = regexp.MustCompile(`([A-Z]+)=('[^']*'|\S+)`)
)

// readMakefile returns the recipe of each target.
func readMakefile(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	recipes := map[string]string{}
	for _, m := range recipe.FindAllStringSubmatch(string(text), -1) {
		recipes[m[1]] = strings.ReplaceAll(m[2], "$(SUITE_DIRS)", "./tests/slurm ./tests/escape ./tests/session")
	}
	require.Contains(t, recipes, "test")
	return recipes
}

// readPage returns the table.
func readPage(t *testing.T) table {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	require.NoError(t, err)
	got, err := parseTable(string(text))
	require.NoError(t, err)
	return got
}

// listCalls returns the calls of make in the slots.
func listCalls(slots []slot, recipes map[string]string) (calls []makeCall) {
	for _, s := range slots {
		for _, m := range call.FindAllStringSubmatch(s.command, -1) {
			c := makeCall{slot: s.name, target: m[1], values: map[string]string{}}
			for _, v := range value.FindAllStringSubmatch(m[2], -1) {
				c.values[v[1]] = strings.Trim(v[2], "'")
			}
			if c.dirs = testDir.FindAllString(recipes[c.target], -1); c.values["PACKAGE"] != "" {
				c.dirs = []string{c.values["PACKAGE"]}
			}
			c.dirs = slices.DeleteFunc(c.dirs, func(dir string) bool { return dir == "./tests/summary" }) // the program
			calls = append(calls, c)
		}
	}
	return calls
}

func TestTurns(t *testing.T) {
	got := readPage(t)
	assert.Equal(t, 1, len(got.turns)%2, "%d slots: with an even number, the commits with an even number would not come to all (choose)", len(got.turns))
	for _, s := range got.turns {
		assert.LessOrEqual(t, s.minutes, turnMinutes, "slot %s: cut it in parts (PART=2/3)", s.name)
		for _, path := range s.paths {
			info, err := os.Stat("../../" + path)
			if assert.NoError(t, err, "slot %s", s.name) {
				assert.Equal(t, info.IsDir(), strings.HasSuffix(path, "/"), "slot %s: a directory ends in /: %s", s.name, path)
			}
		}
	}
	for _, name := range []string{"test", "launch"} { // of .ci/run
		_, err := got.find(name)
		assert.NoError(t, err)
	}
}

// TestEachSuiteIsInASlot: each target of make that runs tests is in the table.
func TestEachSuiteIsInASlot(t *testing.T) {
	got, recipes := readPage(t), readMakefile(t)
	all := listCalls(slices.Concat(got.turns, got.others), recipes)
	isTest := regexp.MustCompile(`-run '\^\$\$'`) // benches
	for target, lines := range recipes {
		if runsTests.MatchString(lines) && !isTest.MatchString(lines) {
			assert.True(t, slices.ContainsFunc(all, func(c makeCall) bool { return c.target == target }), "make %s is in no slot of %s", target, page)
		}
	}
	for _, c := range all {
		assert.NotEmpty(t, recipes[c.target], "slot %s: the Makefile has no target %s", c.slot, c.target)
	}
}

// TestEachTestIsInASlot: a directory of tests that make test leaves out is run whole by slots, at once or in all of its parts.
func TestEachTestIsInASlot(t *testing.T) {
	script, err := os.ReadFile("../all")
	require.NoError(t, err)
	m := regexp.MustCompile(`grep -vE '/tests/\(([^)]*)\)\$'`).FindSubmatch(script)
	require.NotNil(t, m, "tests/all names what it leaves out")
	got, recipes := readPage(t), readMakefile(t)
	calls := listCalls(slices.Concat(got.turns, got.others), recipes)
	assert.NotEmpty(t, findUncovered("tests/nothing", calls))
	for name := range strings.SplitSeq(string(m[1]), "|") {
		if tests, err := filepath.Glob("../" + name + "/*_test.go"); err == nil && len(tests) > 0 {
			assert.Empty(t, findUncovered("./tests/"+name, calls), "./tests/%s", name)
		}
	}
}

// TestPartsAreWhole: what slots cut in parts is there with all of its parts.
func TestPartsAreWhole(t *testing.T) {
	suites := map[string][]makeCall{}
	got := readPage(t)
	for _, c := range listCalls(slices.Concat(got.turns, got.others), readMakefile(t)) {
		if len(c.dirs) > 0 {
			of := c.target + " " + c.values["PACKAGE"]
			suites[of] = append(suites[of], c)
		}
	}
	for of, calls := range suites {
		assert.Empty(t, findUncovered(calls[0].dirs[0], calls), "make %s", of)
	}
}

// findUncovered returns the parts of a directory's tests that the calls leave out: "all" if none runs it.
func findUncovered(dir string, calls []makeCall) (missing []string) {
	parts := map[string][]string{} // by their number
	for _, c := range calls {
		if !slices.Contains(c.dirs, dir) || c.values["TEST"] != "" {
			continue
		}
		if c.values["PART"] == "" {
			return nil
		}
		_, of, _ := strings.Cut(c.values["PART"], "/")
		parts[of] = append(parts[of], c.values["PART"])
	}
	missing = []string{"all"}
	for of, have := range parts {
		missing = nil
		number := 0
		fmt.Sscan(of, &number)
		for i := range number {
			if part := fmt.Sprintf("%d/%d", i+1, number); !slices.Contains(have, part) {
				missing = append(missing, part)
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return missing
}

func TestFindUncovered(t *testing.T) {
	of := func(parts ...string) (calls []makeCall) {
		for _, part := range parts {
			calls = append(calls, makeCall{dirs: []string{"./tests/vm"}, values: map[string]string{"PART": part}})
		}
		return calls
	}
	assert.Equal(t, []string{"all"}, findUncovered("./tests/vm", nil))
	assert.Equal(t, []string{"2/3"}, findUncovered("./tests/vm", of("1/3", "3/3")))
	assert.Empty(t, findUncovered("./tests/vm", of("1/3", "3/3", "2/3")))
	assert.Empty(t, findUncovered("./tests/vm", of("1/3", "")))
	selected := of("")
	selected[0].values["TEST"] = "One"
	assert.Equal(t, []string{"all"}, findUncovered("./tests/vm", selected))
}

// TestPatternsSelect: each name in a TEST=A|B of the table selects a test, and so does each PART=2/3.
func TestPatternsSelect(t *testing.T) {
	got := readPage(t)
	count := 0
	for _, c := range listCalls(slices.Concat(got.turns, got.others), readMakefile(t)) {
		if part := c.values["PART"]; part != "" {
			var dirs []string
			for _, dir := range c.dirs {
				dirs = append(dirs, "../../"+dir)
			}
			names, err := listTests(dirs)
			require.NoError(t, err)
			pattern, err := selectPart(part, names)
			require.NoError(t, err, "slot %s", c.slot)
			assert.True(t, selects(t, pattern, c.dirs), "slot %s: PART=%s selects no test of %v", c.slot, part, c.dirs)
		}
		for pattern := range strings.SplitSeq(c.values["TEST"], "|") {
			if pattern == "" {
				continue
			}
			count++
			assert.True(t, selects(t, pattern, c.dirs), "slot %s: TEST=%s selects no test of %v", c.slot, pattern, c.dirs)
		}
	}
	assert.NotZero(t, count, "the slot launch has a pattern")
	assert.False(t, selects(t, "NoSuchTest", []string{"./tests/vm/inside"}))
}

// selects reports whether the pattern matches a test of the directories.
func selects(t *testing.T, pattern string, dirs []string) bool {
	t.Helper()
	for _, dir := range dirs {
		names, err := listTests([]string{"../../" + dir})
		require.NoError(t, err)
		if slices.ContainsFunc(names, regexp.MustCompile(pattern).MatchString) {
			return true
		}
	}
	return false
}
