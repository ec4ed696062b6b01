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

// DefaultSettings is what holds without a health.toml.
func DefaultSettings() *check.Settings {
	return &check.Settings{
		Clock:   check.ClockSettings{Warn: 5 * time.Second},
		Jail:    check.JailSettings{Config: contract.DefaultConfig},
		Network: check.NetworkSettings{Config: config.DefaultPath},
		GPU:     check.GPUSettings{Library: "libnvidia-ml.so.1", SMI: "/usr/bin/nvidia-smi", Persistence: "warn", Peermem: "warn"},
	}
}

// checkSettings refuses what cannot be meant.
func checkSettings(s *check.Settings, refuse refusal) error {
	errs := []error{
		within(refuse, s.Clock.Warn, time.Millisecond, check.ClockMost, "clock", "warn"),
		within(refuse, s.Clock.Fail, 0, check.ClockMost, "clock", "fail"),
		absolute(refuse, s.NHC, "nhc"),
		absolute(refuse, s.Jail.Config, "jail", "config"),
		absolute(refuse, s.Jail.State, "jail", "state"),
		absolute(refuse, s.Jail.LibDir, "jail", "libdir"),
		absolute(refuse, s.Network.Config, "network", "config"),
		choice(refuse, s.GPU.Persistence, []string{"warn", "ignore"}, "gpu", "persistence"),
		choice(refuse, s.GPU.MIG, []string{"on", "off", ""}, "gpu", "mig"),
		choice(refuse, s.GPU.Peermem, []string{"warn", "drain", "ignore"}, "gpu", "peermem"),
	}
	if s.Daemons.Munge != "none" {
		errs = append(errs, absolute(refuse, s.Daemons.Munge, "daemons", "munge"))
	}
	if s.GPU.SMI != "none" {
		errs = append(errs, absolute(refuse, s.GPU.SMI, "gpu", "smi"))
	}
	if strings.Contains(s.GPU.Library, "/") { // else the loader's directories, which are root's
		errs = append(errs, absolute(refuse, s.GPU.Library, "gpu", "library"))
	}
	for _, code := range slices.Sorted(maps.Keys(s.XID)) {
		if n, err := strconv.ParseUint(code, 10, 16); err != nil || n == 0 || n > 9999 {
			errs = append(errs, refuse(toml.Key{"xid", code}, "write a number from 1 to 9999"))
		}
		errs = append(errs, choice(refuse, s.XID[code], []string{"drain", "warn", "ignore"}, "xid", code))
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

func choice(refuse refusal, value string, words []string, key ...string) error {
	if !slices.Contains(words, value) {
		return refuse(key, "%.30q: write one of %s", value, strings.Join(words, ", "))
	}
	return nil
}
