// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func isolationOf(t *testing.T, lines string) (Isolation, error) {
	t.Helper()
	c, err := ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\n"+lines, "n1")
	if err != nil {
		return Isolation{}, err
	}
	return c.Jails["a"].Isolation, nil
}

func TestIsolationIsOnByDefault(t *testing.T) {
	i, err := isolationOf(t, "")
	require.NoError(t, err)
	assert.Equal(t, "pid ipc uts cgroup no_new_privs", i.Words())
	assert.Equal(t, uint64(0xa00425fb), i.Bounding(), "what OCI runtimes keep, but mknod")
	assert.Equal(t, SeccompDefault, i.Seccomp)
	assert.Empty(t, i.JailRoot)
}

func TestIsolationCanBeSwitchedOff(t *testing.T) {
	i, err := isolationOf(t, "namespaces = []\nhidepid = false\ncgroups = \"node\"\nno_new_privs = false\ncapabilities = [\"ALL\"]\nseccomp = \"none\"")
	require.NoError(t, err)
	assert.Equal(t, "-", i.Words())
	assert.Equal(t, ^uint64(0), i.Bounding())
	assert.Equal(t, None, i.Seccomp)
	i, err = isolationOf(t, `namespaces = ["uts", "pid"]`)
	require.NoError(t, err)
	assert.Equal(t, "pid uts cgroup no_new_privs", i.Words(), "always in one order")
	i, err = isolationOf(t, `capabilities = []`)
	require.NoError(t, err)
	assert.Zero(t, i.Bounding())
}

func TestIsolationRefusals(t *testing.T) {
	for lines, want := range map[string]string{
		`namespaces = ["user"]`:                         `line 4: jail.a.namespaces: unknown value "user"; known: pid ipc uts`,
		`namespaces = ["pid", "pid"]`:                   `line 4: jail.a.namespaces: duplicate "pid"`,
		`capabilities = ["CAP_ROOT"]`:                   `unknown value "CAP_ROOT"`,
		`capabilities = ["ALL", "CAP_KILL"]`:            `write it alone`,
		`seccomp = "strict"`:                            `line 4: jail.a.seccomp: write "default", "containers", "none", or the path of a profile`,
		"jail_root = [\"range\"]\nno_new_privs = false": `line 4: jail.a.jail_root: "range" requires no_new_privs = true and "nosuid"`,
		"jail_root = [\"range\"]\noptions = []":         `"range" requires no_new_privs`,
		`abstract_sockets = "job"`:                      `line 4: jail.a.abstract_sockets: unknown value "job"; known: node step`,
		`cgroups = "none"`:                              `line 4: jail.a.cgroups: unknown value "none"; known: job node`,
		`jail_root = ["all"]`:                           `line 4: jail.a.jail_root: unknown value "all"; known: self range`,
	} {
		_, err := isolationOf(t, lines)
		assert.ErrorContains(t, err, want, lines)
	}
}

// TestCapabilityNumbers holds the list against the kernel's header.
func TestCapabilityNumbers(t *testing.T) {
	text, err := os.ReadFile("/usr/include/linux/capability.h")
	if err != nil {
		t.Skipf("the kernel's headers are not installed: %v", err)
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^#define (CAP_[A-Z_]+)\s+(\d+)$`).FindAllStringSubmatch(string(text), -1) {
		number, _ := strconv.Atoi(m[2])
		require.Less(t, number, len(capabilityNames), m[1])
		assert.Equal(t, m[1], capabilityNames[number])
		found++
	}
	assert.Equal(t, len(capabilityNames), found)
}
