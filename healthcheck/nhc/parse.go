// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	Number int    // number from 1, of the first line if continued
	Text   string // the check
	// Reason why the line cannot be evaluated, "" if it can.
	Problem string
	// Options of the line that change something, which is not done: "-r".
	NotDone []string
	// Whether the line is one of NHC's own settings, which is ignored here.
	Setting bool
	Domain  Domain
	// Whether the line has -0: its fault does not drain.
	NonFatal bool
	assert   assertion
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

// setting matches "export NAME=value" or "NAME=value".
var setting = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=`)

// ignoredSettings are the settings of NHC that control how it runs and do not affect its
// findings.
var ignoredSettings = []string{"NHC_RM", "NHC_CHECK_ALL", "NHC_CHECK_FORKED", "DEBUG", "VERBOSE", "SILENT", "TIMEOUT", "LOGFILE",
	"DETACHED_MODE", "DETACHED_MODE_FAIL_NODATA", "FORCE_SETSID", "HELPERDIR", "ONLINE_NODE", "OFFLINE_NODE", "TS"}

// Parse parses the text of an nhc.conf for the node with that host name
// (/proc/sys/kernel/hostname).
func Parse(text, host string) []Line {
	var all []Line
	number, first, joined := 0, 0, ""
	for row := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		number++
		if joined == "" {
			first = number
		}
		part, more := unescape(row)
		if joined += part; more {
			continue
		}
		if l, mine := parseLine(joined, host); mine {
			l.Number = first
			all = append(all, l)
		}
		joined = ""
	}
	if strings.TrimSpace(joined) != "" { // the last line ends with a backslash
		all = append(all, Line{Number: first, Text: shorten(joined), Problem: "the line continues after the end of the file"})
	}
	return all
}

// parseLine parses one line; it returns false for a line that is empty or for another node.
func parseLine(text, host string) (l Line, mine bool) {
	target, check, found := strings.Cut(text, "||")
	target, check = strings.Trim(target, " \t\r"), strings.Trim(check, " \t\r")
	if target == "" && !found || strings.HasPrefix(target, "#") {
		return l, false
	}
	if !found || target == "" || check == "" {
		l.Text, l.Problem = shorten(text), "write TARGET || CHECK"
		return l, true
	}
	l.Text = shorten(check)
	m, err := parseMatch(target)
	if err != nil {
		l.Problem = "the target " + err.Error()
		return l, true
	}
	if !m.matches(host) {
		return l, false
	}
	l.parseCheck(check)
	return l, true
}

// parseCheck parses the check of the line.
func (l *Line) parseCheck(check string) {
	if m := setting.FindStringSubmatch(check); m != nil {
		switch {
		case slices.Contains(ignoredSettings, m[1]):
			l.Setting = true
		case m[1] == "MARK_OFFLINE":
			l.Problem = "write drain = false in [slurm] of health.toml"
		default:
			l.Problem = fmt.Sprintf("the setting %.30s has no counterpart", m[1])
		}
		return
	}
	args, err := splitWords(check)
	if err != nil {
		l.Problem = err.Error()
		return
	}
	if len(args) == 0 {
		l.Problem = "a check is missing"
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
