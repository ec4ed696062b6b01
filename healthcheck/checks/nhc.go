// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nhc"
	"github.com/gojail/gojail/internal/trusted"
)

// NHCLines reads the nhc.conf of the settings as this node has it; root acts on it, so
// nobody else may write it. Without one in the settings there are no lines.
func NHCLines(s *check.Settings, proc string) ([]nhc.Line, error) {
	if s.NHC == "" {
		return nil, nil
	}
	text, _, err := trusted.ReadFile(s.NHC, "the configuration of NHC")
	if err != nil {
		return nil, err
	}
	host, err := os.ReadFile(filepath.Join(proc, "sys/kernel/hostname"))
	if err != nil {
		return nil, fmt.Errorf("this node has no host name: %w", err)
	}
	return nhc.Parse(string(text), strings.TrimSpace(string(host))), nil
}

var noNHC = check.Found(check.NotApplicable, "no nhc.conf is configured")

// nhcLines makes the assertions of one domain, all at once: one that hangs is named,
// and holds up no other.
func nhcLines(domain nhc.Domain) look {
	return func(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
		if s.NHC == "" {
			return noNHC
		}
		lines, err := NHCLines(s, h.Roots.Proc)
		if err != nil {
			return check.Found(check.Unknown, "%s", line(err.Error()))
		}
		if at, ok := ctx.Deadline(); ok { // time for an answer, before somebody else says that this one hangs
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, at.Add(-time.Until(at)/4))
			defer cancel()
		}
		system := &nhc.System{Proc: h.Roots.Proc, Sys: h.Roots.Sys, Etc: h.Roots.Etc, Now: h.Now, Command: h.Command}
		var p problems
		answers := map[int]chan *problems{}
		for i, l := range lines {
			if l.Problem == "" && !l.Setting && l.Domain == domain {
				answer := make(chan *problems, 1)
				answers[i] = answer
				go func() { answer <- lookAt(ctx, &l, system) }()
			}
		}
		for i, l := range lines {
			if answers[i] == nil {
				continue
			}
			if one, ok := await(ctx, answers[i]); ok {
				p.add(one)
			} else {
				late(&p, &l, domain)
			}
		}
		if len(answers) == 0 {
			return check.Found(check.NotApplicable, "nhc.conf has no such lines for this node")
		}
		return p.finding("all %d lines of nhc.conf hold", len(answers))
	}
}

func lookAt(ctx context.Context, l *nhc.Line, system *nhc.System) *problems {
	p := &problems{}
	fault, err := l.Look(ctx, system)
	var remark nhc.Remark
	switch {
	case errors.As(err, &remark):
		p.warned("line %d: %s", l.Number, remark)
	case err != nil:
		p.unclear("line %d: %v", l.Number, err)
	case fault != "" && l.NonFatal:
		p.warned("line %d: %s", l.Number, fault)
	case fault != "":
		p.failed("line %d: %s", l.Number, fault)
	}
	return p
}

// late is for a line without an answer: storage that does not answer is sick.
func late(p *problems, l *nhc.Line, domain nhc.Domain) {
	say := p.unclear
	switch {
	case domain == nhc.Storage && l.NonFatal:
		say = p.warned
	case domain == nhc.Storage:
		say = p.failed
	}
	say("line %d: no answer to %.60s", l.Number, l.Text)
}

// nhcConfig tells of what an nhc.conf says and gojail does not do.
func nhcConfig(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if s.NHC == "" {
		return noNHC
	}
	lines, err := NHCLines(s, h.Roots.Proc)
	if err != nil {
		return check.Found(check.Fail, "%s", line(err.Error()))
	}
	var p problems
	for _, l := range lines {
		if l.Problem != "" {
			p.warned("line %d: %s", l.Number, l.Problem)
		}
		if len(l.NotDone) > 0 {
			p.warned("line %d: %s is not done, as checks change nothing", l.Number, strings.Join(l.NotDone, " "))
		}
	}
	return p.finding("nhc.conf is understood")
}
