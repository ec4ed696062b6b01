// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a host list. The limit of a range is Slurm's (MAX_RANGE, hostlist.c).
const (
	hostRangeMax = 1 << 16 // names of one range
	hostsMax     = 1 << 20 // names of a list
	bracketsMax  = 5       // of one name
	digitsMax    = 18      // of one number: it fits 64 bits
)

// Parse parses a list such as "gpu[01-04,7],login,rack[1-2]n[1-3]". It refuses forms that Slurm accepts
// but never writes: blanks, empty names, and unclosed brackets.
func Parse(text string) (List, error) {
	h := List{text: text}
	if text == "" {
		return List{}, errors.New("the list of nodes is empty; name at least one")
	}
	for _, part := range Split(text) {
		p, err := parsePattern(part)
		if err != nil {
			return List{}, fmt.Errorf("%.100q: %w", part, err)
		}
		p.first = h.len
		if h.len += p.len; h.len > hostsMax {
			return List{}, fmt.Errorf("%.100q: more than %d nodes", text, hostsMax)
		}
		h.names = append(h.names, p)
	}
	return h, nil
}

// Split splits a list at the commas outside brackets, without checking the parts.
func Split(text string) []string {
	var parts []string
	inside := false
	for {
		i := strings.IndexFunc(text, func(r rune) bool {
			if r == '[' || r == ']' {
				inside = r == '['
			}
			return r == ',' && !inside
		})
		if i < 0 {
			return append(parts, text)
		}
		parts, text = append(parts, text[:i]), text[i+1:]
	}
}

func parsePattern(part string) (hostPattern, error) {
	p := hostPattern{len: 1}
	if part == "" {
		return p, errors.New("empty name; is there an extra comma?")
	}
	rest := part
	for rest != "" {
		before, after, bracket := strings.Cut(rest, "[")
		if i := strings.IndexFunc(before, notInHost); i >= 0 {
			return p, fmt.Errorf("%q cannot be in a node's name", before[i:i+1])
		}
		if !bracket {
			if rest != part {
				return p, fmt.Errorf("%q after a bracket; Slurm accepts only names that end with a bracket", rest)
			}
			p.plain = part
			return p, nil
		}
		inside, after, closed := strings.Cut(after, "]")
		if !closed {
			return p, errors.New(`a "[" without "]"`)
		}
		b, err := parseBracket(before, inside)
		if err != nil {
			return p, err
		}
		p.brackets = append(p.brackets, b)
		if len(p.brackets) > bracketsMax {
			return p, fmt.Errorf("more than %d brackets", bracketsMax)
		}
		if p.len *= b.len; p.len > hostsMax {
			return p, fmt.Errorf("more than %d nodes", hostsMax)
		}
		rest = after
	}
	return p, nil
}

func notInHost(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
}

func parseBracket(before, inside string) (hostBracket, error) {
	b := hostBracket{before: before}
	for _, text := range strings.Split(inside, ",") {
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		for _, digits := range []string{from, to} {
			if digits == "" || strings.Trim(digits, "0123456789") != "" {
				return b, fmt.Errorf(`%q in brackets: write a number or a range, such as "3" or "01-16"`, text)
			}
			if len(digits) > digitsMax {
				return b, fmt.Errorf("%q in brackets: more than %d digits", text, digitsMax)
			}
		}
		r := hostRange{low: number(from), high: number(to), width: len(from), first: b.len}
		if r.high < r.low {
			return b, fmt.Errorf("%q in brackets: the end is less than the start", text)
		}
		if r.high-r.low >= hostRangeMax {
			return b, fmt.Errorf("%q in brackets: more than %d nodes, which is also Slurm's limit", text, hostRangeMax)
		}
		b.ranges = append(b.ranges, r)
		if b.len += int(r.high-r.low) + 1; b.len > hostsMax {
			return b, fmt.Errorf("more than %d nodes", hostsMax)
		}
	}
	return b, nil
}
