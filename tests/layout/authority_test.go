// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callSites are the places where a program executes another, loads a library, or asks a name service: functions by file below the
// repository; of a file that is none of Go or C, "".
type callSites map[string]map[string]bool

func (s callSites) add(file, function string) {
	if s[file] == nil {
		s[file] = map[string]bool{}
	}
	s[file][function] = true
}

// selectedCalls are the functions and types of Go that are call sites, by package; a trailing * stands for any rest.
var selectedCalls = map[string][]string{
	"exec":      {"Command", "CommandContext"},
	"command":   {"Run"},                     // of internal/command
	"slurm":     {"Run", "Rows", "ShowNode"}, // of internal/slurm
	"os":        {"StartProcess"},
	"syscall":   {"Exec", "ForkExec", "StartProcess"},
	"unix":      {"Exec"},
	"user":      {"Lookup*", "Current"},
	"net":       {"Lookup*", "Resolve*", "DefaultResolver", "Resolver", "Dialer", "Dial", "DialTimeout"},
	"http":      {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"remote":    {"DefaultTransport", "Image", "Get", "Head"}, // of go-containerregistry
	"dl":        {"New"},                                      // go-nvml's dlopen(3)
	"nvml":      {"New"},
	"plugin":    {"Open"},
	"anyMethod": {"GroupIds"}, // of user.User
}

func isSelected(of, name string) bool {
	return slices.ContainsFunc(selectedCalls[of], func(want string) bool {
		prefix, any := strings.CutSuffix(want, "*")
		return name == want || any && strings.HasPrefix(name, prefix)
	})
}

// isOfTests reports whether a package is for tests only, or a stand-in.
func isOfTests(p *goPackage) bool {
	return strings.HasSuffix(p.path, "test") || strings.Contains(p.path, "/fake") || p.path == "tests" || strings.HasPrefix(p.path, "tests/")
}

// isUnixSocket reports whether a call connects to a Unix socket, for which no name is looked up.
func isUnixSocket(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
		text, ok := e.(*ast.BasicLit)
		return ok && strings.HasPrefix(text.Value, `"unix`)
	})
}

// findGoSites adds the call sites of a Go file.
func (s callSites) findGoSites(path string, file *ast.File) {
	imported := map[string]string{} // last elements of import paths, by another name that the file gives them
	for _, spec := range file.Imports {
		if path := strings.Trim(spec.Path.Value, `"`); spec.Name != nil {
			imported[spec.Name.Name] = path[strings.LastIndex(path, "/")+1:]
		}
	}
	for _, decl := range file.Decls {
		name := ""
		if f, ok := decl.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if literal, ok := n.(*ast.CompositeLit); ok {
				if selector, ok := literal.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Cmd" {
					s.add(path, name)
				}
			}
			if call, ok := n.(*ast.CallExpr); ok && isUnixSocket(call) {
				return false
			}
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selector.X.(*ast.Ident)
			if ok && isSelected(cmp.Or(imported[of.Name], of.Name), selector.Sel.Name) || isSelected("anyMethod", selector.Sel.Name) {
				s.add(path, name)
			}
			return true
		})
	}
}

var (
	cCall = regexp.MustCompile(`\b(exec[lv]p?e?|execvpe|execveat|fexecve|posix_spawnp?|system|popen|dlm?open|getpw[a-z]+(_r)?|getgr[gne][a-z]+(_r)?|` +
		`getgrouplist|initgroups|getaddrinfo|getnameinfo|gethostby\w+|getsp[a-z]+(_r)?|getservby\w+|getlogin(_r)?|cuserid|wordexp|pam_start)\s*\(|\bSYS_execve(at)?\b`)
	cFunction  = regexp.MustCompile(`^[A-Za-z_].*?(\w+)\(`)
	cAttribute = regexp.MustCompile(`^__attribute__\(\(.*?\)\) `)
	cComment   = regexp.MustCompile(`(?s)/\*.*?\*/|"(\\.|[^"\\\n])*"`)
	// Lines of units, of udev's rules and of scripts by which root executes a program.
	execLine = regexp.MustCompile(`(?m)\A#!|^Exec\w+=\S|\b(RUN|PROGRAM|IMPORT)\b.*=`)
)

// findCSites adds the call sites of a C file: clang-format leaves the names of functions, and nothing else with a parenthesis, in the first column.
func (s callSites) findCSites(path, text string) {
	text = cComment.ReplaceAllStringFunc(text, func(found string) string { return strings.Repeat("\n", strings.Count(found, "\n")) })
	function := ""
	for line := range strings.Lines(text) {
		if match := cFunction.FindStringSubmatch(cAttribute.ReplaceAllString(line, "")); match != nil {
			function = match[1]
		} else if cCall.MatchString(line) {
			s.add(path, function)
		}
	}
}

