// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cdi"
)

// contract reads the #define lines of include/gojail.h.
func contract(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../include/gojail.h")
	require.NoError(t, err)
	defines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define (GOJAIL_\w+)[ \t]+(.+?)[ \t]*(/\*.*)?$`).FindAllStringSubmatch(string(text), -1) {
		defines[m[1]] = m[2]
	}
	return defines
}

func TestContractConstants(t *testing.T) {
	defines := contract(t)
	for name, value := range map[string]string{
		"GOJAIL_VERSION":         fmt.Sprint(ContractVersion),
		"GOJAIL_PROJECT_OF_JOBS": fmt.Sprintf("%#x", projectOfJobs),
		"GOJAIL_PROJECT_OF_RUNS": fmt.Sprintf("%#x", projectOfRuns),
		"GOJAIL_NAME_MAX":        fmt.Sprint(nameMax),
		"GOJAIL_PATH_MAX":        fmt.Sprint(pathMax),
		"GOJAIL_TEXT_MAX":        fmt.Sprint(textMax),
		"GOJAIL_TREES_MAX":       fmt.Sprint(treesMax),
		"GOJAIL_KEY_LEN":         fmt.Sprint(len((&Config{}).Key(&Jail{}))),
		"GOJAIL_SITE_MAX":        "(4 << 20)",
		"GOJAIL_DEFAULT_CONFIG":  fmt.Sprintf("%q", DefaultConfig),
		"GOJAIL_DEFAULT_STATE":   fmt.Sprintf("%q", DefaultState),
		"GOJAIL_REPLY_FD":        fmt.Sprint(ReplyFD),
		"GOJAIL_RETRY_PAUSE":     fmt.Sprint(retryPause.Seconds()),
		"GOJAIL_END_MS":          fmt.Sprint(endMost.Milliseconds()),
		"GOJAIL_ACCOUNTS":        fmt.Sprintf("%q", strings.TrimPrefix(accountsDir, "/run/")),
		"GOJAIL_OPTIONAL":        fmt.Sprintf("%q", strings.TrimPrefix(optionalDir, "/run/")),
		"GOJAIL_RUN_OPTIONS":     fmt.Sprintf("%q", runOptions),
		"GOJAIL_GPU_NODES_MAX":   fmt.Sprint(2 * gpusMax),
	} {
		assert.Equal(t, defines[name], value, name)
	}
	assert.Equal(t, 4<<20, siteMax)
}

// TestContractSiteLines holds the words of the site file, as the header lists
// them, against what Site writes.
func TestContractSiteLines(t *testing.T) {
	text, err := os.ReadFile("../include/gojail.h")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "site is text")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "*/")
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^ \*   ([a-z-]+)\b`).FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	c, err := parseConfig(wholeConfig, "n1")
	require.NoError(t, err)
	delete(c.Jails, "bare")
	c.GPUs = [][]string{{"/dev/nvidia0"}}
	c.Jails["debian"].brought = &brought{edits: cdi.Edits{Env: []string{"A=b"}, LibraryDirs: []string{cdiDir + "/lib"}}}
	site, err := c.Site(someAccounts(), map[string]string{"debian": "0123456789abcdef"}, nil, fixedTime)
	require.NoError(t, err)
	var have []string
	for line := range strings.Lines(site) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if len(have) == 0 || have[len(have)-1] != word {
			have = append(have, word)
		}
	}
	assert.Equal(t, want, have)
}
