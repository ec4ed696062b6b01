// SPDX-License-Identifier: Apache-2.0

// Package config reads gojail.toml. It is pure: the result depends on the text of the file alone, not on the node.
package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/trusted"
)

// None stands for "no jail" in the configuration and in --jail.
const None = "none"

// Config is gojail.toml, checked, with %n expanded and defaults filled in.
type Config struct {
	Path      string // the file from which it was read
	Node      string // the value of %n
	Identity  trusted.Identity
	Default   string // name of a jail, or None
	AllowNone bool
	Scratch   string
	Store     string // directory with the versions of jails; "": there is none
	Deadline  time.Duration
	Slurm     Slurm
	Session   Session
	Login     Login
	Jails     map[string]*Jail
}

// Slurm is the [slurm] table: the paths of the node's Slurm.
type Slurm struct {
	Conf      string   // directory of slurm.conf
	Spool     string   // SlurmdSpoolDir
	SpoolBase string   // directory above the first %n of Spool, or Spool itself; an empty tmpfs in each jail
	Munge     string   // munge's socket
	Host      []string // further paths of the node that Slurm needs
	Summary   string   // field of a job's record in slurmdbd that gets a summary when the job ends; "": none
	Cache     string   // directory of the slurm.conf that slurmd fetched; "": slurmd fetched none
}

// Session is the [session] table: what gojail-session does.
type Session struct {
	Configured bool     // whether gojail.toml has the table
	WithoutJob string   // sessionRefuse or sessionNode
	Exempt     []string // groups whose members stay on the node
	Shell      string   // shell of users whose shell in the node's accounts is gojail-session
}

// Login is the [login] table: the jails of sessions on login nodes.
type Login struct {
	Here   bool          // whether this node is a login node
	Rules  []LoginRule   // the first rule that names the user counts; the last one is the key jail, which names nobody
	Linger time.Duration // time for which a user's sandbox stays after the last session
}

// LoginRule is one [[login.rules]] table: the jail of some users.
type LoginRule struct {
	Jail   string   `toml:"jail"`
	Users  []string `toml:"users"` // names or numbers; with Groups: both empty means everybody
	Groups []string `toml:"groups"`
}

// Jail is one [jail.NAME] table.
type Jail struct {
	Name     string
	Root     string
	Versions string // name in the store whose current version is the root; "": the root is a path
	Readonly bool
	// where each job has its own changes to the root, WritableTmpfs or WritableDisk; "": jobs have none
	Writable   string
	WriteSize  int64    // bytes, for WritableTmpfs; 0: the kernel's limit of a tmpfs
	Options    []string // mount options of the root
	Users      []string // names or numbers; with Groups: both empty means everybody
	Groups     []string
	Slurm      bool
	Network    string // label of the rails for steps that name none, or None; "": the default of network.toml
	Tmp        string // TmpDisk or TmpTmpfs
	TmpSize    int64  // bytes; 0: unlimited. With TmpDisk, a project quota of the scratch file system
	ShmSize    int64  // bytes; 0: unlimited
	Data       []string
	Host       []string
	Identity   bool // whether files that identify the machine are the node's
	Local      []string
	Devices    []string
	CDI        []string // names of CDI devices
	Mounts     []Mount
	UserMounts []UserRule
	Isolation  Isolation

	RangeRoots []string `json:"-"` // roots of the jails whose users may be root in them and write there
}

// Values of the key tmp.
const (
	TmpDisk  = "disk"
	TmpTmpfs = "tmpfs"
)

// Values of the key writable.
const (
	WritableTmpfs = "tmpfs"
	WritableDisk  = "disk"
)

// Mount is one [[jail.NAME.mounts]] table, in the terms of the OCI runtime specification.
type Mount struct {
	Destination string   `toml:"destination"`
	Type        string   `toml:"type"`
	Source      string   `toml:"source"`
	Options     []string `toml:"options"`
}

// UserRule is one [[jail.NAME.user_mounts]] table: a permission for --jail-mount.
type UserRule struct {
	Source      string `toml:"source"`      // this path and everything below it
	Destination string `toml:"destination"` // this path and everything below it; "": any that is not reserved
	Readonly    bool   `toml:"readonly"`    // only read-only mounts (:ro)
}

// Jail returns the jail with that name; the error lists the names that exist.
func (c *Config) Jail(name string) (*Jail, error) {
	if j := c.Jails[name]; j != nil {
		return j, nil
	}
	if len(c.Jails) == 0 {
		return nil, fmt.Errorf("jail %q is unknown: %s defines no jail", name, c.Path)
	}
	return nil, fmt.Errorf("jail %q is unknown; this node has: %s", name, strings.Join(c.JailNames(), ", "))
}

// JailNames returns the names of the jails in alphabetical order.
func (c *Config) JailNames() []string { return slices.Sorted(maps.Keys(c.Jails)) }

// IsOpenToAll reports whether all users may use the jail.
func (j *Jail) IsOpenToAll() bool { return len(j.Users) == 0 && len(j.Groups) == 0 }

// StandardConf is the default of conf in [slurm].
const StandardConf = "/etc/slurm"

// StandardSpool is the default of SlurmdSpoolDir (slurm.conf(5)).
const StandardSpool = "/var/spool/slurmd"

// SpoolDir is the value of SlurmdSpoolDir, with %n for the node's name and %h for its host name.
type SpoolDir struct {
	Dir  string
	Host string
	From string // path of the slurm.conf that sets it; "": the default
}
