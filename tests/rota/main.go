// SPDX-License-Identifier: Apache-2.0

// Command rota says which of the long suites continuous integration runs after make test. The table in tests/README.md has them.
//
//	rota SLOT...             prints for each row of the table: its name, its minutes and its command line, between tabs
//	rota -part 2/3 DIR...    prints the pattern, for go test -run, of the second of three parts of the tests in those directories
//
// The slot named "turn" is that of the commit that is checked out. The history in git alone decides which that is: see choose.
package main

import (
	"flag"
	"fmt"
	"os"
)

// page holds the table, below the root of the repository.
const page = "tests/README.md"

func main() {
	part := flag.String("part", "", "print the pattern of this part of the tests in the directories: 2/3")
	flag.Parse()
	run := printSlots
	if *part != "" {
		run = func(dirs []string) error { return printPart(*part, dirs) }
	}
	if err := run(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "rota: %v\n", err)
		os.Exit(2)
	}
}

// printSlots prints the rows of the table that have these names.
func printSlots(names []string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	t, err := parseTable(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	h := readHistory(len(t.turns))
	for _, name := range names {
		s, turn, why := choose(t.turns, h.count, h.changed)
		if name != "turn" {
			why = "by its name"
			if s, err = t.find(name); err != nil {
				return fmt.Errorf("%w; the table is in %s", err, page)
			}
		}
		fmt.Fprintf(os.Stderr, "rota: %s, %s (%s)\n", s.name, why, h.note)
		fmt.Printf("%s\t%d\t%s\n", s.name, s.minutes, expand(s.command, turn))
	}
	return nil
}

// printPart prints the pattern of a part of the tests.
func printPart(part string, dirs []string) error {
	names, err := listTests(dirs)
	if err != nil {
		return err
	}
	pattern, err := selectPart(part, names)
	if err == nil {
		fmt.Println(pattern)
	}
	return err
}
