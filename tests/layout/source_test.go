// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/gojail/gojail"

// goPackage is one package of the repository as `go list` and the parser see it.
type goPackage struct {
	ImportPath, Dir, Name              string
	GoFiles, CgoFiles                  []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
	files                              map[string]*ast.File // by base name, tests as well
	path                               string               // below the repository, with "/"
}

var fileSet = token.NewFileSet()

// packages returns all packages of the repository, parsed.
var packages = sync.OnceValues(func() ([]*goPackage, error) {
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var list []*goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &goPackage{files: map[string]*ast.File{}}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		p.path = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, names := range [][]string{p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range names {
				file, err := parser.ParseFile(fileSet, filepath.Join(p.Dir, name), nil, parser.ParseComments)
				if err != nil {
					return nil, err
				}
				p.files[name] = file
			}
		}
		list = append(list, p)
	}
})

func allPackages(t *testing.T) []*goPackage {
	t.Helper()
	list, err := packages()
	require.NoError(t, err)
	require.Greater(t, len(list), 40, "go list finds the packages of the repository")
	return list
}

// isTest reports whether a file belongs to tests only.
func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// failEach fails the test for each finding.
func failEach(t *testing.T, found []string) {
	t.Helper()
	slices.Sort(found)
	for _, finding := range found {
		assert.Fail(t, finding)
	}
}
