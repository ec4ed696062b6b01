// SPDX-License-Identifier: Apache-2.0

// Package contract is the Go side of include/gojail.h: the limits, versions and paths that the C side
// also has.
package contract

import (
	"strings"
	"time"
)

// Limits of the C contract (include/gojail.h); contract_test.go compares them.
const (
	Version  = 18
	NameMax  = 64
	PathMax  = 1024
	TextMax  = 1024
	TreesMax = 32
	SiteMax  = 4 << 20
)

// Defaults of the C contract.
const (
	DefaultConfig = "/etc/gojail/gojail.toml"
	DefaultState  = "/run/gojail"

	DefaultDeadline = 10 * time.Second // of a launch, without a configuration
)

// KeyLen is the length of a template's key in the site file and in records, in bytes.
const KeyLen = 16

// Limits of what C reads in the site file.
const (
	GpusMax      = 64  // of a node
	GPUNodesMax  = 512 // device nodes of those GPUs; an instance of MIG has three
	GPUPathMax   = 64  // bytes of a GPU's device node, with the NUL of C
	LoginNameMax = 128 // bytes of a user or group of [login]
)

// Time limits of the end of a job.
const (
	RetryPause = 10 * time.Second // between two attempts to end jobs whose end failed
	EndMost    = 3 * time.Second  // limit for the end of one job without networks
)

// Sources of the empty tmpfs below mounts of a stage: of the jail's data and the job's own, and of the node's
// directories on data.
const (
	StageData = "gojail-data"
	StageNode = "gojail-node"
)

// NICsUnknown is the word nics of the verb session.
const NICsUnknown = "?"

// Names of files and directories in the state directory (docs/state.md).
const (
	SiteFile        = "site"
	JailsDir        = "jails"
	JobsDir         = "jobs" // also in the scratch directory
	AllocatedDir    = "allocated"
	EndedDir        = "ended"
	LockFile        = "lock"
	ZygoteRecord    = "zygote"
	ZygoteSocket    = "socket"
	SlurmdRecord    = "slurmd"
	TemplateSpec    = "config.json"
	StorageSocket   = "storage.sock"
	IdentityFile    = "identity"
	VersionsFile    = "versions"
	LaunchesDir     = "launches"
	NoJailFile      = ".none" // in LaunchesDir
	GPUsFile        = ".gpus"
	CgroupsFile     = ".cgroups"
	OwnerFile       = ".uid"
	NetRecord       = ".net"
	ScratchLink     = ".scratch"
	NamespaceRecord = ".ns"
	NetEnvFile      = ".net.env"
	NetCountersFile = ".net.counters"
	SpecSuffix      = ".json"
	MountsSuffix    = ".mounts"
	StorageSuffix   = ".storage"
	TriedFile       = ".tried"
	SessionsLock    = ".sessions"
	WatcherLock     = ".watcher"
)

// IsOtherFile reports whether a name in the directory of a job or of a jail is not that of a sandbox's record.
func IsOtherFile(name string) bool {
	return name == LockFile || strings.HasSuffix(name, SpecSuffix) || strings.HasSuffix(name, MountsSuffix) ||
		strings.HasSuffix(name, StorageSuffix)
}

// LoginPrefix begins the name of the sandbox of all sessions of a user on a login node, which has the place of a job
// there. The uid follows.
const LoginPrefix = "login-"

// IsLogin reports whether a job is the sandbox of a user's sessions on a login node.
func IsLogin(job string) bool { return strings.HasPrefix(job, LoginPrefix) }

// TrashDir is a directory in the directory JobsDir of the scratch directory.
const TrashDir = ".trash"

// Prolog is the file name of the newest Prolog that slurm.conf may name (spank/prolog/main.c).
const Prolog = "prolog-1"

// Names in a jail's directory in the store.
const (
	StoreVersions = "versions"
	StoreCurrent  = "current" // a link to the current version
)

// NetworkConfig is a file beside gojail.toml.
const NetworkConfig = "network.toml"

// Names of files in the root of a jail.
const (
	VersionFile = ".gojail.version"
	RootLock    = ".gojail.lock" // one node creates mount targets at a time (flock(2))
)

// Files of the installation.
const (
	Plugin   = "spank_gojail.so"
	Launcher = "gojail-launcher"
	Library  = "libgojail.so"
	Session  = "gojail-session"
)

// SessionConfig is the configuration file of gojail-session.
const SessionConfig = "/etc/gojail/session.conf"

// Names of processes.
const (
	ZygoteName = "gojail-zygote"
	HolderName = "gojail-holder"
)

// CacheLink is the directory of the slurm.conf that slurmd fetched, in the spool directory of a node or a
// jail.
const CacheLink = "conf-cache"

// OwnDir is the directory of gojail's own files in a jail, a file system of the node.
const OwnDir = "/run/gojail"

// CommandInJail is the gojail command for users, in a jail.
const CommandInJail = OwnDir + "/bin/gojail"

// CacheInJail is the directory of the slurm.conf that slurmd fetched, in a jail.
const CacheInJail = OwnDir + "/slurm"

// OptionalDir names, in a template, the files that root of a range may install; GOJAIL_OPTIONAL in
// include/gojail.h.
const OptionalDir = OwnDir + "/optional"

// AccountsDir contains, in a template, the node's account files; GOJAIL_ACCOUNTS in include/gojail.h.
const AccountsDir = OwnDir + "/node"

// CDIDir contains the libraries and programs of a jail's CDI devices. It lies in the jail's /run, a file
// system of the node, and its path is the same on every node and with every driver, so that a jail's
// ld.so.cache may name it.
const CDIDir = OwnDir + "/cdi"

// Projects of the quota on a job's /tmp (include/gojail.h).
const (
	ProjectOfJobs   = 0x80000000
	ProjectOfRuns   = 0x40000000
	ProjectOfLogins = 0x60000000
)

// Counters of launches (struct gojail_launches).
const (
	LaunchReasons = 6 // numbers of GOJAIL_REASON_
	LaunchBounds  = 9 // numbers of TookBounds
)

// TookBounds are the upper bounds of the durations of launches, in microseconds.
var TookBounds = [LaunchBounds]uint64{200, 500, 1000, 2500, 10000, 50000, 250000, 1000000, 5000000}

// FailReasons are the words for GOJAIL_REASON_..., by number.
var FailReasons = [LaunchReasons]string{"configuration", "request", "storage", "sandbox", "step", "task"}

// NameRule describes a valid name, for messages about a name that IsName does not accept.
const NameRule = "a letter or digit, then letters, digits, '.', '_' or '-', at most 64"

// IsName reports whether a name is valid for a node, a jail, a version of a jail or a label of rails. No valid name is
// a path: it begins with no dot and contains no slash.
func IsName(name string) bool {
	if name == "" || len(name) > NameMax {
		return false
	}
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
