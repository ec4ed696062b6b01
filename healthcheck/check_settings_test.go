// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSettings(t *testing.T) {
	refuse := func(key toml.Key, format string, args ...any) error {
		return fmt.Errorf("%s: %s", strings.Join(key, "."), fmt.Sprintf(format, args...))
	}
	require.NoError(t, checkSettings(DefaultSettings(), refuse))
	for want, spoil := range map[string]func(*Settings){
		"xid.79":          func(s *Settings) { s.XID = map[string]string{"79": "explode"} },
		"xid.x":           func(s *Settings) { s.XID = map[string]string{"x": "warn"} },
		"filesystem":      func(s *Settings) { s.FileSystems = []FileSystem{{Path: "home"}} },
		"filesystem: ful": func(s *Settings) { s.FileSystems = []FileSystem{{Path: "/home", Full: 101}} },
		"gpu.library":     func(s *Settings) { s.GPU.Library = "../lib.so" },
		"gpu.smi":         func(s *Settings) { s.GPU.SMI = "nvidia-smi" },
		"gpu.persistence": func(s *Settings) { s.GPU.Persistence = "drain" },
		"clock.warn":      func(s *Settings) { s.Clock.Warn = time.Hour },
		"daemons.munge":   func(s *Settings) { s.Daemons.Munge = "m" },
		"jail.config":     func(s *Settings) { s.Jail.Config = "m" },
	} {
		s := DefaultSettings()
		spoil(s)
		err := checkSettings(s, refuse)
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), err.Error())
	}
}

// What a file says stands alone, though the standard has a file system too.
func TestSettingsOverTheStandard(t *testing.T) {
	s := DefaultSettings()
	_, err := toml.Decode("[[filesystem]]\npath = \"/home\"\n[clock]\nwarn = \"2s\"\n[xid]\n13 = \"drain\"\n", s)
	require.NoError(t, err)
	assert.Equal(t, []FileSystem{{Path: "/home"}}, s.FileSystems)
	assert.Equal(t, ClockSettings{Warn: 2 * time.Second}, s.Clock)
	assert.Equal(t, "drain", s.XID["13"])
}
