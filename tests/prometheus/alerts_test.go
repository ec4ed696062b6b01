// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// active are the alerts that are firing or pending on this site; all others are not.
var active = map[string]string{
	"GojailLaunchFailures":   "firing",
	"GojailVFsQuarantined":   "pending",
	"GojailSandboxesDamaged": "pending",
}

// checkAlerts asks Prometheus for all rules that it has loaded, which it evaluates every second.
func (s *site) checkAlerts(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	require.NoError(t, s.get(t, "rules", nil, &data))
	count := 0
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			count++
			assert.Equal(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			want := active[rule.Name]
			if want == "" {
				want = "inactive"
			}
			assert.Equal(t, want, rule.State, rule.Name)
		}
	}
	assert.Greater(t, count, 10)
}

// TestRules: promtool finds no fault in the rules, and their own tests pass.
func TestRules(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("needs promtool: make deps installs it")
	}
	repository, err := harness.Repository()
	require.NoError(t, err)
	for _, kind := range []struct{ verb, pattern string }{{"check", "*.rules.yml"}, {"test", "*.test.yml"}} {
		paths, err := filepath.Glob(filepath.Join(repository, "packaging/prometheus", kind.pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		out, err := exec.Command("promtool", append([]string{kind.verb, "rules"}, paths...)...).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}
