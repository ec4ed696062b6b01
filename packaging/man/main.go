// SPDX-License-Identifier: Apache-2.0

// man OUT: writes the manual pages into the directory OUT, from the commands of the programs and from the example
// files, which are where their text is changed, and the programs' completions for shells below it. The page of
// gojail-session, which is no Go program, is gojail-session.8 here. It is run in the root of the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	exporter "github.com/gojail/gojail/exporter/cli"
	gojail "github.com/gojail/gojail/gojail/cli"
	health "github.com/gojail/gojail/healthcheck/cli"
	"github.com/gojail/gojail/internal/version"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man OUT")
		os.Exit(2)
	}
	if err := writeAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// footer is what is at the foot of each page.
type footer struct{ version, date string }

// newestDate matches the newest heading of CHANGELOG.md: the same sources give the same pages.
var newestDate = regexp.MustCompile(`(?m)^## .*(\d{4}-\d\d-\d\d)`)

func readFooter() (footer, error) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return footer{}, err
	}
	m := newestDate.FindSubmatch(text)
	if m == nil {
		return footer{}, errors.New("no heading in CHANGELOG.md has a date")
	}
	return footer{version.Text(), string(m[1])}, nil
}

func writeAll(out string) error {
	f, err := readFooter()
	if err != nil {
		return err
	}
	pages, err := makePages(f)
	if err != nil {
		return err
	}
	for _, c := range programs {
		if err := writeCompletions(out, c); err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(pages) { // the first one, by which make knows that all are there, last
		if err := os.WriteFile(filepath.Join(out, p.file()), []byte(p.text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// programs are the root commands of what is installed.
var programs = []*cobra.Command{gojail.NewCommand(), health.NewCommand(), exporter.NewCommand()}

// writeCompletions writes the completions of a program, as its command completion prints them, each below a directory
// of the shell's and under the name that the shell looks for.
func writeCompletions(out string, c *cobra.Command) error {
	for file, write := range map[string]func(path string) error{
		"bash/" + c.Name():           func(path string) error { return c.GenBashCompletionFileV2(path, true) },
		"fish/" + c.Name() + ".fish": func(path string) error { return c.GenFishCompletionFile(path, true) },
		"zsh/_" + c.Name():           c.GenZshCompletionFile,
	} {
		path := filepath.Join(out, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path); err != nil {
			return err
		}
	}
	return nil
}

func makePages(f footer) ([]*page, error) {
	var pages []*page
	for i, c := range programs {
		pages = append(pages, commandPages(c, i == 0, f)...) // the commands of gojail are many, and long
	}
	for _, name := range []string{"gojail.toml", "network.toml", "health.toml"} {
		text, err := os.ReadFile(name + ".example")
		if err != nil {
			return nil, err
		}
		p, err := configPage(name, string(text), f)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	text, err := os.ReadFile("packaging/man/gojail-session.8")
	if err != nil {
		return nil, err
	}
	session := &page{name: "gojail-session", section: 8}
	session.text.WriteString(strings.NewReplacer("@DATE@", f.date, "@VERSION@", f.version).Replace(string(text)))
	return append(pages, session), nil
}
