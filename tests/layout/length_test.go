// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"go/ast"
	"path"
	"testing"
)

// Most lines of a Go file and of a function. Tables of tests and the tests that read them may be longer.
const (
	fileLines = 300
	funcLines = 60
)

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
