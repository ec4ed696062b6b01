// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/tomlfile"
)

// longest is how many characters a Finding.Text may have.
const longest = 120

// problems collects what one check has seen, of several things perhaps.
type problems struct {
	fail, unknown, warn, detail []string
	metrics                     []check.Metric
}

func (p *problems) failed(format string, args ...any) {
	p.fail = append(p.fail, fmt.Sprintf(format, args...))
}

func (p *problems) warned(format string, args ...any) {
	p.warn = append(p.warn, fmt.Sprintf(format, args...))
}

func (p *problems) unclear(format string, args ...any) {
	p.unknown = append(p.unknown, fmt.Sprintf(format, args...))
}

func (p *problems) note(format string, args ...any) {
	p.detail = append(p.detail, tomlfile.Printable(fmt.Sprintf(format, args...)))
}

// await takes what a look in the background has found, unless ctx ends without it.
func await(ctx context.Context, from <-chan *problems) (found *problems, ok bool) {
	select {
	case found = <-from:
		return found, true
	case <-ctx.Done():
	}
	select { // both may be there, and then select throws a coin
	case found = <-from:
		return found, true
	default:
		return nil, false
	}
}

func (p *problems) add(more *problems) {
	p.fail, p.unknown = append(p.fail, more.fail...), append(p.unknown, more.unknown...)
	p.warn, p.detail = append(p.warn, more.warn...), append(p.detail, more.detail...)
	p.metrics = append(p.metrics, more.metrics...)
}

// finding is the worst of it, or good. A warning beside something unknown is
// Unknown: what could not be seen must not bring a node back.
func (p *problems) finding(good string, args ...any) check.Finding {
	f := check.Finding{Verdict: check.OK, Text: line(fmt.Sprintf(good, args...))}
	for _, kind := range []struct {
		verdict check.Verdict
		texts   []string
	}{{check.Fail, p.fail}, {check.Unknown, p.unknown}, {check.Warn, p.warn}} {
		if len(kind.texts) > 0 {
			f = check.Finding{Verdict: kind.verdict, Text: joined(kind.texts)}
			break
		}
	}
	f.Metrics = p.metrics
	f.Detail = strings.Join(slices.Concat(p.detail, p.others(f.Verdict)), "; ")
	return f
}

// others is what the text does not tell.
func (p *problems) others(shown check.Verdict) []string {
	var all []string
	for verdict, texts := range map[check.Verdict][]string{check.Unknown: p.unknown, check.Warn: p.warn} {
		if verdict != shown {
			all = append(all, texts...)
		}
	}
	slices.Sort(all)
	return all
}

// joined is the same line for the same faults in whichever order they were seen.
func joined(texts []string) string {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	text := line(texts[0])
	for _, more := range texts[1:] {
		if len(text)+len(more)+len("; ; and more") > longest {
			return text + "; and more"
		}
		text += "; " + line(more)
	}
	return text
}

// line makes ASCII of one line and the length that there is room for.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > longest-len("; and more") {
		text = text[:longest-len("; and more")]
	}
	return text
}
