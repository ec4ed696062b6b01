// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/netsetup/config"
)

// DefaultSettings returns the settings without a health.toml.
func DefaultSettings() *check.Settings {
	return &check.Settings{
		Clock:   check.ClockSettings{Warn: 5 * time.Second},
		Jail:    check.JailSettings{Config: contract.DefaultConfig},
		Network: check.NetworkSettings{Config: config.DefaultPath},
		GPU: check.GPUSettings{Library: "libnvidia-ml.so.1", SMI: "/usr/bin/nvidia-smi", Persistence: "warn",
			Peermem: "warn"},
	}
}

// checkSettings returns an error for invalid values.
func checkSettings(s *check.Settings, refuse refusal) error {
	errs := []error{
		checkDuration(refuse, s.Clock.Warn, time.Millisecond, check.ClockMost, "clock", "warn"),
		checkDuration(refuse, s.Clock.Fail, 0, check.ClockMost, "clock", "fail"),
		checkAbsolute(refuse, s.NHC, "nhc"),
		checkAbsolute(refuse, s.Jail.Config, "jail", "config"),
		checkAbsolute(refuse, s.Jail.State, "jail", "state"),
		checkAbsolute(refuse, s.Jail.LibDir, "jail", "libdir"),
		checkAbsolute(refuse, s.Network.Config, "network", "config"),
		checkChoice(refuse, s.GPU.Persistence, []string{"warn", "ignore"}, "gpu", "persistence"),
		checkChoice(refuse, s.GPU.MIG, []string{"on", "off", ""}, "gpu", "mig"),
		checkChoice(refuse, s.GPU.Peermem, []string{"warn", "drain", "ignore"}, "gpu", "peermem"),
	}
	if s.Daemons.Munge != "none" {
		errs = append(errs, checkAbsolute(refuse, s.Daemons.Munge, "daemons", "munge"))
	}
	if s.GPU.SMI != "none" {
		errs = append(errs, checkAbsolute(refuse, s.GPU.SMI, "gpu", "smi"))
	}
	// otherwise the file is found in the loader's directories, which only root can write
	if strings.Contains(s.GPU.Library, "/") {
		errs = append(errs, checkAbsolute(refuse, s.GPU.Library, "gpu", "library"))
	}
	for _, code := range slices.Sorted(maps.Keys(s.XID)) {
		if n, err := strconv.ParseUint(code, 10, 16); err != nil || n == 0 || n > 9999 || code[0] == '0' {
			errs = append(errs, refuse(toml.Key{"xid", code}, "write a number from 1 to 9999"))
		}
		errs = append(errs, checkChoice(refuse, s.XID[code], []string{"drain", "warn", "ignore"}, "xid", code))
	}
	for _, fs := range s.FileSystems {
		if !filepath.IsAbs(fs.Path) {
			errs = append(errs, refuse(toml.Key{"filesystem"}, "path = %.100q: write an absolute path", fs.Path))
		}
		if fs.Full < 0 || fs.Full > 100 {
			errs = append(errs, refuse(toml.Key{"filesystem"}, "full = %v: write percent, from 0 to 100", fs.Full))
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkChoice returns an error for a value outside the list of words.
func checkChoice(refuse refusal, value string, words []string, key ...string) error {
	if !slices.Contains(words, value) {
		return refuse(key, "%.30q: write one of %s", value, strings.Join(words, ", "))
	}
	return nil
}
