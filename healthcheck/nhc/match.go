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
	not    bool // "!" before it
	expr   *regexp.Regexp
	ranges []nodeRange
}

// String is the match string as it was written.
func (m *match) String() string { return m.text }

// parseMatch understands a match string.
func parseMatch(text string) (*match, error) {
	m := &match{text: text}
	var err error
	rest, not := strings.CutPrefix(text, "!")
	m.not = not
	switch {
	case within(rest, '/', '/'):
		m.expr, err = parseERE(rest[1 : len(rest)-1])
	case within(rest, '{', '}'):
		m.ranges, err = parseRanges(rest[1 : len(rest)-1])
	default:
		m.expr, err = parseGlob(rest, true)
	}
	if err != nil {
		return nil, fmt.Errorf("%.60q: %w", text, err)
	}
	return m, nil
}

func within(text string, begin, end byte) bool {
	return len(text) >= 2 && text[0] == begin && text[len(text)-1] == end
}

// is tells whether the text matches, "!" included.
func (m *match) is(text string) bool { return m.plain(text) != m.not }

// plain is without the "!".
func (m *match) plain(text string) bool {
	if m.expr != nil {
		return m.expr.MatchString(text)
	}
	return slices.ContainsFunc(m.ranges, func(r nodeRange) bool { return r.has(text) })
}

// nodeRange is one part of a {range}.
type nodeRange struct {
	name           string // a single node
	prefix, suffix string
	first, last    int
	width          int // digits of the number
}

var (
	singleNode = regexp.MustCompile(`^[-a-zA-Z0-9_]+[0-9]+[-.a-zA-Z0-9]*$`)
	manyNodes  = regexp.MustCompile(`^([-a-zA-Z0-9_]+)\[([0-9]{1,9})-([0-9]{1,9})\]([-.a-zA-Z0-9]*)$`)
)

// parseRanges reads "n[01-20].a,n33": one bracket in each part, of one range.
func parseRanges(list string) ([]nodeRange, error) {
	var all []nodeRange
	for _, part := range strings.Split(list, ",") {
		m := manyNodes.FindStringSubmatch(part)
		switch {
		case singleNode.MatchString(part):
			all = append(all, nodeRange{name: part})
		case m == nil:
			return nil, fmt.Errorf("%.40q is no node with a number, nor a range like n[01-20]", part)
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

func (r nodeRange) has(node string) bool {
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
