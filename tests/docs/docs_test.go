// SPDX-License-Identifier: Apache-2.0

// Package docs checks the pages of this repository against what they describe: links
// lead somewhere, and the commands, flags, targets of make and configuration keys that
// they name exist. It needs neither root nor Slurm.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const repository = "../.."

// readmeLines is the most lines that README.md may have: what is longer belongs to docs/.
const readmeLines = 150

// page is a Markdown file, taken apart.
type page struct {
	root   string // the repository, or where its pages are installed
	path   string // below root
	prose  []line // what is outside of code
	code   []line // each line of a code block, each code span
	blocks []block
}

type line struct {
	number int
	text   string
}

// block is a fenced code block.
type block struct {
	number   int // of the line of its fence
	language string
	text     string
}

var (
	fence = regexp.MustCompile("^\\s*```(\\w*)")
	span  = regexp.MustCompile("`([^`]+)`")
)

// parsePage takes a Markdown text apart. A code span that is wrapped is joined with the line after it.
func parsePage(root, path, text string) page {
	p := page{root: root, path: path}
	open := false
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		number, row := i+1, lines[i]
		if m := fence.FindStringSubmatch(row); m != nil {
			open = !open
			if open {
				p.blocks = append(p.blocks, block{number: number, language: m[1]})
			}
			continue
		}
		if open {
			last := &p.blocks[len(p.blocks)-1]
			last.text += row + "\n"
			if last.language != "text" { // a drawing
				p.code = append(p.code, line{number, row})
			}
			continue
		}
		for strings.Count(row, "`")%2 == 1 && i+1 < len(lines) && lines[i+1] != "" {
			i++
			row += " " + strings.TrimSpace(lines[i])
		}
		for _, m := range span.FindAllStringSubmatch(row, -1) {
			p.code = append(p.code, line{number, m[1]})
		}
		p.prose = append(p.prose, line{number, span.ReplaceAllString(row, "``")})
	}
	return p
}

// pages returns every Markdown page of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	return pagesBelow(t, repository)
}

// pagesBelow returns every Markdown page of the repository, or of the directory where make install has put them.
func pagesBelow(t *testing.T, root string) []page {
	t.Helper()
	var all []page
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && (below == "build" || strings.HasPrefix(entry.Name(), ".git")) {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			all = append(all, parsePage(root, below, string(text)))
		}
		return err
	}))
	require.True(t, slices.ContainsFunc(all, func(p page) bool { return p.path == "README.md" }))
	return all
}

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(text), "\n"), readmeLines, "move what is longer to docs/")
}

func TestPageIsTakenApart(t *testing.T) {
	p := parsePage("", "x.md", "# A `b`\n\n`one\n  two` three\n```toml\nx = 1\n```\nend\n")
	assert.Equal(t, []line{{1, "b"}, {3, "one two"}, {6, "x = 1"}}, p.code)
	assert.Equal(t, []block{{5, "toml", "x = 1\n"}}, p.blocks)
	assert.Equal(t, []line{{1, "# A ``"}, {2, ""}, {3, "`` three"}, {8, "end"}, {9, ""}}, p.prose)
}
