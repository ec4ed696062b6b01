// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	unit    = regexp.MustCompile(`(?m)^Documentation=file:/usr/local/share/doc/gojail/(\S+)$`)
)

func TestLinksLeadSomewhere(t *testing.T) { requireLinks(t, pages(t)) }

// TestInstalledLinksLeadSomewhere requires that the pages that make install puts into the documentation link to what it puts there.
func TestInstalledLinksLeadSomewhere(t *testing.T) {
	dir := t.TempDir()
	install := exec.Command("make", "--no-print-directory", "install-docs", "PREFIX=/usr", "BUILD="+dir+"/build", "DESTDIR="+dir+"/root")
	install.Dir = repository
	out, err := install.CombinedOutput()
	require.NoError(t, err, "%s", out)
	all := pagesBelow(t, dir+"/root/usr/share/doc/gojail")
	sources, err := filepath.Glob(repository + "/docs/*.md")
	require.NoError(t, err)
	assert.Len(t, all, len(sources)+len([]string{"README.md", "CHANGELOG.md", "SECURITY.md"}))
	requireLinks(t, all)
}

// requireLinks follows the links of pages to each other and to files beside them.
func requireLinks(t *testing.T, all []page) {
	t.Helper()
	count := 0
	for _, p := range all {
		for _, l := range p.prose {
			for _, m := range link.FindAllStringSubmatch(l.text, -1) {
				count++
				assert.NoError(t, checkLink(all, p, m[1]), "%s:%d", p.path, l.number)
			}
		}
	}
	assert.Greater(t, count, 20)
}

// checkLink follows a link of page p that leads to a file of its root.
func checkLink(all []page, p page, target string) error {
	to, err := url.Parse(target)
	if err != nil || to.Scheme != "" {
		return err
	}
	path := p.path
	if to.Path != "" {
		path = filepath.Join(filepath.Dir(p.path), to.Path)
		if _, err := os.Stat(filepath.Join(p.root, path)); err != nil {
			return fmt.Errorf("dead link %s: there is no %s", target, path)
		}
	}
	if to.Fragment == "" {
		return nil
	}
	for _, other := range all {
		if other.path == path {
			if !other.anchors()[to.Fragment] {
				return fmt.Errorf("dead link %s: %s has no such heading", target, path)
			}
			return nil
		}
	}
	return fmt.Errorf("dead link %s: %s is not a page with headings", target, path)
}

// anchors returns the names that GitHub gives to the headings of the page.
func (p page) anchors() map[string]bool {
	names := map[string]bool{}
	for _, text := range p.headings() {
		name := anchor(text)
		for n := 1; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor(text), n)
		}
		names[name] = true
	}
	return names
}

// headings reads the page again, because the text of code spans belongs to a heading's name.
func (p page) headings() []string {
	text, err := os.ReadFile(filepath.Join(p.root, p.path))
	if err != nil {
		return nil
	}
	var found []string
	open := false
	for row := range strings.Lines(string(text)) {
		row = strings.TrimRight(row, "\n")
		if fence.MatchString(row) {
			open = !open
		}
		if m := heading.FindStringSubmatch(row); m != nil && !open {
			found = append(found, m[1])
		}
	}
	return found
}

// anchor turns a heading into its name: lower case, spaces as hyphens, no punctuation.
func anchor(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

func TestAnchors(t *testing.T) {
	for text, want := range map[string]string{
		"Login scripts": "login-scripts", "Limit /tmp on disk": "limit-tmp-on-disk", "`--jail-root=self`": "--jail-rootself",
	} {
		assert.Equal(t, want, anchor(text))
	}
}

// systemd shows these paths; make install puts docs/ there.
func TestUnitsNamePages(t *testing.T) {
	units, err := filepath.Glob(repository + "/packaging/systemd/*.service")
	require.NoError(t, err)
	require.NotEmpty(t, units)
	for _, path := range units {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		m := unit.FindSubmatch(text)
		if assert.NotNil(t, m, "%s has no Documentation=", path) {
			assert.FileExists(t, filepath.Join(repository, string(m[1])), path)
		}
	}
}
