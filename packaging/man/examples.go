// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// entry is a part of an example file: comments, and the lines of configuration that they explain.
type entry struct {
	text  string
	lines []string
}

var tableHeader = regexp.MustCompile(`^(?:#: )?(\[\[?[a-z0-9._-]+\]\]?)$`)

// splitExample takes an example file apart. Comments begin with "# ", configuration may begin with "#: ".
func splitExample(text string) (list []entry) {
	var at entry
	flush := func() {
		if at.text != "" || at.lines != nil {
			list = append(list, at)
		}
		at = entry{}
	}
	for _, row := range strings.Split(text, "\n") {
		comment, isComment := strings.CutPrefix(row, "# ")
		switch {
		case row == "":
			flush()
		case row == "#":
			at.text += "\n\n"
		case isComment:
			if at.lines != nil {
				flush()
			}
			if at.text != "" && !strings.HasSuffix(at.text, "\n") {
				at.text += "\n"
			}
			at.text += comment
		default:
			// A table's header stands alone, so that the keys after it have their explanations.
			if at.lines != nil && tableHeader.MatchString(row) {
				flush()
			}
			at.lines = append(at.lines, row)
		}
	}
	flush()
	return list
}

// configPage returns the page of a configuration file, from its example. The first line of that is
// "NAME: SUMMARY. More".
func configPage(name, text string, f footer) (*page, error) {
	list := splitExample(text)
	opening, found := strings.CutPrefix(list[0].text, name+": ")
	summary, rest, cut := strings.Cut(opening, ". ")
	if !found || !cut || list[0].lines != nil {
		return nil, fmt.Errorf(`the example of %s does not begin with "# %s: SUMMARY. MORE" and a blank line`, name,
			name)
	}
	p := newPage(name, 5, summary, f)
	p.heading("DESCRIPTION")
	p.prose(rest)
	p.heading("KEYS")
	var known []string
	for _, e := range list[1:] {
		header := ""
		if e.lines != nil {
			if m := tableHeader.FindStringSubmatch(e.lines[0]); m != nil && !slices.Contains(known, m[1]) {
				header = m[1]
				known = append(known, header)
			}
		}
		writeEntry(p, e, header)
	}
	p.heading("FILES")
	p.item([]string{"/etc/gojail/" + name}, "The file that is read where no option names another one.")
	p.seeAlso()
	return p, nil
}

// writeEntry writes a part of an example file. header is that of a table which begins here.
func writeEntry(p *page, e entry, header string) {
	switch {
	case header != "":
		p.subheading(header)
		if e.text != "" {
			p.prose(e.text)
		}
		if len(e.lines) > 1 {
			p.code(e.lines[1:])
		}
	case e.lines == nil:
		p.prose(e.text)
	case e.text == "":
		p.code(e.lines)
	case tableHeader.MatchString(e.lines[0]):
		p.prose(e.text)
		p.code(e.lines)
	default:
		p.item(e.lines, e.text)
	}
}
