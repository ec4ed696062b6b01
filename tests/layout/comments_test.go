// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"path"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var firstWord = regexp.MustCompile(`^(?:(?:An?|The) )?([\pL\pN_]+)`)

// misnamed lists what a file declares, fields aside, whose comment begins with another word than its name.
func misnamed(file *ast.File) (found []string) {
	add := func(doc *ast.CommentGroup, name string) {
		if word := firstWord.FindStringSubmatch(doc.Text()); word != nil && word[1] != name {
			found = append(found, fmt.Sprintf("the comment of %s begins with %q", name, word[1]))
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			add(d.Doc, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Doc, s.Name.Name)
					if !d.Lparen.IsValid() {
						add(d.Doc, s.Name.Name)
					}
				case *ast.ValueSpec:
					if len(s.Names) == 1 && !d.Lparen.IsValid() {
						add(d.Doc, s.Names[0].Name)
					}
				}
			}
		}
	}
	return found
}

// A name that was changed stays behind in the comment.
func TestCommentsBeginWithTheName(t *testing.T) {
	var found []string
	for _, p := range allPackages(t) {
		for name, file := range p.files {
			if isTest(name) {
				continue
			}
			for _, finding := range misnamed(file) {
				found = append(found, path.Join(p.path, name)+": "+finding)
			}
		}
	}
	failEach(t, found)
}

func TestMisnamedComments(t *testing.T) {
	file, err := parser.ParseFile(fileSet, "x.go", `package x

// openStage opens the stage.
func openStage() {}

// A View is what is mounted.
type View struct{}

// look opens the stage.
func enterStage() {}

// Size is a limit.
var limit = 1

// Values of Type.
const (
	a = 1
)
`, parser.ParseComments)
	require.NoError(t, err)
	assert.Equal(t, []string{`the comment of enterStage begins with "look"`, `the comment of limit begins with "Size"`}, misnamed(file))
}
