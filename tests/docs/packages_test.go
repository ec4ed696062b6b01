// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// origins are the programs that the commands of the pages begin with, and the Debian package that each comes from; "" if every Debian has it
// (Essential, or priority required or important), or a package of gojail's, or Slurm's.
var origins = map[string]string{
	"apt": "", "cd": "", ":": "", "chmod": "", "install": "", "ln": "", "mv": "", "rm": "", "tar": "", "touch": "", "grep": "", "su": "", "runuser": "",
	"usermod": "", "getent": "", "modprobe": "", "systemctl": "", "loginctl": "",
	"srun": "", "sbatch": "", "scontrol": "", "sinfo": "", "gojail": "", "gojail-healthcheck": "", "gojail-exporter": "",

	"make": "make", "man": "man-db", "mmdebstrap": "mmdebstrap", "podman": "podman", "mksquashfs": "squashfs-tools", "mkfs.erofs": "erofs-utils",
	"sss_cache": "sssd", "sshd": "sshd", "sudo": "sudo", "nvidia-ctk": "nvidia-container-toolkit",
}

// pagesOfADay are pages in the order in which an administrator comes to them.
var pagesOfADay = []string{"README.md", "docs/install.md", "docs/operations.md", "docs/sessions.md", "docs/storage.md"}

// nameOf matches a package's name as a word of its own, not of a command line's options or paths.
func nameOf(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s(,])` + regexp.QuoteMeta(name) + `(?:[\s),.:;]|$)`)
}

// listPrograms returns the first words of the commands in a line.
func listPrograms(line string) (names []string) {
	for _, one := range regexp.MustCompile(`\s*(?:\||&&|;)\s*`).Split(strings.TrimPrefix(strings.TrimSpace(line), "$ "), -1) {
		if fields := strings.Fields(one); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			names = append(names, fields[0])
		}
	}
	return names
}

// isCommand reports whether a block without a language is commands: the others are lines of files and what programs print.
func isCommand(first string) bool {
	return !regexp.MustCompile(`^\[|=|^(?:required|AcceptEnv|OK|A job)\b`).MatchString(strings.SplitN(strings.TrimPrefix(strings.TrimSpace(first), "$ "), " --", 2)[0]) ||
		strings.HasPrefix(strings.TrimSpace(first), "make ")
}

// TestProgramsComeFromNamedPackages requires that on a Debian with nothing else each program of a page's command comes from a package that this
// page, or one before it, has named before the command.
func TestProgramsComeFromNamedPackages(t *testing.T) {
	before, seen := "", 0
	span := regexp.MustCompile("`([^`]+)`")
	requireNamed := func(page, line, name string, mustKnow bool) {
		origin, known := origins[name]
		if mustKnow {
			assert.True(t, known, "%s: %q: no row of origins says where %s comes from", page, line, name)
		}
		if known {
			seen++
		}
		if origin != "" {
			assert.True(t, nameOf(origin).MatchString(before), "%s: %q: nothing before it says to install %s", page, line, origin)
		}
	}
	for _, page := range pagesOfADay {
		text, err := os.ReadFile("../../" + page)
		require.NoError(t, err)
		inBlock, isCommands, isFirst := false, false, false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			switch fence, found := strings.CutPrefix(strings.TrimSpace(line), "```"); {
			case found:
				inBlock, isCommands, isFirst = !inBlock, fence == "" || fence == "sh", true
				continue
			case inBlock:
				if isFirst {
					isCommands, isFirst = isCommands && isCommand(line), false
				}
				if !isCommands {
					continue
				}
				if strings.HasPrefix(strings.TrimSpace(line), "apt install ") {
					before += " " + line + "\n"
				}
				for _, name := range listPrograms(line) {
					requireNamed(page, line, name, true)
				}
				continue
			}
			before += " " + span.ReplaceAllString(line, "") + "\n" // a command does not name its package
			for _, command := range span.FindAllStringSubmatch(line, -1) {
				if strings.HasPrefix(command[1], "apt install ") {
					before += " " + command[1] + "\n"
				}
				if fields := strings.Fields(command[1]); len(fields) > 1 {
					requireNamed(page, line, fields[0], false)
				}
			}
		}
	}
	assert.Greater(t, seen, 50, "the pages have commands")
}
