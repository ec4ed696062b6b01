// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Most lines of a Go file and of a function, and most columns of a line, where a tab counts 4. Tables of tests and the tests that read them may be
// longer.
const (
	fileLines = 300
	funcLines = 60
	columns   = 120
)

// TestColumns: C has the same limit, in tests as well, by .clang-format, which leaves comments alone that have no blank to break at.
func TestColumns(t *testing.T) {
	var found []string
	check := func(path string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for number, line := range strings.Split(string(text), "\n") {
			if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > columns {
				found = append(found, fmt.Sprintf("%s: line %d is longer than %d columns", strings.TrimPrefix(path, "../../"), number+1, columns))
			}
		}
	}
	for _, p := range allPackages(t) {
		for name := range p.files {
			if !isTest(name) && p.path != "tests" && !strings.HasPrefix(p.path, "tests/") {
				check(filepath.Join("../..", p.path, name))
			}
		}
	}
	sources, err := filepath.Glob("../../spank/*/*.[ch]")
	require.NoError(t, err)
	require.Greater(t, len(sources), 40)
	for _, path := range append(sources, "../../include/gojail.h") {
		check(path)
	}
	failEach(t, found)
}

func TestLengths(t *testing.T) {
	var found []string
	for _, p := range allPackages(t) {
		for name, file := range p.files {
			if isTest(name) {
				continue
			}
			where := path.Join(p.path, name)
			if lines := fileSet.File(file.Pos()).LineCount() - 1; lines > fileLines {
				found = append(found, fmt.Sprintf("%s is longer than %d lines", where, fileLines))
			}
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := fileSet.Position(f.End()).Line - fileSet.Position(f.Pos()).Line + 1
				if lines > funcLines {
					found = append(found, fmt.Sprintf("%s: %s is longer than %d lines", where, f.Name.Name, funcLines))
				}
			}
		}
	}
	failEach(t, found)
}
