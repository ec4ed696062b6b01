// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declaration matches the first line of a test in its source.
var declaration = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// listTests returns the names of the tests in the directories, sorted.
func listTests(dirs []string) (names []string, err error) {
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no tests in %s", dir)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for _, m := range declaration.FindAllSubmatch(text, -1) {
				names = append(names, string(m[1]))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// selectPart returns a pattern that matches the names of one part. A test's part depends on its name alone, so that a new test moves no other.
func selectPart(part string, names []string) (string, error) {
	var number, parts uint32
	if n, err := fmt.Sscanf(part, "%d/%d", &number, &parts); n != 2 || err != nil || number < 1 || number > parts {
		return "", fmt.Errorf("no part %q: write 2/3 for the second of three", part)
	}
	var selected []string
	for _, name := range names {
		if crc32.ChecksumIEEE([]byte(name))%parts == number-1 {
			selected = append(selected, name)
		}
	}
	return "^(" + strings.Join(selected, "|") + ")$", nil
}
