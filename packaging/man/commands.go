// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addDefaults adds the flags and commands that cobra adds to a program when it runs.
func addDefaults(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	var addHelp func(c *cobra.Command)
	addHelp = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		for _, sub := range c.Commands() {
			addHelp(sub)
		}
	}
	addHelp(root)
}

// listBelow returns the commands below one that its help lists.
func listBelow(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() && sub.Name() != "help"
	})
}

// commandPages returns the page of a program and, if each of its commands has one of its own, those too. A
// page has all commands below its own, apart from those that cobra adds, which are only listed.
func commandPages(c *cobra.Command, ownPages bool, f footer) []*page {
	addDefaults(c)
	top := newPage(c.Name(), 8, summaryOf(c), f)
	writeCommand(top, c)
	list := []*page{top}
	if c.HasAvailableSubCommands() {
		top.heading("COMMANDS")
	}
	for _, sub := range listBelow(c) {
		switch {
		case sub.Name() == "help" || sub.Name() == "completion":
			top.item([]string{sub.CommandPath()}, sub.Short)
		case !ownPages:
			writeBelow(top, sub)
		default:
			p := newPage(strings.ReplaceAll(sub.CommandPath(), " ", "-"), 8, lowerFirst(sub.Short), f)
			writeCommand(p, sub)
			if sub.HasAvailableSubCommands() {
				p.heading("COMMANDS")
			}
			for _, below := range listBelow(sub) {
				writeBelow(p, below)
			}
			p.heading("GLOBAL OPTIONS")
			writeOptions(p, c.PersistentFlags())
			p.seeAlso()
			list = append(list, p)
			top.item([]string{p.name + "(8)"}, sub.Short)
		}
	}
	top.seeAlso()
	return list
}

// summaryOf returns the first sentence of a program's help, in the form of a line in the section NAME.
func summaryOf(c *cobra.Command) string {
	sentence, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(c.Long), "\n", " "), ". ")
	sentence, _, _ = strings.Cut(sentence, ": ")
	return strings.TrimPrefix(strings.TrimPrefix(sentence, c.Name()+" "), "is ")
}

// lowerFirst returns a sentence as it continues another one.
func lowerFirst(text string) string {
	r := []rune(text)
	if len(r) > 1 && unicode.IsLower(r[1]) {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}

// writeUsage writes how a command is called, and what it does.
func writeUsage(p *page, c *cobra.Command, description string) {
	usage := ""
	if c.Runnable() {
		usage = "  " + c.UseLine() + "\n"
	}
	if c.HasAvailableSubCommands() {
		usage += "  " + c.CommandPath() + " [command]"
	}
	p.prose(usage)
	if description != "" {
		p.heading(description)
	}
	p.prose(cmp.Or(c.Long, c.Short))
}

// writeCommand writes a command as the subject of a page.
func writeCommand(p *page, c *cobra.Command) {
	p.heading("SYNOPSIS")
	writeUsage(p, c, "DESCRIPTION")
	p.heading("OPTIONS")
	writeOptions(p, c.LocalFlags())
	if c.HasExample() {
		p.heading("EXAMPLES")
		writeExamples(p, c)
	}
}

// writeBelow writes a command as a part of the page of a command above it.
func writeBelow(p *page, c *cobra.Command) {
	p.subheading(c.CommandPath())
	writeUsage(p, c, "")
	writeOptions(p, c.LocalFlags())
	if c.HasExample() {
		p.prose("Examples:")
		writeExamples(p, c)
	}
	for _, sub := range listBelow(c) {
		writeBelow(p, sub)
	}
}

// writeExamples writes the examples of a command, which are indented by two blanks.
func writeExamples(p *page, c *cobra.Command) {
	rows := strings.Split(strings.TrimRight(c.Example, "\n"), "\n")
	for i := range rows {
		rows[i] = strings.TrimPrefix(rows[i], "  ")
	}
	p.code(rows)
}

// writeOptions writes flags as --help does: pflag knows which have a default that is worth showing.
func writeOptions(p *page, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.AddFlag(f)
		if row := strings.TrimSpace(one.FlagUsages()); row != "" { // it is not hidden
			form, text, _ := strings.Cut(row, "   ")
			p.item([]string{form}, strings.TrimSpace(text))
		}
	})
}
