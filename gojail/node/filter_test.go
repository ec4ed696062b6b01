// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
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
	assert.Greater(t, len(filter(`tmp_size = "1G"`)), len(filter("")))
	assert.Nil(t, filter("seccomp = \"none\"\n[jail.b]\nroot = \"/b\""))
	assert.NotNil(t, filter("seccomp = \"none\"\n[jail.b]\nroot = \"/b\"\ntmp_size = \"1G\""), "that of another jail is not to be filled either")
}
