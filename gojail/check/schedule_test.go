// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What cron and at execute for users is on the node, whatever their login shell is.
func TestCheckOfSchedulers(t *testing.T) {
	const (
		login     = "[login]\njail = \"a\"\nnodes = [\"n1\"]\n"
		elsewhere = "[login]\njail = \"a\"\nnodes = [\"n2\"]\n"
		everybody = "WARN  sessions: all users may use crontab, which executes their commands on the node, outside the jail; let only root, and whom"
		crontab   = "usr/bin/crontab"
		at        = "usr/bin/at"
	)
	for name, test := range map[string]struct {
		config string
		files  map[string]string
		people string   // a file that belongs to a user
		want   []string // nil: no finding
	}{
		"nobody is named":    {login, map[string]string{crontab: "x"}, "", []string{everybody, "list them in /etc/cron.allow"}},
		"on a compute node":  {"[session]\n", map[string]string{crontab: "x"}, "", []string{everybody}},
		"without sessions":   {elsewhere, map[string]string{crontab: "x", "var/spool/cron/alice": "x"}, "var/spool/cron/alice", nil},
		"a list of others":   {login, map[string]string{crontab: "x", "etc/cron.deny": "bob\n"}, "", []string{everybody}},
		"empty":              {login, map[string]string{crontab: "x", "etc/cron.allow": ""}, "", nil},
		"root alone":         {login, map[string]string{crontab: "x", "etc/cron.allow": "root\n# bob\n"}, "", nil},
		"some":               {login, map[string]string{crontab: "x", "etc/cron.allow": "root\nalice\nbob\n"}, "", []string{"WARN  sessions: alice, bob may use crontab"}},
		"at":                 {login, map[string]string{at: "x", "etc/cron.allow": ""}, "", []string{"WARN  sessions: all users may use at, "}},
		"not installed":      {login, map[string]string{"var/spool/cron/alice": "x"}, "var/spool/cron/alice", nil},
		"Debian's crontabs":  {login, map[string]string{crontab: "x", "etc/cron.allow": "", "var/spool/cron/crontabs/alice": "x", "var/spool/cron/crontabs/root": "x"}, "var/spool/cron/crontabs/alice", []string{"WARN  sessions: crontab executes what users have scheduled on the node, outside the jail: /var/spool/cron/crontabs/alice; unless"}},
		"Red Hat's crontabs": {login, map[string]string{crontab: "x", "etc/cron.allow": "", "var/spool/cron/alice": "x"}, "var/spool/cron/alice", []string{": /var/spool/cron/alice; unless"}},
		"jobs of at":         {login, map[string]string{at: "x", "etc/at.allow": "", "var/spool/cron/atjobs/a0000101": "x"}, "var/spool/cron/atjobs/a0000101", []string{"WARN  sessions: at executes what users have scheduled"}},
		"root's":             {login, map[string]string{crontab: "x", "etc/cron.allow": "", "var/spool/cron/crontabs/root": "x"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.people != "" && os.Getuid() != 0 {
				t.Skip("needs root: files of another user")
			}
			n := newGoodNode(t)
			n.configure(t, test.config)
			n.writeSystem(t, test.files)
			for file := range test.files {
				if os.Getuid() == 0 {
					require.NoError(t, os.Lchown(filepath.Join(n.rootIn, file), 0, 0))
				}
			}
			if test.people != "" {
				require.NoError(t, os.Lchown(filepath.Join(n.rootIn, test.people), 5001, 5001))
			}
			found := n.listFindings()
			if test.want == nil {
				assert.NotRegexp(t, "crontab|scheduled|use at", found)
			}
			for _, want := range test.want {
				assert.Contains(t, found, want)
			}
		})
	}
}
