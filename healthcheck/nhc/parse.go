// SPDX-License-Identifier: Apache-2.0

// Package nhc parses the nhc.conf of LBNL Node Health Check (1.4.3), so that a site can
// migrate, and evaluates the assertions of its common check_* lines.
//
// The file is a list of "TARGET || CHECK". A TARGET is a glob, a /regular expression/ (POSIX
// extended) or a {node[01-20],range}, each negated by a leading "!", and is compared with the
// kernel's host name. In NHC a CHECK is a command of bash; here it is a list of settings and of
// check_* of the table in kinds.go with plain words, joined by ";" or "&&": quotes and backslashes
// are supported, variables, substitutions and other operators are not. As in NHC, which reads with
// bash's read, a line first loses one layer of backslashes.
//
// A line that cannot be parsed is never ignored silently: its Line has a Problem. A line that may
// ask not to drain is obeyed also if it is not understood. Nothing is repaired, started or killed:
// options for that are listed in Line.NotDone.
//
// Assertions can hang, on file systems, on other programs, or on a process whose command line
// is locked: each Line has a Domain, to be evaluated in its own process. Each error is one
// line; the package runs on any kernel.
package nhc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Domain is the kind of thing on which a check may hang: checks of one domain share a process.
type Domain int

// The domains.
const (
	Node    Domain = iota // /proc, /sys and user accounts
	Storage               // file systems
	Command               // other programs
)

// Line is a line of nhc.conf that applies to this node.
type Line struct {
	File   string // path of the sysconfig file; "": nhc.conf
	Number int    // number from 1, of the first line if continued
	Text   string // the check
	// Reason why the line cannot be evaluated, "" if it can.
	Problem string
	// Options of the line that change something, which is not done: "-r".
	NotDone []string
	// What else an administrator should know of the line before it is evaluated.
	Notes []string
	// Whether the line has only settings of NHC. With a Problem one of them asks for something to do.
	Setting bool
	Domain  Domain
	// Whether a fault does not drain: the line has -0, or a setting asks for it.
	NonFatal bool
	Time     time.Duration // what the line's command may take; 0: as long as the check
	assert   assertion
	obstacle func(s *System) error // why the line's program cannot be run
}

// Remark is an error which only reports that there was nothing to evaluate.
type Remark string

func (r Remark) Error() string { return string(r) }

// assertion evaluates a line. It returns the fault that was found, or an error if that cannot
// be determined. Both are one line without numbers that change from run to run.
type assertion func(ctx context.Context, s *System) (fault string, err error)

// Check evaluates the line's assertion.
func (l *Line) Check(ctx context.Context, s *System) (fault string, err error) {
	return l.assert(ctx, s)
}

// parser parses the lines in order: a setting applies to the lines after it.
type parser struct {
	host string
	*settings
}

// Parse parses the text of an nhc.conf for the node with that host name
// (/proc/sys/kernel/hostname).
func Parse(text, host string) []Line { return newSettings().parse(text, host) }

// Place names the line in a message.
func (l *Line) Place() string {
	return strings.TrimLeft(fmt.Sprintf("%s line %d", l.File, l.Number), " ")
}

// parse parses the text of an nhc.conf that begins with these settings.
func (s *settings) parse(text, host string) []Line {
	p := parser{host, s}
	var all []Line
	number, first := 0, 0
	var joined strings.Builder
	text = strings.TrimPrefix(text, "\uFEFF") // byte order mark
	for row := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		number++
		if joined.Len() == 0 {
			first = number
		}
		part, more := unescape(strings.TrimSuffix(row, "\r"))
		joined.WriteString(part)
		if more {
			continue
		}
		for _, l := range p.parseLine(joined.String()) {
			l.Number = first
			all = append(all, l)
		}
		joined.Reset()
	}
	if rest := joined.String(); strings.TrimSpace(rest) != "" { // the last line ends with a backslash
		all = append(all, Line{Number: first, Text: shorten(rest),
			Problem: "the line continues after the end of the file"})
	}
	return all
}

// parseLine parses one line; it returns nothing for a line that is empty or for another node.
func (p *parser) parseLine(text string) []Line {
	target, check, found := strings.Cut(text, "||")
	target, check = strings.Trim(target, " \t\r"), strings.Trim(check, " \t\r")
	if target == "" && !found || strings.HasPrefix(target, "#") {
		return nil
	}
	if !found {
		check = text
	}
	if !found || target == "" || check == "" {
		p.addRequestsOf(check)
		return []Line{{Text: shorten(text), Problem: "write TARGET || CHECK"}}
	}
	m, err := parseMatch(target)
	if err == nil && !m.not && m.isGlob() && strings.ContainsFunc(target, isNeverInHostNames) {
		err = fmt.Errorf("%.60q: no host name matches; write a {list,of,nodes} or a /regular expression/", target)
	}
	if err != nil {
		p.addRequestsOf(check)
		return []Line{{Text: shorten(check), Problem: "the target " + err.Error()}}
	}
	if !m.matches(p.host) {
		return nil
	}
	return p.parseCheck(check)
}

