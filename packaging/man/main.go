// SPDX-License-Identifier: Apache-2.0

// man OUT PROGRAMS: writes the manual pages into the directory OUT, from the help of the programs in the
// directory PROGRAMS and from the example files, which are where their text is changed. The page of
// gojail-session, which has no help, is gojail-session.8 here. It is run in the root of the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/version"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: man OUT PROGRAMS")
		os.Exit(2)
	}
	if err := writePages(os.Args[1], os.Args[2]); err != nil {
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

func writePages(out, programs string) error {
	f, err := readFooter()
	if err != nil {
		return err
	}
	pages, err := makePages(programs, f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, p := range slices.Backward(pages) { // the first one, by which make knows that all are there, last
		if err := os.WriteFile(filepath.Join(out, p.file()), []byte(p.text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func makePages(programs string, f footer) ([]*page, error) {
	var pages []*page
	for _, name := range []string{"gojail", "gojail-healthcheck", "gojail-exporter"} {
		c, err := readHelp(filepath.Join(programs, name), "", name)
		if err != nil {
			return nil, err
		}
		// The commands of gojail are many, and long.
		pages = append(pages, commandPages(c, name == "gojail", f)...)
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
