// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wanted is a process that must run, or must not run. As in NHC, its command line decides; so do other names of its
// program, since daemons replace their command line. A process that the service started counts only by its command line
// if the service must run, and by any name if it must not.
type wanted struct {
	name   string
	is     func(p *process) bool // by the command line
	also   func(p *process) bool // by other names
	owner  *match                // matches the account's name; nil: any
	not    bool                  // whether the process must not run
	suffix string                // " owned by root"
}

// matches reports whether the process counts.
func (w *wanted) matches(p *process) bool {
	return w.is(p) || (w.not || !p.helper) && w.also(p)
}

// checkProcess compares the processes with the assertion.
func (w *wanted) checkProcess(ctx context.Context, s *System) (string, error) {
	all, err := s.listProcesses(ctx)
	if err != nil {
		return "", err
	}
	owner := w.owner
	if owner != nil && owner.expr != nil { // a uid is replaced by its name
		number := strings.TrimPrefix(owner.text, "!")
		if name := s.resolveOwner(number); name != number {
			if owner, err = parseMatch(map[bool]string{true: "!"}[owner.not] + name); err != nil {
				return "", err
			}
		}
	}
	for _, p := range all {
		if !w.matches(&p) || owner != nil && !owner.matches(s.findAccount(p.uid)) {
			continue
		}
		if w.not {
			return w.name + w.suffix + " is running", nil
		}
		return "", nil
	}
	if w.not {
		return "", nil
	}
	return w.name + w.suffix + " is not running", nil
}

// parseService parses check_ps_service OPTIONS NAME. With -s, -k and -E the service must not
// run.
func parseService(l *Line, args []string) (assertion, error) {
	opts, rest, err := parseOptions(args, "0E:SVcd:e:fkm:rsu:v")
	w := &wanted{name: strings.Join(rest, " ")}
	program, pattern, full := w.name, "", false
	for _, o := range opts {
		switch o.letter {
		case '0':
			l.NonFatal = true
		case 'd':
			program = o.value
		case 'm':
			pattern = o.value
		case 'f':
			full = true
		case 'u':
			w.suffix = " owned by " + o.value
			if w.owner, err = parseMatch(o.value); err != nil {
				return nil, err
			}
		case 's', 'k', 'E':
			w.not = true
			l.noteChange(o.letter)
		case 'S', 'r', 'c', 'e':
			l.noteChange(o.letter)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case w.name == "":
		return nil, errors.New("a service is missing")
	case pattern == "":
		err = w.selectProgram(program, full)
	default:
		err = w.selectMatch(pattern, full)
	}
	return w.checkProcess, err
}

// selectProgram selects the processes of a program: as in NHC those whose command line begins with a word, or with full
// is a text, that ends with its name; else those of which a name is exactly the program.
func (w *wanted) selectProgram(program string, full bool) error {
	m, err := parseMatch("*" + program)
	exact, err2 := parseMatch(program)
	w.is = func(p *process) bool { return m.matches(p.shown(full)) }
	w.also = func(p *process) bool {
		return slices.ContainsFunc([]string{p.exe, p.script, p.title, p.comm}, func(name string) bool {
			return name != "" && (exact.matches(name) || exact.matches(filepath.Base(name)))
		})
	}
	return errors.Join(err, err2)
}

// selectMatch selects the processes that a match string describes: the first word of the command line, or with full all
// of it, as ps(1) shows it or as it would without a title. A match string without a slash is not compared with a path.
func (w *wanted) selectMatch(pattern string, full bool) error {
	m, err := parseMatch(pattern)
	if err != nil {
		return err
	}
	others := func(p *process) []string { return []string{p.programName(m.hasSlash()), p.title} }
	if full {
		others = func(p *process) []string { return p.lines(m.hasSlash()) }
	}
	also := func(p *process) bool {
		return slices.ContainsFunc(others(p), func(name string) bool { return name != "" && m.matchesText(name) })
	}
	w.is = func(p *process) bool { return m.matches(p.shown(full)) }
	w.also = also
	if m.not { // none of its names may match
		w.is = func(p *process) bool { return m.matches(p.shown(full)) && !also(p) }
		w.also = func(*process) bool { return false }
	}
	return nil
}

// shown returns what NHC compares.
func (p *process) shown(full bool) string {
	if full {
		return p.args
	}
	return p.first()
}

// programName returns the program, with its path or without, "" if there is none.
func (p *process) programName(withPath bool) string {
	if withPath || p.exe == "" {
		return p.exe
	}
	return filepath.Base(p.exe)
}

// parseDaemon parses check_ps_daemon COMMAND [OWNER [ARGS]], which matches a process whose
// command line contains the command anywhere, as ps(1) shows it or as it would without a title.
func parseDaemon(_ *Line, args []string) (assertion, error) {
	w, err := parseNamed(args)
	if err == nil && len(args) > 1 && args[1] != "" { // the name of an owner, not a match string
		w.owner = &match{text: args[1], expr: regexp.MustCompile(`^` + regexp.QuoteMeta(args[1]) + `$`)}
	}
	return w.checkProcess, err
}

// parseBlacklist parses check_ps_blacklist, the opposite of check_ps_daemon; its OWNER is a
// match string.
func parseBlacklist(_ *Line, args []string) (assertion, error) {
	w, err := parseNamed(args)
	w.not = true
	if err == nil && len(args) > 1 && args[1] != "" {
		w.owner, err = parseMatch(args[1])
	}
	return w.checkProcess, err
}

// parseNamed parses COMMAND [OWNER [ARGS]].
func parseNamed(args []string) (*wanted, error) {
	w := &wanted{}
	if err := checkArguments(args, 1, 3); err != nil {
		return w, err
	}
	w.name = args[0]
	if len(args) == 3 && args[2] != "" {
		w.name += " " + args[2]
	}
	if len(args) > 1 && args[1] != "" {
		w.suffix = " owned by " + args[1]
	}
	expr, err := parseGlob(w.name, false)
	w.is = func(p *process) bool { return expr.MatchString(p.args) }
	w.also = func(p *process) bool {
		others := p.lines(strings.Contains(w.name, "/"))
		if w.not {
			others = append(others, p.comm)
		}
		return slices.ContainsFunc(others, expr.MatchString)
	}
	return w, err
}
