// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lineLength is what mandoc says about lines of its input that nobody reads there: code must not be wrapped.
const lineLength = "STYLE: input text line longer than 80 bytes"

// renderPages makes the manual pages, and returns each as man shows it, in lines that
// are not wrapped.
func renderPages(t *testing.T) map[string]string {
	t.Helper()
	for _, tool := range []string{"man", "mandoc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("tests/deps.sh installs " + tool)
		}
	}
	dir := t.TempDir()
	generate := exec.Command("go", "run", "./packaging/man", dir)
	generate.Dir = repository
	out, err := generate.CombinedOutput()
	require.NoError(t, err, "%s", out)
	files, err := filepath.Glob(dir + "/*.[58]")
	require.NoError(t, err)
	shown := map[string]string{}
	for _, file := range files {
		out, _ := exec.Command("mandoc", "-T", "lint", file).CombinedOutput() // it exits with 2 for style
		for _, row := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			if row != "" && !strings.Contains(row, lineLength) {
				t.Error(row)
			}
		}
		man := exec.Command("man", "--warnings", "-l", file)
		man.Env = append(os.Environ(), "MANWIDTH=1000", "MAN_KEEP_FORMATTING=", "LC_ALL=C.UTF-8")
		var stdout, stderr strings.Builder
		man.Stdout, man.Stderr = &stdout, &stderr
		require.NoError(t, man.Run(), "%s: %s", file, stderr.String())
		assert.Empty(t, stderr.String(), file)
		shown[filepath.Base(file)] = stdout.String()
	}
	return shown
}

// assertCommandShown looks in a page for a command, its flags and the commands below it.
func assertCommandShown(t *testing.T, shown map[string]string, page string, c *command, name string) {
	t.Helper()
	text, found := shown[page]
	if own, ok := shown[strings.ReplaceAll(name, " ", "-")+".8"]; ok {
		page, text, found = strings.ReplaceAll(name, " ", "-")+".8", own, true
	}
	require.True(t, found, page)
	assert.Contains(t, text, name, page)
	if strings.Contains(name, " completion") {
		return // the commands for each shell are in its help
	}
	for f := range c.flags {
		if f != "" {
			assert.Regexp(t, `(?m)^ +(?:-\w, )?`+regexp.QuoteMeta(f)+`\b`, text, "%s in %s", name, page)
		}
	}
	for below, sub := range c.below {
		assertCommandShown(t, shown, page, sub, name+" "+below)
	}
}

// TestManualPages: they have every command and flag of the help and every key of the example files, and man and mandoc have
// nothing to say about their form.
func TestManualPages(t *testing.T) {
	dir := buildPrograms(t)
	shown := renderPages(t)
	for name := range programs {
		known := readHelp(t, filepath.Join(dir, name))
		assertCommandShown(t, shown, name+".8", known, name)
	}
	for file := range parsers {
		text, err := os.ReadFile(filepath.Join(repository, file+".example"))
		require.NoError(t, err)
		keys := exampled.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, keys)
		for _, m := range keys {
			assert.Regexp(t, `(?m)^ +(?:#: )?`+m[1]+` += `, shown[file+".5"], "%s in %s(5)", m[1], file)
		}
	}
	assert.Contains(t, shown["gojail-session.8"], "/etc/gojail/session.conf")
	for page, text := range shown {
		for _, m := range regexp.MustCompile(`\b(gojail[a-z.-]*|network\.toml|health\.toml)\(([58])\)`).FindAllStringSubmatch(text, -1) {
			assert.Contains(t, shown, m[1]+"."+m[2], "page that %s names", page)
		}
	}
}