// isNeverInHostNames reports whether no host name has the character.
func isNeverInHostNames(c rune) bool { return c <= ' ' || c == ',' || c == ';' || c > '~' }

// addRequestsOf takes over the requests not to drain of a line of which it is not known whether it applies.
func (p *parser) addRequestsOf(check string) {
	of := parser{p.host, newSettings()}
	of.parseCheck(check)
	p.addRequests(of.variables)
}

// parseCheck parses the commands of a line. bash evaluates its words a second time, by which several blanks become
// one, also within quotes.
func (p *parser) parseCheck(check string) (all []Line) {
	commands, err := splitCommands(strings.Join(strings.FieldsFunc(check, isBlank), " "))
	if err == nil && len(commands) == 0 {
		err = errors.New("a check is missing")
	}
	before := p.save()
	for _, c := range commands {
		l, ok := p.parseCommand(c)
		if !ok { // perhaps a condition for the rest of the line
			all, err = nil, fmt.Errorf("unknown check %.40s", c.words[0].raw)
			if slices.Contains(builtins, c.words[0].text) {
				err = newBashError(c.text)
			}
			break
		}
		all = append(all, l)
	}
	if len(commands) == 1 && len(all) == 1 {
		all[0].Text = shorten(check)
	}
	if err == nil {
		return all
	}
	problem := err.Error()
	p.restore(before)
	if len(commands) == 0 && mayAsk(check) || len(commands) > 0 && slices.ContainsFunc(commands, command.mayAsk) {
		p.quiet["MARK_OFFLINE"] = true
		problem += "; faults from here on do not drain, since it may set MARK_OFFLINE"
	}
	return []Line{{Text: shorten(check), Problem: problem}}
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' }

// parseCommand parses one command: settings, or a check with settings of its own before it. It returns false for any
// other command.
func (p *parser) parseCommand(c command) (l Line, ok bool) {
	l.Text = shorten(c.text)
	before, todo, notes, rest, check := p.save(), []string(nil), []string(nil), c.words, c.text
	for len(rest) > 0 {
		name, value, assigns := parseAssignment(rest[0])
		if !assigns {
			break
		}
		problem := p.assign(name, value)
		if todo = appendText(todo, problem); name != "MARK_OFFLINE" {
			notes = appendText(notes, problem)
		}
		check = strings.TrimLeft(check[len(rest[0].raw):], " ")
		rest = rest[1:]
	}
	if len(rest) == 0 {
		l.Setting, l.Problem = true, strings.Join(todo, "; ")
		return l, true
	}
	l.Notes, l.NonFatal = notes, !p.drains()
	p.restore(before) // the settings before a command are for that command alone
	switch name := rest[0].text; {
	case slices.Contains(builtins, name) && len(rest) == len(c.words):
		todo, ok = p.declare(name, rest[1:])
		return Line{Text: l.Text, Setting: true, Problem: strings.Join(todo, "; ")}, ok
	case (name == ":" || name == "true") && !slices.ContainsFunc(c.words, word.needsBash):
		return Line{Text: l.Text, Setting: true}, true
	case p.first != nil || !strings.HasPrefix(name, "check_"):
		return l, false
	}
	l.parseAssertion(check)
	return l, true
}

// builtins are the commands of bash with names of variables as their arguments.
var builtins = []string{"export", "declare", "typeset", "readonly", "local", "unset"}

func (w word) needsBash() bool { return w.bash != "" }

// mayAsk reports whether a command may ask not to drain. A check only reads.
func (c command) mayAsk() bool {
	return !strings.HasPrefix(c.words[0].text, "check_") && mayAsk(c.text)
}

// parseAssertion parses a check.
func (l *Line) parseAssertion(text string) {
	args, err := splitWords(text)
	if err != nil {
		l.Problem = err.Error()
		return
	}
	kind, known := kinds[args[0]]
	if !known {
		l.Problem = fmt.Sprintf("unknown check %.40s", args[0])
		return
	}
	l.Domain = kind.domain
	if l.assert, err = kind.parse(l, args[1:]); err != nil {
		l.Problem = err.Error()
	}
}

// noteChange records an option that would change something.
func (l *Line) noteChange(letter byte) {
	if o := "-" + string(letter); !slices.Contains(l.NotDone, o) {
		l.NotDone = append(l.NotDone, o)
	}
}

// shorten returns a text short enough for a list.
func shorten(text string) string {
	if text = strings.TrimSpace(text); len(text) > 100 {
		return text[:97] + "..."
	}
	return text
}
