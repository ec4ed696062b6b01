// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"unicode"
)

// commandPages returns the page of a program and, if each of its commands has one of its own, those too. A
// page has all commands below its own.
func commandPages(c *command, ownPages bool, f footer) []*page {
	top := newPage(c.name[0], 8, summaryOf(c), f)
	writeCommand(top, c)
	list := []*page{top}
	if len(c.below) > 0 {
		top.heading("COMMANDS")
	}
	for _, sub := range c.below {
		switch {
		case !ownPages && sub.usage != nil:
			writeBelow(top, sub)
		case sub.usage != nil:
			p := newPage(strings.Join(sub.name, "-"), 8, lowerFirst(sub.short), f)
			writeCommand(p, sub)
			if len(sub.below) > 0 {
				p.heading("COMMANDS")
			}
			for _, below := range sub.below {
				writeBelow(p, below)
			}
			p.heading("GLOBAL OPTIONS")
			writeOptions(p, c.flags, "--config", "--libdir", "--network", "--node", "--state")
			p.seeAlso()
			list = append(list, p)
			top.item([]string{strings.Join(sub.name, "-") + "(8)"}, sub.short)
		default:
			top.item([]string{strings.Join(sub.name, " ")}, sub.short)
		}
	}
	top.seeAlso()
	return list
}

// summaryOf returns the first sentence of a program's help, in the form of a line in the section NAME.
func summaryOf(c *command) string {
	sentence, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(c.long), "\n", " "), ". ")
	sentence, _, _ = strings.Cut(sentence, ": ")
	return strings.TrimPrefix(strings.TrimPrefix(sentence, c.name[0]+" "), "is ")
}

// lowerFirst returns a sentence as it continues another one.
func lowerFirst(text string) string {
	r := []rune(text)
	if len(r) > 1 && unicode.IsLower(r[1]) {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}

// writeCommand writes a command as the subject of a page.
func writeCommand(p *page, c *command) {
	p.heading("SYNOPSIS")
	p.prose("  " + strings.Join(c.usage, "\n  "))
	p.heading("DESCRIPTION")
	p.prose(c.long)
	p.heading("OPTIONS")
	writeOptions(p, c.flags)
	if c.examples != nil {
		p.heading("EXAMPLES")
		p.code(c.examples)
	}
}

// writeBelow writes a command as a part of the page of a command above it.
func writeBelow(p *page, c *command) {
	p.subheading(strings.Join(c.name, " "))
	p.prose("  " + strings.Join(c.usage, "\n  "))
	p.prose(c.long)
	writeOptions(p, c.flags)
	if c.examples != nil {
		p.prose("Examples:")
		p.code(c.examples)
	}
	for _, sub := range c.below {
		writeBelow(p, sub)
	}
}

// writeOptions writes flags: all, or those that are named.
func writeOptions(p *page, flags []option, names ...string) {
	for _, o := range flags {
		if names == nil ||
			slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(o.form, name+" ") }) {
			p.item([]string{o.form}, o.text)
		}
	}
}
