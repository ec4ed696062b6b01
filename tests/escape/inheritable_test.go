// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInheritableCapabilities requires that tasks of a closed jail have no inheritable capabilities, which a program of root's gets
// whatever the bounding set is (capabilities(7)). slurmd may have some, for instance from its container.
func TestInheritableCapabilities(t *testing.T) {
	s := sharedSite(t)
	own := []string{"/usr/bin/setpriv", "--inh-caps=+sys_admin"}
	look := []string{"grep", "Cap", "/proc/self/status"}
	require.NoError(t, s.StopSlurmd("n1"))
	t.Cleanup(func() { assert.NoError(t, s.RestartSlurmd("n1")) })
	require.NoError(t, s.StartSlurmd("n1", own...))
	require.True(t, s.WaitIdle(), s.Drained())
	gojail := append(own, "gojail", "--node=n1", "--state=/run/gojail/%n", "run")
	for name, command := range map[string][]string{
		"a task":                 {"srun", "-Q", "-wn1", "--jail=closed"},
		"a task of an open jail": {"srun", "-Q", "-wn1", "--jail=open"},
		"gojail run":             append(append([]string{}, gojail...), "closed", "--"),
		"gojail run -u root":     append(append([]string{}, gojail...), "-u", "root", "closed", "--"),
		"gojail run -u nobody":   append(append([]string{}, gojail...), "-u", "nobody", "closed", "--"),
	} {
		t.Run(name, func(t *testing.T) {
			r := s.Root(append(command, look...)...)
			open := name == "a task of an open jail"
			assert.Equal(t, open, regexp.MustCompile(`CapInh:\t0*200000\n`).MatchString(r.Stdout), r)
			assert.Equal(t, open, regexp.MustCompile(`CapEff:\t[0-9a-f]{10}[2367abef]`).MatchString(r.Stdout), r)
		})
	}
}
