// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Domain is what a check may hang in: what shares it shares a process.
type Domain int

// The domains.
const (
	Node    Domain = iota // /proc, /sys, user accounts
	Storage               // file systems
	Command               // other programs
)

// Line is a line of nhc.conf that is for this node.
type Line struct {
	Number int    // from 1, of its first line if it goes on
	Text   string // its check
	// Problem is why it cannot be looked at, "" if it can.
	Problem string
	// NotDone are options of it that change something, which is not done: "-r".
	NotDone []string
	// Setting is for one of NHC's own settings, which has no meaning here.
	Setting bool
	Domain  Domain
	// NonFatal is for -0: what it finds is not worth a drain.
	NonFatal bool
	look     look
}

// Remark is an error that says no more than that there was nothing to look at.
type Remark string

func (r Remark) Error() string { return string(r) }

// look makes an assertion: a fault that is found, or why that cannot be found out.
// Both are one line without numbers that change from run to run.
type look func(ctx context.Context, s *System) (fault string, err error)

// Look makes the line's assertion.
func (l *Line) Look(ctx context.Context, s *System) (fault string, err error) { return l.look(ctx, s) }

// setting is "export NAME=value" or "NAME=value".
var setting = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=`)

// idle are the settings of NHC that tell it how to run and do not bear on what is found.
var idle = []string{"NHC_RM", "NHC_CHECK_ALL", "NHC_CHECK_FORKED", "DEBUG", "VERBOSE", "SILENT", "TIMEOUT", "LOGFILE",
	"DETACHED_MODE", "DETACHED_MODE_FAIL_NODATA", "FORCE_SETSID", "HELPERDIR", "ONLINE_NODE", "OFFLINE_NODE", "TS"}

// Parse reads the text of an nhc.conf as the node with that host name
// (/proc/sys/kernel/hostname) has it.
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
		all = append(all, Line{Number: first, Text: short(joined), Problem: "it goes on after the end of the file"})
	}
	return all
}

// parseLine is false for a line that is empty or another node's.
func parseLine(text, host string) (l Line, mine bool) {
	target, check, found := strings.Cut(text, "||")
	target, check = strings.Trim(target, " \t\r"), strings.Trim(check, " \t\r")
	if target == "" && !found || strings.HasPrefix(target, "#") {
		return l, false
	}
	if !found || target == "" || check == "" {
		l.Text, l.Problem = short(text), "write TARGET || CHECK"
		return l, true
	}
	l.Text = short(check)
	m, err := parseMatch(target)
	if err != nil {
		l.Problem = "the target " + err.Error()
		return l, true
	}
	if !m.is(host) {
		return l, false
	}
	l.parseCheck(check)
	return l, true
}

func (l *Line) parseCheck(check string) {
	if m := setting.FindStringSubmatch(check); m != nil {
		switch {
		case slices.Contains(idle, m[1]):
			l.Setting = true
		case m[1] == "MARK_OFFLINE":
			l.Problem = "write drain = false in [slurm] of health.toml"
		default:
			l.Problem = fmt.Sprintf("the setting %.30s has no counterpart", m[1])
		}
		return
	}
	args, err := words(check)
	if err != nil {
		l.Problem = err.Error()
		return
	}
	if len(args) == 0 {
		l.Problem = "there is no check"
		return
	}
	kind, known := kinds[args[0]]
	if !known {
		l.Problem = fmt.Sprintf("%.40s is not known", args[0])
		return
	}
	l.Domain = kind.domain
	if l.look, err = kind.parse(l, args[1:]); err != nil {
		l.Problem = err.Error()
	}
}

// changes notes an option that changes something.
func (l *Line) changes(letter byte) {
	if o := "-" + string(letter); !slices.Contains(l.NotDone, o) {
		l.NotDone = append(l.NotDone, o)
	}
}

// short is fit for a list.
func short(text string) string {
	if text = strings.TrimSpace(text); len(text) > 100 {
		return text[:97] + "..."
	}
	return text
}
