// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var threeSlots = []slot{{name: "a", paths: []string{"packaging/", "Makefile"}}, {name: "b", paths: []string{"spank/"}}, {name: "c"}}

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		count   int
		changed []string
		want    string
		turn    int
		why     string
	}{
		{0, nil, "a", 0, "by the number of commits"},
		{1, nil, "b", 0, "by the number of commits"},
		{7, nil, "b", 1, "by the number of commits"},
		{8, []string{"packaging/build"}, "c", 1, "by the number of commits"},
		{7, []string{"packaging/build"}, "a", 3, "packaging/build has changed"},
		{9, []string{"README.md", "Makefile"}, "a", 4, "Makefile has changed"},
		{5, []string{"spank/x.c", "Makefile"}, "a", 1, "Makefile has changed"},
		{7, []string{"spank/x.c", "Makefile"}, "b", 1, "spank/x.c has changed"},
		{9, []string{"packaging", "Makefile.old", "docs/spank/x"}, "a", 1, "by the number of commits"},
	} {
		s, turn, why := choose(threeSlots, test.count, test.changed)
		assert.Equal(t, []any{test.want, test.turn, test.why}, []any{s.name, turn, why}, "%+v", test)
	}
}

// TestEachSlotComes: as many commits as there are slots come to all of them, and twice as many where other slots come forward; each slot has
// each of its alternatives.
func TestEachSlotComes(t *testing.T) {
	for _, size := range []int{3, 17, 21} {
		var slots []slot
		for i := range size {
			slots = append(slots, slot{name: fmt.Sprint(i)})
		}
		seen := map[string]bool{}
		for count := range size {
			s, _, _ := choose(slots, 1000+count, nil)
			seen[s.name] = true
		}
		assert.Len(t, seen, size, "without a change")
		slots[0].paths = []string{"x"}
		for of := 1; of <= 4; of++ {
			seen = map[string]bool{}
			for count := range 2 * size * of {
				s, turn, _ := choose(slots, 1000+count, []string{"x"})
				seen[fmt.Sprint(s.name, " ", turn%of)] = true
			}
			assert.Len(t, seen, size*of, "with changes, of %d alternatives", of)
		}
	}
}

func TestExpand(t *testing.T) {
	const command = "make vm RELEASE={22.05,24.11} KERNEL={6.1,6.12,newest}"
	assert.Equal(t, "make vm RELEASE=22.05 KERNEL=6.1", expand(command, 0))
	assert.Equal(t, "make vm RELEASE=24.11 KERNEL=newest", expand(command, 5))
}

func TestSelectPart(t *testing.T) {
	names, err := listTests([]string{"../slurm", "../escape"})
	require.NoError(t, err)
	require.Greater(t, len(names), 300)
	count := map[string]int{}
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		pattern, err := selectPart(part, names)
		require.NoError(t, err)
		for _, name := range names {
			if regexp.MustCompile(pattern).MatchString(name) {
				count[name]++
			}
		}
	}
	for _, name := range names {
		assert.Equal(t, 1, count[name], name)
	}
	before, _ := selectPart("1/2", []string{"TestOne", "TestTwo"})
	after, _ := selectPart("1/2", []string{"TestOne", "TestSix", "TestTwo"})
	assert.Equal(t, before, strings.ReplaceAll(after, "|TestSix", ""), "a new test moves no other")
	for _, part := range []string{"", "2", "0/3", "4/3", "x/3", "1/0"} {
		_, err := selectPart(part, names)
		assert.Error(t, err, part)
	}
	_, err = listTests([]string{"../nothing"})
	assert.Error(t, err)
}

func TestParseTable(t *testing.T) {
	const head = "| slot | minutes | command | paths | last whole run |\n| --- | --- | --- | --- | --- |\n"
	got, err := parseTable(head + "| test | 33 | `make test` | | |\n\n## In turn\n\n" + head + "| vm | 9 | `make vm TEST='A\\|B'` | `x/`, `y` | today |\n\n## By hand\n" + head)
	require.NoError(t, err)
	assert.Equal(t, table{turns: []slot{{"vm", 9, "make vm TEST='A|B'", []string{"x/", "y"}}}, others: []slot{{"test", 33, "make test", nil}}}, got)
	for row, want := range map[string]string{
		"":                         "no row below",
		"| vm | 9 | `x` | |":       "4 columns, not 5",
		"| vm | nine | `x` | | |":  `minutes "nine"`,
		"| vm | 9 | | | |":         "no name or no command",
		"| | 9 | `x` | | |":        "no name or no command",
		"| test | 9 | `x` | | | |": "6 columns",
	} {
		_, err := parseTable("## In turn\n" + head + row + "\n")
		assert.ErrorContains(t, err, want, row)
	}
	_, err = parseTable("## In turn\n" + head + strings.Repeat("| vm | 9 | `x` | | |\n", 2))
	assert.ErrorContains(t, err, "duplicate slot vm")
}

func TestReadHistory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	assert.Equal(t, history{note: "without git"}, readHistory(3))
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("init", "-q", "whole")
	t.Chdir(filepath.Join(dir, "whole"))
	for _, name := range []string{"old", "new", "newest"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		run("add", ".")
		run("commit", "-qm", name)
	}
	h := readHistory(2)
	assert.Equal(t, 3, h.count)
	assert.Equal(t, []string{"newest", "new"}, h.changed)
	run("clone", "-q", "--depth=1", "file://"+dir+"/whole", dir+"/shallow")
	t.Chdir(filepath.Join(dir, "shallow"))
	number := 0
	fmt.Sscanf(git("rev-parse", "--short=8", "HEAD"), "%x", &number)
	h = readHistory(2)
	assert.Equal(t, number, h.count, "the name of the commit: the number of commits is always 1")
	assert.Empty(t, h.changed, "each file of a clone without history has changed")
}
