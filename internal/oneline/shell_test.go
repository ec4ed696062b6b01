// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "a": "a", "/srv/jails/debian": "/srv/jails/debian", "--gres=gpu:8,nic:1": "--gres=gpu:8,nic:1",
		"a b": "'a b'", "$HOME": "'$HOME'", "it's": `'it'\''s'`, "~": "'~'", "*": "'*'", "a\nb": "'a\nb'", "ä": "'ä'",
	} {
		assert.Equal(t, want, ShellWord(text))
		out, err := exec.Command("sh", "-c", "printf %s "+ShellWord(text)).Output()
		require.NoError(t, err)
		assert.Equal(t, text, string(out))
	}
}
