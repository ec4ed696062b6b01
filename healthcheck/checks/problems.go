// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/oneline"
)

// textMax is the maximum number of characters in Finding.Text.
const textMax = 120

// problems collects the results of one check, which may cover several items.
type problems struct {
	fail, unknown, warn, detail []string
	metrics                     []check.Metric
	silent                      int // the faults that are storage that does not answer
}

// addFailure adds a fault.
func (p *problems) addFailure(format string, args ...any) {
	p.fail = append(p.fail, fmt.Sprintf(format, args...))
}

// addWarning adds a warning.
func (p *problems) addWarning(format string, args ...any) {
	p.warn = append(p.warn, fmt.Sprintf(format, args...))
}

// addUnknown adds a state that could not be determined.
func (p *problems) addUnknown(format string, args ...any) {
	p.unknown = append(p.unknown, fmt.Sprintf(format, args...))
}

// addNote adds a detail.
func (p *problems) addNote(format string, args ...any) {
	p.detail = append(p.detail, oneline.Printable(fmt.Sprintf(format, args...)))
}

// addAll adds the problems of another collection.
func (p *problems) addAll(more *problems) {
	p.fail, p.unknown = append(p.fail, more.fail...), append(p.unknown, more.unknown...)
	p.warn, p.detail = append(p.warn, more.warn...), append(p.detail, more.detail...)
	p.metrics = append(p.metrics, more.metrics...)
	p.silent += more.silent
}

// buildFinding returns the worst result as a Finding, or good. A warning together with an
// unknown state is Unknown, since an undetermined state must not undrain a node.
func (p *problems) buildFinding(good string, args ...any) check.Finding {
	f := check.Finding{Verdict: check.OK, Text: formatLine(fmt.Sprintf(good, args...))}
	for _, kind := range []struct {
		verdict check.Verdict
		texts   []string
	}{{check.Fail, p.fail}, {check.Unknown, p.unknown}, {check.Warn, p.warn}} {
		if len(kind.texts) > 0 {
			f = check.Finding{Verdict: kind.verdict, Text: joinTexts(kind.texts)}
			break
		}
	}
	f.Metrics = p.metrics
	f.Silent = f.Verdict == check.Fail && p.silent == len(p.fail)
	f.Detail = strings.Join(slices.Concat(p.detail, p.listOthers(f.Verdict)), "; ")
	return f
}

// listOthers returns the texts that the finding's text does not include.
func (p *problems) listOthers(reported check.Verdict) []string {
	var all []string
	for verdict, texts := range map[check.Verdict][]string{check.Unknown: p.unknown, check.Warn: p.warn} {
		if verdict != reported {
			all = append(all, texts...)
		}
	}
	slices.Sort(all)
	return all
}

// joinTexts returns the same line for the same faults regardless of their order.
func joinTexts(texts []string) string {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	text := formatLine(texts[0])
	for _, more := range texts[1:] {
		if len(text)+len(more)+len("; ; and more") > textMax {
			return text + "; and more"
		}
		text += "; " + formatLine(more)
	}
	return text
}

// formatLine converts a text to one line of ASCII that fits into a finding.
func formatLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > textMax-len("; and more") {
		text = text[:textMax-len("; and more")]
	}
	return text
}
