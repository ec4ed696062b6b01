// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/rootpath"
)

// Values of the key without_job.
const (
	sessionRefuse = "refuse"
	sessionNode   = "node"
)

// exemptMax is the limit of groups: their ids are on one line of the site file.
const exemptMax = 64

// parseSession returns the table [session], with defaults filled in.
func (s *source) parseSession(f *fileSession) (Session, error) {
	session := Session{Configured: f != nil, WithoutJob: sessionRefuse, Shell: "/bin/bash"}
	if f == nil {
		return session, nil
	}
	session.Exempt = f.Exempt
	if f.WithoutJob != nil {
		session.WithoutJob = *f.WithoutJob
	}
	if session.WithoutJob != sessionRefuse && session.WithoutJob != sessionNode {
		return session, s.refuse([]string{"session", "without_job"}, `%q: write "refuse" or "node"`, session.WithoutJob)
	}
	if len(f.Exempt) > exemptMax {
		return session, s.refuse([]string{"session", "exempt"}, "names %d groups; at most %d are supported",
			len(f.Exempt), exemptMax)
	}
	if i := slices.IndexFunc(f.Exempt, IsBadAccount); i >= 0 {
		return session, s.refuse([]string{"session", "exempt"}, "%q is not a name or a number", f.Exempt[i])
	}
	if f.Shell != nil {
		session.Shell = *f.Shell
	}
	key := []string{"session", "shell"}
	if strings.ContainsAny(session.Shell, " \t") {
		return session, s.refuse(key, "%q: must not contain blanks", session.Shell)
	}
	if err := rootpath.CheckClean(session.Shell); err != nil {
		return session, s.refuse(key, "%v", err)
	}
	return session, nil
}
