// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
)

func TestSettings(t *testing.T) {
	refuse := func(key toml.Key, format string, args ...any) error {
		return fmt.Errorf("%s: %s", strings.Join(key, "."), fmt.Sprintf(format, args...))
	}
	require.NoError(t, checkSettings(DefaultSettings(), refuse))
	for want, spoil := range map[string]func(*check.Settings){
		"xid.79":          func(s *check.Settings) { s.XID = map[string]string{"79": "explode"} },
		"xid.094":         func(s *check.Settings) { s.XID = map[string]string{"094": "drain"} },
		"xid.x":           func(s *check.Settings) { s.XID = map[string]string{"x": "warn"} },
		"filesystem":      func(s *check.Settings) { s.FileSystems = []check.FileSystem{{Path: "home"}} },
		"filesystem: ful": func(s *check.Settings) { s.FileSystems = []check.FileSystem{{Path: "/home", Full: 101}} },
		"gpu.library":     func(s *check.Settings) { s.GPU.Library = "../lib.so" },
		"gpu.smi":         func(s *check.Settings) { s.GPU.SMI = "nvidia-smi" },
		"gpu.persistence": func(s *check.Settings) { s.GPU.Persistence = "drain" },
		"clock.warn":      func(s *check.Settings) { s.Clock.Warn = time.Hour },
		"daemons.munge":   func(s *check.Settings) { s.Daemons.Munge = "m" },
		"jail.config":     func(s *check.Settings) { s.Jail.Config = "m" },
	} {
		s := DefaultSettings()
		spoil(s)
		err := checkSettings(s, refuse)
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), err.Error())
	}
}

// The file's [[filesystem]] entries replace those of the defaults.
func TestSettingsOverTheStandard(t *testing.T) {
	s := DefaultSettings()
	_, err := toml.Decode("[[filesystem]]\npath = \"/home\"\n[clock]\nwarn = \"2s\"\n[xid]\n13 = \"drain\"\n", s)
	require.NoError(t, err)
	assert.Equal(t, []check.FileSystem{{Path: "/home"}}, s.FileSystems)
	assert.Equal(t, check.ClockSettings{Warn: 2 * time.Second}, s.Clock)
	assert.Equal(t, "drain", s.XID["13"])
}
