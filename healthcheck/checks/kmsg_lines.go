// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"regexp"
	"slices"
	"strings"
)

// joinRecords returns the messages of records as lines. A message may have several lines in
// one record, or lie in several records between which other CPUs' messages are.
//
// Only the beginning of a record begins a line. A later line of a record completes the first
// one, and is never a message of its own: users choose such lines. They may name a process or
// a mount's source with a line break in it, and the NVIDIA driver prints the version that a
// program claims to have ("NVRM: API mismatch").
func joinRecords(records []kernelRecord) []kernelLine {
	j := &lineJoiner{last: map[string]string{}}
	for _, r := range records {
		raw := r.Text
		r.Text = formatRecordText(raw)
		if !j.joinWrapped(r) {
			j.add(r, r.Text)
		}
		j.joinFragment(r, raw)
	}
	return j.lines
}

// lineJoiner holds what is incomplete while the records are read in order.
type lineJoiner struct {
	lines []kernelLine
	heads []kernelRecord    // first records of wrapped messages, oldest first
	last  map[string]string // raw text of the message that a fragment continues, by caller
	chain kernelRecord      // last fragment, with the raw text of its message
}

func (j *lineJoiner) add(r kernelRecord, text string) {
	j.lines = append(j.lines, kernelLine{r.Record, r.Since, text})
}

// lineBreak matches a line break in a record, with the indentation and the driver's name at the
// beginning of the next line.
var lineBreak = regexp.MustCompile(`(?:\\x0d)? *\\x0a *(?:NVRM: *)?`)

// formatRecordText returns the text of a record as one line.
func formatRecordText(text string) string {
	if !strings.Contains(text, `\x`) {
		return strings.TrimRight(text, " ")
	}
	text = strings.ReplaceAll(text, `\x09`, " ")
	return strings.TrimRight(lineBreak.ReplaceAllString(text, " "), " ")
}

// The NVIDIA driver wraps its message about a GPU that has fallen off the bus after the address
// and after "has". All of its lines are one record, but several if the log went through a
// program that splits lines.
var (
	wrapHead = regexp.MustCompile(`^NVRM: The NVIDIA GPU [0-9a-fA-F:.]+`)
	wrapTail = regexp.MustCompile(`^NVRM: *((?:\(PCI ID: |installed in |fallen off ).*)`)
)

// headsMost is the number of incomplete messages that are remembered; a node has fewer GPUs.
const headsMost = 64

// joinWrapped adds a record to the wrapped message that it continues, and reports whether it
// does. The caller, if the kernel reports it, distinguishes messages that are printed at the
// same time; otherwise the oldest incomplete one is continued.
func (j *lineJoiner) joinWrapped(r kernelRecord) bool {
	if !strings.HasPrefix(r.Text, "NVRM: ") {
		return false
	}
	if wrapHead.MatchString(r.Text) && !isWholeSentence(r.Text) {
		j.heads = append(j.heads, r)
		j.heads = j.heads[max(0, len(j.heads)-headsMost):]
		return false
	}
	m := wrapTail.FindStringSubmatch(r.Text)
	i := slices.IndexFunc(j.heads, func(h kernelRecord) bool { return h.Caller == r.Caller })
	if m == nil || i < 0 {
		return false
	}
	j.heads[i].Text += " " + m[1]
	if text := j.heads[i].Text; isWholeSentence(text) {
		j.heads = slices.Delete(j.heads, i, i+1)
		j.add(r, text)
	}
	return true
}

func isWholeSentence(text string) bool {
	return strings.Contains(text, "fallen off the bus") || strings.HasSuffix(text, ".")
}

// ownLine matches the name of a subsystem at the beginning of a line.
var ownLine = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*: `)

// The limits of a message that consists of fragments: the number of records between two
// fragments, and the length.
const (
	fragmentDistance = 16
	fragmentsLength  = recordMost
)

// joinFragment adds the message that a fragment continues, with the fragment. The message
// without it has been added already: the kernel does not say which record a fragment belongs
// to, unless it reports callers. A fragment with the name of a subsystem begins a message,
// since the NVIDIA driver prints each of its messages with KERN_CONT (nv_printf).
func (j *lineJoiner) joinFragment(r kernelRecord, raw string) {
	before, known := j.last[r.Caller]
	if r.Caller == "" && j.chain.Text != "" && j.chain.Level == r.Level && r.Record-j.chain.Record <= fragmentDistance {
		before = j.chain.Text
	}
	if r.Fragment && known && !ownLine.MatchString(r.Text) && len(before)+len(raw) <= fragmentsLength {
		raw = before + raw
		j.add(r, formatRecordText(raw))
	}
	j.last[r.Caller] = raw
	if r.Fragment {
		r.Text = raw
		j.chain = r
	}
}
