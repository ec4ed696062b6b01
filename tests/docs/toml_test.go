// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	jails "github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/healthcheck/checks"
	health "github.com/gojail/gojail/healthcheck/config"
	networks "github.com/gojail/gojail/netsetup/config"
)

// What reads each configuration file.
var parsers = map[string]func(text string) error{
	"gojail.toml":  func(text string) error { _, err := jails.ParseConfig(text, "n1"); return err },
	"network.toml": func(text string) error { _, err := networks.Parse(text, "n1"); return err },
	"health.toml":  func(text string) error { _, err := health.Parse(text, "n1", checks.Names()); return err },
}

// parse is nil if the text is a part of one of the configuration files, complete enough to be loaded.
func parse(text string) error {
	var errs []any
	for file, read := range parsers {
		err := read(text)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Sprintf("\nas %s: %v", file, err))
	}
	return fmt.Errorf("none of the configuration files: %s", fmt.Sprint(errs...))
}

func TestTOMLBlocksCanBeLoaded(t *testing.T) {
	assert.NoError(t, parse("[check.swap]\noff = true\n"))
	assert.ErrorContains(t, parse("[check.swap]\non = true\n"), "none of the configuration files")
	count := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language == "toml" {
				count++
				assert.NoError(t, parse(b.text), "%s:%d", p.path, b.number)
			}
		}
	}
	assert.NotZero(t, count)
}

var (
	assigned = regexp.MustCompile(`^([a-z_]+) = \S`)
	exampled = regexp.MustCompile(`(?m)^(?:#: )?([a-z_]+) += `)
)

// TestKeysExist: a key that a page names as `key = value` is in one of the example files, which explain
// every key.
func TestKeysExist(t *testing.T) {
	known := map[string]bool{}
	for file := range parsers {
		text, err := os.ReadFile(filepath.Join(repository, file+".example"))
		require.NoError(t, err)
		for _, m := range exampled.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	require.True(t, known["allow_none"] && known["per_node"] && known["expect"] == false)
	for _, p := range pages(t) {
		for _, l := range p.code {
			if m := assigned.FindStringSubmatch(l.text); m != nil {
				assert.True(t, known[m[1]], "%s:%d: no example file has a key %q", p.path, l.number, m[1])
			}
		}
	}
}
