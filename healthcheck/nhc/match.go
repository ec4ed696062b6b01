// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// match is a match string: a glob, a /regular expression/ or a {range}.
type match struct {
	text   string
	not    bool // negated by a leading "!"
	expr   *regexp.Regexp
	ranges []nodeRange
}

// String returns the match string as written.
func (m *match) String() string { return m.text }

// parseMatch parses a match string.
func parseMatch(text string) (*match, error) {
	m := &match{text: text}
	var err error
	rest, not := strings.CutPrefix(text, "!")
	m.not = not
	switch {
	case isWithin(rest, '/', '/'):
		m.expr, err = parseERE(rest[1 : len(rest)-1])
	case isWithin(rest, '{', '}'):
		m.ranges, err = parseRanges(rest[1 : len(rest)-1])
	default:
		m.expr, err = parseGlob(rest, true)
	}
	if err != nil {
		return nil, fmt.Errorf("%.60q: %w", text, err)
	}
	return m, nil
}

// isGlob reports whether the match string is a glob.
func (m *match) isGlob() bool {
	return !isWithin(strings.TrimPrefix(m.text, "!"), '/', '/') && m.ranges == nil
}

// hasSlash reports whether the match string describes a path.
func (m *match) hasSlash() bool {
	text := strings.TrimPrefix(m.text, "!")
	if isWithin(text, '/', '/') {
		text = text[1 : len(text)-1]
	}
	return strings.Contains(text, "/")
}

// isWithin reports whether a text begins and ends with these characters.
func isWithin(text string, begin, end byte) bool {
	return len(text) >= 2 && text[0] == begin && text[len(text)-1] == end
}

// matches reports whether the text matches, including a "!".
func (m *match) matches(text string) bool { return m.matchesText(text) != m.not }

// matchesText reports whether the text matches, without the "!".
func (m *match) matchesText(text string) bool {
	if m.expr != nil {
		return m.expr.MatchString(text)
	}
	return slices.ContainsFunc(m.ranges, func(r nodeRange) bool { return r.contains(text) })
}

// nodeRange is one part of a {range}.
type nodeRange struct {
	name           string // name of a single node
	prefix, suffix string
	first, last    int
	width          int // number of digits
}

var (
	singleNode = regexp.MustCompile(`^[-a-zA-Z0-9_]+[0-9]+[-.a-zA-Z0-9]*$`)
	manyNodes  = regexp.MustCompile(`^([-a-zA-Z0-9_]+)\[([0-9]{1,9})-([0-9]{1,9})\]([-.a-zA-Z0-9]*)$`)
)

// parseRanges parses "n[01-20].a,n33": each part has at most one bracket, with one range.
func parseRanges(list string) ([]nodeRange, error) {
	var all []nodeRange
	for _, part := range strings.Split(list, ",") {
		m := manyNodes.FindStringSubmatch(part)
		switch {
		case singleNode.MatchString(part):
			all = append(all, nodeRange{name: part})
		case m == nil:
			return nil, fmt.Errorf("%.40q is neither a node name with a number nor a range such as n[01-20]", part)
		default:
			r := nodeRange{prefix: m[1], suffix: m[4], width: max(len(m[2]), len(m[3]))}
			a, _ := strconv.Atoi(m[2])
			b, _ := strconv.Atoi(m[3])
			r.first, r.last = min(a, b), max(a, b)
			all = append(all, r)
		}
	}
	return all, nil
}

// contains reports whether the range has the node.
func (r nodeRange) contains(node string) bool {
	if r.name != "" {
		return node == r.name
	}
	number, ok := strings.CutPrefix(node, r.prefix)
	number, ok2 := strings.CutSuffix(number, r.suffix)
	if !ok || !ok2 || len(number) != r.width || strings.Trim(number, "0123456789") != "" {
		return false
	}
	n, err := strconv.Atoi(number)
	return err == nil && r.first <= n && n <= r.last
}
