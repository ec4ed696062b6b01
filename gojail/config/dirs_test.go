// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDirectoriesOfTheStage compares the table with the list of the launcher, which refuses users' mounts there.
func TestDirectoriesOfTheStage(t *testing.T) {
	text, err := os.ReadFile("../../spank/launcher/job_stage.c")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?s)names\[\] = \{(.*?)\};`).FindSubmatch(text)
	require.NotNil(t, list)
	var names []string
	for _, name := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(list[1], -1) {
		names = append(names, string(name[1]))
	}
	assert.ElementsMatch(t, append([]string{"boot"}, HostDirs...), names)
}

// TestDirectoriesAreNotWritten requires that an append to a list does not write behind the list, where another goroutine may do the same.
func TestDirectoriesAreNotWritten(t *testing.T) {
	for name, list := range map[string][]string{"HostDirs": HostDirs, "SystemDirs": SystemDirs, "closedToUsers": closedToUsers} {
		assert.Len(t, list, cap(list), name)
	}
}

// TestClosedDirectories: what root's programs load or trust, and what is a job's own.
func TestClosedDirectories(t *testing.T) {
	for _, closed := range []string{"/usr", "/etc", "/lib64", "/tmp", "/boot"} {
		assert.Contains(t, closedToUsers, closed)
	}
	for _, open := range []string{"/var", "/opt", "/home", "/snap"} {
		assert.NotContains(t, closedToUsers, open)
	}
}
