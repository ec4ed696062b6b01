// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/seccomp"
)

// TestTmpSizeOfADiskCannotBeEscaped: a jail without a filter of its own gets one then, which refuses just that.
func TestTmpSizeOfADiskCannotBeEscaped(t *testing.T) {
	filter := func(lines string) []byte {
		c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\n"+lines, "n1")
		require.NoError(t, err)
		program, err := CompileFilter(c.Jails["a"])
		require.NoError(t, err)
		return program
	}
	assert.Nil(t, filter(`seccomp = "none"`))
	assert.Nil(t, filter("seccomp = \"none\"\ntmp = \"tmpfs\"\ntmp_size = \"1G\""))
	assert.NotNil(t, filter("seccomp = \"none\"\ntmp_size = \"1G\""))
	assert.Len(t, filter("seccomp = \"none\"\ntmp_size = \"1G\""), lengthOfAllowAll(t), "it does not kill 32-bit programs")
	assert.Greater(t, len(filter(`tmp_size = "1G"`)), len(filter("")))
	assert.Nil(t, filter("seccomp = \"none\"\n[jail.b]\nroot = \"/b\""))
	assert.NotNil(t, filter("seccomp = \"none\"\n[jail.b]\nroot = \"/b\"\ntmp_size = \"1G\""), "that of another jail is not to be filled either")
}

// lengthOfAllowAll returns the length of a program that refuses just what such a jail does, for every ABI of this machine.
func lengthOfAllowAll(t *testing.T) int {
	t.Helper()
	p := seccomp.AllowAll()
	p.Syscalls = append(refuseTyping(), refuseQuotaEscapes()...)
	program, err := seccomp.Compile(p)
	require.NoError(t, err)
	return len(program)
}
