// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/internal/oneline"
)

// TestRemediesHaveTheFlags: a path of the command line may have characters that a shell, or a template, takes for something else.
func TestRemediesHaveTheFlags(t *testing.T) {
	flags := oneline.ShellWord("--config=/srv/$1 x/gojail.toml") + " "
	assert.Equal(t, "run: gojail '--config=/srv/$1 x/gojail.toml' sweep, which retries; then gojail '--config=/srv/$1 x/gojail.toml' vf lift 1",
		addFlags("run: gojail sweep, which retries; then gojail vf lift 1", flags))
	assert.Equal(t, "install gojail again; see: gojail check", addFlags("install gojail again; see: gojail check", flags))
}
