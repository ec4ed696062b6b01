// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nhc"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/trusted"
)

// ReadNHCLines parses the nhc.conf named in the settings for this node, and the sysconfig file that NHC reads before
// it. Only root may be able to write the files, since root acts on them. Without a file in the settings there are no
// lines.
func ReadNHCLines(s *check.Settings, proc, etc string) ([]nhc.Line, error) {
	if s.NHC == "" {
		return nil, nil
	}
	text, _, err := trusted.ReadFile(s.NHC, "the configuration of NHC")
	if err != nil {
		return nil, err
	}
	host, err := os.ReadFile(filepath.Join(proc, "sys/kernel/hostname"))
	if err != nil {
		return nil, fmt.Errorf("cannot determine the host name of this node: %w", err)
	}
	path := nhc.FindSysconfig(etc, s.NHC)
	first, _, err := trusted.ReadFile(path, "the sysconfig file of NHC")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nhc.ParseBoth(path, string(first), s.NHC, string(text), strings.TrimSpace(string(host))), nil
}

// noNHC is the finding without an nhc.conf.
var noNHC = check.NewFinding(check.NotApplicable, "no nhc.conf is configured")

// newNHCCheck returns a check that evaluates the assertions of one domain in parallel: an
// assertion that hangs is named and does not delay the others.
func newNHCCheck(domain nhc.Domain) checkFunc {
	return func(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
		if s.NHC == "" {
			return noNHC
		}
		lines, err := ReadNHCLines(s, h.Roots.Proc, h.Roots.Etc)
		if err != nil {
			return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
		}
		if at, ok := ctx.Deadline(); ok { // time to answer before the parent reports this check as hung
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, FindNHCTime(time.Until(at)))
			defer cancel()
		}
		system := newNHCSystem(h, s)
		var p problems
		var state nhcState
		answers := map[int]*deadline.Pending[*problems]{}
		for i, l := range lines {
			if l.Problem == "" && !l.Setting && l.Domain == domain {
				state.Drains = state.Drains || !l.NonFatal
				answers[i] = deadline.Start(func() *problems { return checkNHCLine(ctx, &l, system) })
			}
		}
		for i, l := range lines {
			if answers[i] == nil {
				continue
			}
			if one, ok := answers[i].Await(ctx); ok {
				p.addAll(one)
			} else {
				judgeMissingAnswer(&p, &l, domain)
			}
		}
		if len(answers) == 0 {
			return check.NewFinding(check.NotApplicable, "nhc.conf has no lines of this kind for this node")
		}
		f := p.buildFinding("all %d assertions of nhc.conf hold", len(answers))
		if domain == nhc.Storage {
			f.State, _ = json.Marshal(state)
		}
		return f
	}
}

// newNHCSystem returns the node for one run.
func newNHCSystem(h *check.Host, s *check.Settings) *nhc.System {
	return &nhc.System{Proc: h.Roots.Proc, Sys: h.Roots.Sys, Etc: h.Roots.Etc, Now: h.Now, Command: h.Command,
		Jobs: jobDevices{h, s}}
}

// FindNHCTime returns the time that a command of nhc.conf may take, of that which its check has: the rest is for the
// answer.
func FindNHCTime(timeout time.Duration) time.Duration { return timeout - timeout/4 }

// nhcState is the state of nhc-files.
type nhcState struct {
	Drains bool `json:"drains"` // whether a line may drain
}

// recallQuiet returns why a process that hangs does not drain, if no line may.
func recallQuiet(h *check.Host) string {
	var state nhcState
	if h.State == nil || json.Unmarshal(h.State, &state) != nil || state.Drains {
		return ""
	}
	return "nhc.conf asks not to drain"
}

// checkNHCLine evaluates one assertion.
func checkNHCLine(ctx context.Context, l *nhc.Line, system *nhc.System) *problems {
	p := &problems{}
	fault, err := l.Check(ctx, system)
	var remark nhc.Remark
	switch {
	case errors.As(err, &remark):
		p.addWarning("line %d: %s", l.Number, remark)
	case err != nil:
		p.addUnknown("line %d: %v", l.Number, err)
	case fault != "" && l.NonFatal:
		p.addWarning("line %d: %s", l.Number, fault)
	case fault != "":
		p.addFailure("line %d: %s", l.Number, fault)
	}
	return p
}

// judgeMissingAnswer reports a line without an answer: storage that does not answer is faulty.
func judgeMissingAnswer(p *problems, l *nhc.Line, domain nhc.Domain) {
	say := p.addUnknown
	switch {
	case domain == nhc.Storage && l.NonFatal:
		say = p.addWarning
	case domain == nhc.Storage:
		say = p.addFailure
	}
	say("line %d: no answer to %.60s", l.Number, l.Text)
}

// nhcConfig reports the lines of nhc.conf that gojail cannot or does not perform.
// It looks at their programs, and so shares a process with the check that runs them.
func nhcConfig(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if s.NHC == "" {
		return noNHC
	}
	lines, err := ReadNHCLines(s, h.Roots.Proc, h.Roots.Etc)
	if err != nil {
		return check.NewFinding(check.Fail, "%s", formatLine(err.Error()))
	}
	var p problems
	system := newNHCSystem(h, s)
	for _, l := range lines {
		if l.Problem != "" {
			p.addWarning("%s: %s", l.Place(), l.Problem)
		} else if err := l.FindObstacle(system); err != nil {
			p.addWarning("%s: %v", l.Place(), err)
		}
		for _, note := range l.Notes {
			p.addWarning("%s: %s", l.Place(), note)
		}
		if len(l.NotDone) > 0 {
			p.addWarning("%s: %s is ignored, since checks change nothing", l.Place(), strings.Join(l.NotDone, " "))
		}
	}
	return p.buildFinding("all lines of nhc.conf are understood")
}
