// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What asks each shell for its offers after "gojail vf ", in a directory with the completion script and with gojail in PATH.
// Functions that exist at a prompt only are replaced: those of bash-completion, and what zsh shows with.
var questions = map[string]string{
	"bash": `_get_comp_words_by_ref() { cur= prev=vf words=(gojail vf "") cword=2; }; compopt() { :; }; . ./script
		COMP_TYPE=9 COMP_LINE="gojail vf " COMP_POINT=10; __start_gojail; printf "%s\n" "${COMPREPLY[@]}"`,
	"fish": `source ./script; complete --do-complete "gojail vf "`,
	"zsh":  `compdef() { :; }; _describe() { print -l $completions; }; . ./script; words=(gojail vf ""); CURRENT=3; _gojail`,
}

// offered matches the word at the beginning of a line, which its explanation may follow.
var offered = regexp.MustCompile(`(?m)^[^\s:]+`)

func TestCompletions(t *testing.T) {
	programs := buildPrograms(t)
	for shell, ask := range questions {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip("tests/deps.sh installs " + shell)
			}
			dir := t.TempDir()
			script, err := exec.Command(filepath.Join(programs, "gojail"), "completion", shell).Output()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "script"), script, 0o644))
			cmd := exec.Command(shell, "-c", ask)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "LC_ALL=C.UTF-8"}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			words := offered.FindAllString(string(out), -1)
			slices.Sort(words)
			assert.Equal(t, []string{"apply", "lift", "ls"}, words, "%s", out)
		})
	}
}
