// SPDX-License-Identifier: Apache-2.0

// Package config reads gojail.toml. It is pure: what it says depends on the file alone, never on the node.
package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/trusted"
)

// Version of gojail.
const Version = "0.1.0"

// None is the name that stands for "no jail" in the configuration and in --jail.
const None = "none"

// Config is gojail.toml, checked: %n is expanded, defaults are filled in.
type Config struct {
	Path      string // the file it was read from
	Node      string // what %n stands for
	Identity  trusted.Identity
	Default   string // a jail's name, or None
	AllowNone bool
	Scratch   string
	Deadline  time.Duration
	Slurm     Slurm
	Networks  Networks
	GPUs      [][]string // device nodes by the index that Slurm allocates; nil: it gives none
	Jails     map[string]*Jail

	LookForCDI func() // finds out what CDI devices bring, once
}

// Networks is what the site file has of network.toml, which this package does not
// read: the caller of WriteSite fills it in.
type Networks struct {
	Identity *trusted.Identity // nil: there is no network.toml
	Default  string            // its key default
}

// Slurm is the [slurm] table: where the node's Slurm keeps its things.
type Slurm struct {
	Conf      string   // directory of slurm.conf
	Spool     string   // SlurmdSpoolDir
	SpoolBase string   // directory above the first %n of Spool, or Spool: an empty tmpfs in each jail
	Munge     string   // munge's socket
	Host      []string // further host paths that Slurm needs
	Cache     string   // directory of the copy of slurm.conf that slurmd fetched; "": there is none
}

// Jail is one [jail.NAME] table.
type Jail struct {
	Name       string
	Root       string
	Readonly   bool
	Options    []string // of the root mount
	Users      []string // names or numbers; with Groups: both empty means everybody
	Groups     []string
	Slurm      bool
	Network    string // label of the rails of a step that names none, or None; "": as network.toml says
	Tmp        string // TmpDisk or TmpTmpfs
	TmpSize    int64  // bytes; 0: no limit of our own. With TmpDisk a project quota of the scratch file system
	ShmSize    int64  // bytes; 0: no limit of our own
	Data       []string
	Host       []string
	Local      []string
	Devices    []string
	CDI        []string // devices that CDI files describe
	Mounts     []Mount
	UserMounts []UserRule
	Isolation  Isolation

	CDIDevices *CDIDevices // by the devices of CDI; nil: there are none
}

// Values of the key tmp.
const (
	TmpDisk  = "disk"
	TmpTmpfs = "tmpfs"
)

// Mount is one [[jail.NAME.mounts]] table, in the words of the OCI runtime-spec.
type Mount struct {
	Destination string   `toml:"destination"`
	Type        string   `toml:"type"`
	Source      string   `toml:"source"`
	Options     []string `toml:"options"`
}

// UserRule is one [[jail.NAME.user_mounts]] table: what --jail-mount may bind.
type UserRule struct {
	Source      string `toml:"source"`      // this path and all below it
	Destination string `toml:"destination"` // only there and below; empty: anywhere that is not reserved
	Readonly    bool   `toml:"readonly"`    // only :ro
}

// Jail finds a jail by name; the error lists the names there are.
func (c *Config) Jail(name string) (*Jail, error) {
	if j := c.Jails[name]; j != nil {
		return j, nil
	}
	if len(c.Jails) == 0 {
		return nil, fmt.Errorf("jail %q is unknown: %s defines no jail", name, c.Path)
	}
	return nil, fmt.Errorf("jail %q is unknown; this node has: %s", name, strings.Join(c.JailNames(), ", "))
}

// JailNames lists the jails in alphabetical order.
func (c *Config) JailNames() []string { return slices.Sorted(maps.Keys(c.Jails)) }

// Everybody tells whether the jail is open to all users.
func (j *Jail) Everybody() bool { return len(j.Users) == 0 && len(j.Groups) == 0 }
