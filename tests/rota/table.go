// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// slot is a row of the table.
type slot struct {
	name    string
	minutes int // on an idle machine with two cores
	command string
	paths   []string // directories, with / at the end, and files whose changes bring the slot forward
}

// table is what the page says: the slots that take turns, and the rows that do not.
type table struct {
	turns, others []slot
}

// columns are slot, minutes, command, paths and the last whole run.
const columns = 5

// turnsHeading begins the section of the page whose rows take turns.
const turnsHeading = "## In turn"

// parseTable reads the tables of the page.
func parseTable(text string) (t table, err error) {
	inTurn := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "## ") {
			inTurn = line == turnsHeading
		}
		cells := splitRow(line)
		if !strings.HasPrefix(line, "| ") || cells[0] == "slot" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		s, err := parseRow(cells)
		if err != nil {
			return t, fmt.Errorf("%w in: %s", err, line)
		}
		if _, err := t.find(s.name); err == nil {
			return t, fmt.Errorf("duplicate slot %s", s.name)
		}
		if inTurn {
			t.turns = append(t.turns, s)
		} else {
			t.others = append(t.others, s)
		}
	}
	if len(t.turns) == 0 {
		return t, fmt.Errorf("no row below %q", turnsHeading)
	}
	return t, nil
}

// splitRow returns the cells of a row of Markdown, where \| stands for the character.
func splitRow(line string) []string {
	const escaped = "\x00"
	cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, escaped), "|"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, escaped, "|"))
	}
	return cells
}

// parseRow reads one row.
func parseRow(cells []string) (s slot, err error) {
	if len(cells) != columns {
		return s, fmt.Errorf("%d columns, not %d,", len(cells), columns)
	}
	s = slot{name: cells[0], command: strings.Trim(cells[2], "`")}
	if s.minutes, err = strconv.Atoi(cells[1]); err != nil {
		return s, fmt.Errorf("minutes %q are no number", cells[1])
	}
	if s.name == "" || s.command == "" {
		return s, errors.New("no name or no command")
	}
	for path := range strings.FieldsFuncSeq(cells[3], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
		s.paths = append(s.paths, path)
	}
	return s, nil
}

// find returns the row with that name.
func (t table) find(name string) (slot, error) {
	all := slices.Concat(t.turns, t.others)
	if i := slices.IndexFunc(all, func(s slot) bool { return s.name == name }); i >= 0 {
		return all[i], nil
	}
	return slot{}, fmt.Errorf("no slot %s", name)
}

// alternatives matches the words of a command line of which each turn takes another one.
var alternatives = regexp.MustCompile(`\{([^{}]*)\}`)

// expand returns the command line of a turn: {a,b,c} becomes a, b or c.
func expand(command string, turn int) string {
	return alternatives.ReplaceAllStringFunc(command, func(list string) string {
		words := strings.Split(strings.Trim(list, "{}"), ",")
		return words[turn%len(words)]
	})
}
