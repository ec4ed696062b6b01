// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// page is a manual page in the macros of man(7).
type page struct {
	name    string
	section int
	text    strings.Builder
	// fresh: a paragraph begins by itself when the text goes on.
	fresh bool
}

// newPage returns a page with its header and the section NAME.
func newPage(name string, section int, summary string, f footer) *page {
	p := &page{name: name, section: section}
	fmt.Fprintf(&p.text, ".TH %s %d %s \"gojail %s\"\n", escapeCode(strings.ToUpper(name)), section, f.date, f.version)
	p.heading("NAME")
	p.write(escapeCode(name) + ` \- ` + escape(summary))
	return p
}

// file returns the name of the page's file.
func (p *page) file() string { return fmt.Sprintf("%s.%d", p.name, p.section) }

// write writes lines of text or macros.
func (p *page) write(rows ...string) {
	p.fresh = false
	for _, row := range rows {
		p.text.WriteString(row + "\n")
	}
}

func (p *page) heading(title string) {
	p.write(".SH " + escapeCode(title))
	p.fresh = true
}

func (p *page) subheading(title string) {
	p.write(".SS " + escapeCode(title))
	p.fresh = true
}

// paragraph begins a paragraph.
func (p *page) paragraph() {
	if !p.fresh {
		p.write(".PP")
	}
	p.fresh = true
}

// prose writes paragraphs, which blank lines separate. Indented lines keep their form: they are tables and
// code.
func (p *page) prose(text string) {
	literal, ended := false, true
	for _, row := range strings.Split(strings.Trim(text, "\n"), "\n") {
		if row == "" {
			ended = true
			continue
		}
		indented := strings.HasPrefix(row, "  ")
		switch {
		case indented && literal && ended:
			p.write("")
		case indented != literal || ended:
			if literal {
				p.write(".EE")
			}
			p.paragraph()
			if indented {
				p.write(".EX")
			}
		}
		literal, ended = indented, false
		if literal {
			p.write(escapeCode(row))
		} else {
			p.write(escape(row))
		}
	}
	if literal {
		p.write(".EE")
	}
}

// code writes lines as they are, indented.
func (p *page) code(lines []string) {
	p.paragraph()
	p.write(".RS 4", ".EX")
	for _, row := range lines {
		p.write(escapeCode(row))
	}
	p.write(".EE", ".RE")
}

// item writes what is explained, a line for each of its forms, and the explanation.
func (p *page) item(terms []string, explanation string) {
	for i, term := range terms {
		p.write([]string{".TP", ".TQ"}[min(i, 1)], `\fB`+escapeCode(term)+`\fR`)
	}
	p.write(escape(explanation))
}

// seeAlso writes the last section: which of the pages about gojail as a whole are others than this one.
func (p *page) seeAlso() {
	var names []string
	for _, name := range []string{"gojail(8)", "gojail-exporter(8)", "gojail-healthcheck(8)", "gojail-session(8)",
		"gojail.toml(5)", "health.toml(5)", "network.toml(5)"} {
		if name != fmt.Sprintf("%s(%d)", p.name, p.section) {
			names = append(names, name)
		}
	}
	p.heading("SEE ALSO")
	p.write(escape(strings.Join(names, ",\n")))
}

var (
	// A hyphen is a minus: all but words of prose can be copied from the page.
	prose = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`)
	code  = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`)
)

func escape(text string) string     { return protectControl(prose.Replace(text)) }
func escapeCode(text string) string { return protectControl(code.Replace(text)) }

// protectControl keeps lines of text from being read as macros.
func protectControl(text string) string {
	rows := strings.Split(text, "\n")
	for i, row := range rows {
		if strings.HasPrefix(row, ".") || strings.HasPrefix(row, "'") {
			rows[i] = `\&` + row
		}
	}
	return strings.Join(rows, "\n")
}
