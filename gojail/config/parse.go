// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/tomlfile"
)

// file is gojail.toml as written; nil means that the key is absent.
type file struct {
	Default   *string             `toml:"default"`
	AllowNone bool                `toml:"allow_none"`
	Scratch   *string             `toml:"scratch"`
	Store     *string             `toml:"store"`
	Deadline  *string             `toml:"deadline"`
	Slurm     fileSlurm           `toml:"slurm"`
	Session   *fileSession        `toml:"session"`
	Login     *fileLogin          `toml:"login"`
	Jail      map[string]fileJail `toml:"jail"`
}

type fileSlurm struct {
	Conf  *string  `toml:"conf"`
	Spool *string  `toml:"spool"`
	Munge *string  `toml:"munge"`
	Host  []string `toml:"host"`

	JobSummary *string `toml:"job_summary"`
}

type fileSession struct {
	WithoutJob *string  `toml:"without_job"`
	Exempt     []string `toml:"exempt"`
	Shell      *string  `toml:"shell"`
}

type fileLogin struct {
	Jail   *string     `toml:"jail"`
	Nodes  []string    `toml:"nodes"`
	Linger *string     `toml:"linger"`
	Rules  []LoginRule `toml:"rules"`
}

type fileJail struct {
	Root       *string    `toml:"root"`
	Readonly   bool       `toml:"readonly"`
	Writable   *string    `toml:"writable"`
	WriteSize  *string    `toml:"writable_size"`
	Options    []string   `toml:"options"`
	Users      []string   `toml:"users"`
	Groups     []string   `toml:"groups"`
	Slurm      *bool      `toml:"slurm"`
	Network    *string    `toml:"network"`
	Tmp        *string    `toml:"tmp"`
	TmpSize    *string    `toml:"tmp_size"`
	ShmSize    *string    `toml:"shm_size"`
	Data       []string   `toml:"data"`
	Host       []string   `toml:"host"`
	Identity   *bool      `toml:"identity"`
	Local      []string   `toml:"local"`
	Devices    []string   `toml:"devices"`
	CDI        []string   `toml:"cdi"`
	Mounts     []Mount    `toml:"mounts"`
	UserMounts []UserRule `toml:"user_mounts"`

	Namespaces   []string `toml:"namespaces"`
	HidePID      *bool    `toml:"hidepid"`
	Cgroups      *string  `toml:"cgroups"`
	Abstract     *string  `toml:"abstract_sockets"`
	NoNewPrivs   *bool    `toml:"no_new_privs"`
	Capabilities []string `toml:"capabilities"`
	Seccomp      *string  `toml:"seccomp"`
	JailRoot     []string `toml:"jail_root"`
}

// source is the decoded text, with the line of each key.
type source struct {
	*tomlfile.Source
	spoolDir func(conf string) SpoolDir // reads SlurmdSpoolDir from the slurm.conf in the directory conf
}

// ParseConfig parses gojail.toml from a text without reading anything else: SlurmdSpoolDir has the
// default of slurm.conf(5).
func ParseConfig(text, node string) (*Config, error) {
	return ParseConfigOn(text, node, func(string) SpoolDir { return SpoolDir{Dir: StandardSpool} })
}

// ParseConfigOn parses gojail.toml from a text, with SlurmdSpoolDir from the function spool.
func ParseConfigOn(text, node string, spool func(conf string) SpoolDir) (*Config, error) {
	c, err := decodeConfig(text, node, spool)
	if err != nil {
		return nil, makePrintable(err) // the error may quote the file's text
	}
	return c, nil
}

// makePrintable escapes control characters in the messages of an error.
func makePrintable(err error) error {
	var all tomlfile.Mistakes
	if !errors.As(err, &all) {
		return errors.New(oneline.Printable(err.Error()))
	}
	var errs []error
	for _, mistake := range all {
		errs = append(errs, errors.New(oneline.Printable(mistake.Error())))
	}
	return tomlfile.Join(errs...)
}

func decodeConfig(text, node string, spool func(conf string) SpoolDir) (*Config, error) {
	var f file
	isJailName := func(key toml.Key) bool { return len(key) == 2 && key[0] == "jail" }
	decoded, err := tomlfile.Decode(text, &f, isJailName)
	if err != nil {
		return nil, err
	}
	s := &source{decoded, spool}
	return s.buildConfig(&f, node)
}

// refuse returns the error for one key: "line 7: jail.debian.root: must be ...".
func (s *source) refuse(key toml.Key, format string, args ...any) error {
	return s.Refuse(key, format, args...)
}
