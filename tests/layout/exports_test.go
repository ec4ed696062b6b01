// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// calledByName are the methods that the standard library and the packages we use call through an interface.
var calledByName = []string{"String", "Error", "Unwrap", "Is", "As", "Close", "Read", "Write", "Set", "Type", "Less", "Len", "Swap",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "UnmarshalTOML", "ServeHTTP", "RoundTrip", "Format", "Helper"}

// export is an exported name of a package: of the package itself, or a method or field of one of its types.
type export struct {
	name   string // Name, or Type.Name of a method or field
	member bool
	pos    token.Pos
	typed  []string // names of the package's own that its declaration mentions
}

// exports lists what the files of a package export, tests aside.
func exports(p *goPackage) (list []export) {
	for name, file := range p.files {
		if isTest(name) {
			continue
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				list = append(list, exportedFunc(d)...)
			case *ast.GenDecl:
				first := len(list)
				for _, spec := range d.Specs {
					list = append(list, exportedSpec(spec)...)
				}
				if d.Tok == token.CONST {
					join(list[first:])
				}
			}
		}
	}
	return list
}

func exportedFunc(d *ast.FuncDecl) []export {
	if !d.Name.IsExported() {
		return nil
	}
	e := export{name: d.Name.Name, pos: d.Pos(), typed: mentioned(d.Type)}
	if d.Recv != nil {
		if slices.Contains(calledByName, d.Name.Name) || !ast.IsExported(receiver(d)) {
			return nil
		}
		e.name, e.member = receiver(d)+"."+d.Name.Name, true
	}
	return []export{e}
}

// join makes the constants of one declaration count as one: they are the values of a kind.
func join(group []export) {
	for i := range group {
		for _, other := range group {
			group[i].typed = append(group[i].typed, other.name)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	names := mentioned(d.Recv.List[0].Type)
	return names[0]
}

func exportedSpec(spec ast.Spec) (list []export) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			if id.IsExported() {
				e := export{name: id.Name, pos: id.Pos()}
				if s.Type != nil {
					e.typed = mentioned(s.Type)
				}
				list = append(list, e)
			}
		}
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			list = append(list, export{name: s.Name.Name, pos: s.Pos(), typed: mentioned(s.Type)})
		}
		fields, isStruct := s.Type.(*ast.StructType)
		if !isStruct || !s.Name.IsExported() {
			break
		}
		for _, field := range fields.Fields.List {
			for _, id := range field.Names {
				if id.IsExported() && field.Tag == nil { // a tag says that it is read or written by reflection
					list = append(list, export{name: s.Name.Name + "." + id.Name, member: true, pos: id.Pos(), typed: mentioned(field.Type)})
				}
			}
		}
	}
	return list
}

// mentioned lists the identifiers in a declaration that are not qualified by a package.
func mentioned(node ast.Node) (names []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}

// uses returns what the files of all packages mention: PATH.Name of packages, and Name of methods and fields.
func uses(list []*goPackage) (names map[string]bool, members map[string]map[string]bool) {
	names, members = map[string]bool{}, map[string]map[string]bool{}
	for _, p := range list {
		for name, file := range p.files {
			imports := map[string]string{}
			for _, i := range file.Imports {
				to := strings.Trim(i.Path.Value, `"`)
				as := path.Base(to)
				if i.Name != nil {
					as = i.Name.Name
				}
				imports[as] = to
			}
			user := p.ImportPath
			if slices.Contains(p.XTestGoFiles, name) {
				user += "_test"
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, plain := n.X.(*ast.Ident); plain && imports[x.Name] != "" {
						names[imports[x.Name]+"."+n.Sel.Name] = true
					}
					addMember(members, n.Sel.Name, user)
				case *ast.KeyValueExpr:
					if key, plain := n.Key.(*ast.Ident); plain {
						addMember(members, key.Name, user)
					}
				}
				return true
			})
		}
	}
	return names, members
}

func addMember(members map[string]map[string]bool, name, user string) {
	if members[name] == nil {
		members[name] = map[string]bool{}
	}
	members[name][user] = true
}

// unused returns the exported names of all packages that no other package uses. A type counts as used
// where something that is used mentions it.
func unused(list []*goPackage) (found []string) {
	names, members := uses(list)
	for _, p := range list {
		if p.Name == "main" {
			continue
		}
		used := map[string]bool{}
		all := exports(p)
		for again := true; again; {
			again = false
			for _, e := range all {
				last := e.name[strings.LastIndexByte(e.name, '.')+1:]
				others := len(members[last])
				if members[last][p.ImportPath] {
					others--
				}
				is := names[p.ImportPath+"."+e.name] || e.member && others > 0
				if (is || used[e.name]) && !used[e.name+" seen"] {
					used[e.name], used[e.name+" seen"], again = true, true, true
					for _, name := range e.typed {
						used[name] = true
					}
				}
			}
		}
		for _, e := range all {
			if !used[e.name] {
				found = append(found, p.path+" exports "+e.name+", which no other package uses")
			}
		}
	}
	return found
}

func TestExports(t *testing.T) { failEach(t, unused(allPackages(t))) }
