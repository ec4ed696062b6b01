// SPDX-License-Identifier: Apache-2.0

// Package config loads health.toml. Each error is one line that names the line of the file.
package config

import (
	"maps"
	"slices"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

// DefaultPath is the path of health.toml.
const DefaultPath = "/etc/gojail/health.toml"

// Config is health.toml with the defaults for absent keys, as it applies to one node.
type Config struct {
	// Maximum duration of one run, including hung checks.
	Total time.Duration `toml:"total"`
	// Directories for state that ends with the boot (Run) and for state that survives it
	// (State). %n is the node's name.
	Run     string `toml:"run"`
	State   string `toml:"state"`
	Syslog  bool   `toml:"syslog"`  // write a line for each change
	Metrics string `toml:"metrics"` // path of a file *.prom in node_exporter's --collector.textfile.directory; "": none
	Slurm   Slurm  `toml:"slurm"`
	// Changes to single checks, by name.
	Check map[string]Rule `toml:"check"`
	// Settings of the command nccl, on the machine that runs it.
	NCCL settings.Settings `toml:"nccl"`
	// Settings of the checks themselves.
	check.Settings
}

// Slurm is [slurm]: how the controller is queried and updated.
type Slurm struct {
	Scontrol string        `toml:"scontrol"` // absolute path
	Conf     string        `toml:"conf"`     // SLURM_CONF; "": Slurm's default
	Timeout  time.Duration `toml:"timeout"`  // of one request
	Drain    bool          `toml:"drain"`    // false: only check and report
	// interval at which the state of an unchanged, faulty node is queried again
	Again time.Duration `toml:"again"`
}

// Rule changes one check; zero values leave the check's own value.
type Rule struct {
	Off      bool           `toml:"off"`
	Severity check.Severity `toml:"severity"`
	Timeout  time.Duration  `toml:"timeout"`
	Bad      int            `toml:"bad"`
	Good     int            `toml:"good"`
}

// Defaults returns the configuration without a file.
func Defaults() *Config {
	return &Config{
		Total: 20 * time.Second,
		Run:   "/run/gojail/health", State: "/var/lib/gojail/health", Syslog: true,
		Slurm:    Slurm{Scontrol: "/usr/bin/scontrol", Timeout: 5 * time.Second, Drain: true, Again: 5 * time.Minute},
		Check:    map[string]Rule{},
		NCCL:     settings.Defaults(),
		Settings: *DefaultSettings(),
	}
}

// checkConfig returns an error for invalid values.
func (c *Config) checkConfig(refuse refusal, checks []string) error {
	for _, err := range []error{
		checkDuration(refuse, c.Total, 2*time.Second, 5*time.Minute, "total"),
		checkAbsolute(refuse, c.Run, "run"),
		checkAbsolute(refuse, c.State, "state"),
		checkAbsolute(refuse, c.Metrics, "metrics"),
		checkAbsolute(refuse, c.Slurm.Scontrol, "slurm", "scontrol"),
		checkAbsolute(refuse, c.Slurm.Conf, "slurm", "conf"),
		checkDuration(refuse, c.Slurm.Timeout, 100*time.Millisecond, c.Total/2, "slurm", "timeout"),
		checkDuration(refuse, c.Slurm.Again, 0, 24*time.Hour, "slurm", "again"),
	} {
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Check)) {
		if err := c.checkRule(refuse, checks, name); err != nil {
			return err
		}
	}
	if err := c.NCCL.Check(settings.Refusal(refuse)); err != nil {
		return err
	}
	return checkSettings(&c.Settings, refuse)
}