// findSites returns all call sites of what is installed, or builds it.
func findSites(t *testing.T) callSites {
	t.Helper()
	sites := callSites{}
	for _, p := range allPackages(t) {
		for name, file := range p.files {
			if !isTest(name) && !isOfTests(p) {
				sites.findGoSites(filepath.ToSlash(filepath.Join(p.path, name)), file)
			}
		}
	}
	for _, top := range []string{"spank", "gojail", "netsetup", "healthcheck", "exporter", "internal", "packaging/scripts", "packaging/systemd", "packaging/udev"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../..", top), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			file := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			switch {
			case strings.HasSuffix(path, ".c"), strings.HasSuffix(path, ".h"):
				if !strings.Contains(path, "/fake") {
					sites.findCSites(file, string(text))
				}
			case strings.HasPrefix(top, "packaging/") && execLine.Match(text):
				sites.add(file, "")
			}
			return err
		}))
	}
	return sites
}

var (
	authoritySection = regexp.MustCompile(`(?ms)^## What is executed as root\n(.*?)^## `)
	authorityPlace   = regexp.MustCompile("\\]\\(([^)#]+)\\)(?::? (`\\w+`(?:, `\\w+`)*))?")
	quotedName       = regexp.MustCompile("`(\\w+)`")
)

// readAuthority returns the places that the last column of the tables in SECURITY.md names: functions by file, "" for all of a file, which may be
// said of a file with call sites in one function only.
func readAuthority(text string) callSites {
	places := callSites{}
	section := authoritySection.FindStringSubmatch(text)
	if section == nil {
		return places
	}
	for line := range strings.Lines(section[1]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for _, match := range authorityPlace.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if match[2] == "" {
				places.add(match[1], "")
			}
			for _, name := range quotedName.FindAllStringSubmatch(match[2], -1) {
				places.add(match[1], name[1])
			}
		}
	}
	return places
}

// compareAuthority returns the call sites without a row, and the rows without a call site.
func compareAuthority(sites, places callSites) (found []string) {
	for _, file := range slices.Sorted(maps.Keys(sites)) {
		for _, function := range slices.Sorted(maps.Keys(sites[file])) {
			if !places[file][function] && !(places[file][""] && len(sites[file]) == 1) {
				found = append(found, fmt.Sprintf("%s: %s executes, loads or looks up something: SECURITY.md, \"What is executed as root\", needs a row that names "+
					"the file and the function", file, function))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(places)) {
		for _, function := range slices.Sorted(maps.Keys(places[file])) {
			if len(sites[file]) == 0 || function != "" && !sites[file][function] {
				found = append(found, strings.TrimSuffix(file+": "+function, ": ")+" is named in SECURITY.md, and executes, loads or looks up nothing: correct the row")
			}
		}
	}
	return found
}

// TestAuthority requires that the tables of SECURITY.md name each place where a program of gojail executes a program, loads a library or asks a
// name service, and no other.
func TestAuthority(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	require.NoError(t, err)
	sites := findSites(t)
	require.Greater(t, len(sites), 40)
	failEach(t, compareAuthority(sites, readAuthority(string(text))))
}

func TestAuthorityFinds(t *testing.T) {
	sites := callSites{}
	sites.findCSites("a.c", "/* system(x) */\nstatic int\tfirst(int a,\n\t\t  int b)\n{\n\tsay(\"popen(\");\n}\n\nvoid second(void)\n{\n\tif (x)\n\t\texecv(a, b);\n\treturn getpwuid_r(1);\n}\n")
	sites.findCSites("b.c", "int own_execv(void)\n{\n\tmy_system(1);\n\tgetgroups(0, NULL);\n\texecute(1);\n}\n")
	sites.findCSites("c.c", "int f(void)\n{\n\tdlopen(\"x\", 1);\n}\nint g(void)\n{\n\tsyscall(SYS_execveat, 1);\n}\n")
	assert.Equal(t, callSites{"a.c": {"second": true}, "c.c": {"f": true, "g": true}}, sites)
	assert.Regexp(t, execLine, "[Service]\nExecStart=/bin/x\n")
	assert.Regexp(t, execLine, "#!/bin/sh\n")
	assert.NotRegexp(t, execLine, "# ExecStart=\nExecStart=\nRestart=no\n")
	places := readAuthority("## What is executed as root\n\n| a | b |\n| - | - |\n| x [no](no.c) | [a.c](a.c): `second`, `third`; [c.c](c.c) |\n\n## Next\n| [d.c](d.c) |\n")
	assert.Equal(t, callSites{"a.c": {"second": true, "third": true}, "c.c": {"": true}}, places)
	found := strings.Join(compareAuthority(sites, places), "\n")
	for _, want := range []string{"c.c: f executes", "c.c: g executes", "a.c: third is named in SECURITY.md"} {
		assert.Contains(t, found, want)
	}
	assert.Equal(t, 2, strings.Count(found, "\n"))
}
