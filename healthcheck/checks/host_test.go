// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

// testHost returns a node in a directory, which is empty until a test adds files.
func testHost(t *testing.T) *check.Host {
	t.Helper()
	dir := t.TempDir()
	h := &check.Host{Node: "n1", Settings: config.DefaultSettings(), Now: func() time.Time { return time.Unix(1e9, 0) },
		Roots: check.Roots{Sys: dir + "/sys", Proc: dir + "/proc", Dev: dir + "/dev", Etc: dir + "/etc", Run: dir + "/run", Kmsg: dir + "/kmsg"}}
	for _, d := range []string{h.Roots.Sys, h.Roots.Proc, h.Roots.Dev, h.Roots.Etc, h.Roots.Run} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	return h
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// fixture copies testdata/NAME to the path that a check reads.
func fixture(t *testing.T, name, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	put(t, to, string(text))
}

// expect asserts the verdict and, unless it is "", the text.
func expect(t *testing.T, f check.Finding, verdict check.Verdict, text string) {
	t.Helper()
	assert.Equal(t, verdict.String(), f.Verdict.String(), "%s; %s", f.Text, f.Detail)
	if text != "" {
		assert.Equal(t, text, f.Text)
	}
	assert.NotEmpty(t, f.Text)
	assert.LessOrEqual(t, len(f.Text), textMax)
	assert.Regexp(t, regexp.MustCompile(`^[ -~]+$`), f.Text)
	assert.True(t, f.State == nil || json.Valid(f.State))
}

// again performs the next run with the state of the last one.
func again(h *check.Host, l checkFunc, s *check.Settings, before check.Finding) check.Finding {
	h.State = before.State
	return l(context.Background(), h, s)
}

func once(h *check.Host, l checkFunc, s *check.Settings) check.Finding {
	return l(context.Background(), h, s)
}

func TestProblems(t *testing.T) {
	p := problems{}
	p.addWarning("b")
	p.addWarning("a")
	p.addWarning("a")
	expect(t, p.buildFinding("good"), check.Warn, "a; b")
	p.addUnknown("c")
	expect(t, p.buildFinding("good"), check.Unknown, "c")
	for range 30 {
		p.addFailure("GPU %d has a fault that takes many words \x1b[31m", len(p.fail))
	}
	f := p.buildFinding("good")
	expect(t, f, check.Fail, "")
	assert.Regexp(t, `and more$`, f.Text)
	expect(t, (&problems{}).buildFinding("good"), check.OK, "good")
}

func TestRows(t *testing.T) {
	names := map[string]bool{}
	for _, c := range All() {
		assert.Regexp(t, `^[a-z][a-z0-9-]*$`, c.Name)
		assert.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		assert.NotEmpty(t, c.Subject, c.Name)
		assert.Regexp(t, `\.$`, c.Remedy, c.Name)
		assert.Positive(t, c.Timeout, c.Name)
		assert.NotNil(t, c.Run, c.Name)
		assert.True(t, c.Severity == check.Drain || c.Severity == check.WarnOnly, c.Name)
		assert.True(t, c.Child == "" || c.HangVerdict == check.Fail || c.HangVerdict == check.Unknown, c.Name)
		assert.Less(t, storagePatience, All()[1].Timeout)
	}
	assert.Len(t, texts, len(table), "texts and checks")
}

// A node whose state cannot be read is neither faulty nor healthy.
func TestAbsentNodeNeverFails(t *testing.T) {
	h := testHost(t)
	require.NoError(t, os.RemoveAll(filepath.Dir(h.Roots.Sys)))
	s := config.DefaultSettings()
	s.Jail.Config, s.Network.Config = h.Roots.Etc+"/gojail.toml", h.Roots.Etc+"/network.toml"
	s.Daemons.Munge, s.GPU.Library = "none", h.Roots.Etc+"/no.so"
	s.FileSystems = []check.FileSystem{{Path: "/", Any: true}}
	s.GPU.SMI = "none"
	for name, l := range map[string]checkFunc{"mounted": mounted, "memory": memory, "stuck": stuck, "kernelLog": kernelLog, "xid": xid,
		"disk": disk, "edac": edac, "daemons": daemons, "jails": jails, "leftovers": leftovers, "defaultRoute": defaultRoute,
		"rdmaPorts": rdmaPorts, "rdmaFlaps": rdmaFlaps, "vfs": vfs, "quarantine": quarantine, "nvidiaSMI": nvidiaSMI, "gpuCount": gpuCount} {
		t.Run(name, func(t *testing.T) {
			f := once(h, l, s)
			assert.Contains(t, []check.Verdict{check.Unknown, check.NotApplicable}, f.Verdict, "%v %s", f.Verdict, f.Text)
		})
	}
}
