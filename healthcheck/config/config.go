// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

// DefaultPath is where health.toml lies.
const DefaultPath = "/etc/gojail/health.toml"

// Config is health.toml with the standard for what it leaves out, as one node sees it.
type Config struct {
	// Total is the longest that one run takes, whatever hangs.
	Total time.Duration `toml:"total"`
	// Run is for what the next boot must not see, State for what it must. %n is the node's name.
	Run     string `toml:"run"`
	State   string `toml:"state"`
	Syslog  bool   `toml:"syslog"`  // a line for each change
	Metrics string `toml:"metrics"` // file below node_exporter's --collector.textfile.directory, *.prom; empty: none
	Slurm   Slurm  `toml:"slurm"`
	// Check changes single checks, by name.
	Check map[string]Rule `toml:"check"`
	// NCCL is for the command nccl, on the machine that runs it.
	NCCL settings.Settings `toml:"nccl"`
	// Settings is what the checks themselves need.
	check.Settings
}

// Slurm is how the node's controller is asked and told.
type Slurm struct {
	Scontrol string        `toml:"scontrol"` // absolute path
	Conf     string        `toml:"conf"`     // SLURM_CONF; empty: Slurm's own standard
	Timeout  time.Duration `toml:"timeout"`  // of one question
	Drain    bool          `toml:"drain"`    // false: look and tell only
	Again    time.Duration `toml:"again"`    // how often an unchanged, sick node's state is asked for
}

// Rule changes one check; what is zero stays.
type Rule struct {
	Off      bool           `toml:"off"`
	Severity check.Severity `toml:"severity"`
	Timeout  time.Duration  `toml:"timeout"`
	Bad      int            `toml:"bad"`
	Good     int            `toml:"good"`
}

// Defaults is the configuration without a file.
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

// check refuses what cannot be meant.
func (c *Config) check(refuse refusal, checks []string) error {
	for _, err := range []error{
		within(refuse, c.Total, 2*time.Second, 5*time.Minute, "total"),
		absolute(refuse, c.Run, "run"),
		absolute(refuse, c.State, "state"),
		absolute(refuse, c.Metrics, "metrics"),
		absolute(refuse, c.Slurm.Scontrol, "slurm", "scontrol"),
		absolute(refuse, c.Slurm.Conf, "slurm", "conf"),
		within(refuse, c.Slurm.Timeout, 100*time.Millisecond, c.Total/2, "slurm", "timeout"),
		within(refuse, c.Slurm.Again, 0, 24*time.Hour, "slurm", "again"),
	} {
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Check)) {
		if err := c.rule(refuse, checks, name); err != nil {
			return err
		}
	}
	if err := c.NCCL.Check(settings.Refusal(refuse)); err != nil {
		return err
	}
	return checkSettings(&c.Settings, refuse)
}
