// SPDX-License-Identifier: Apache-2.0

package contract

import "time"

// Limits of the C contract (include/gojail.h); contract_test.go compares them.
const (
	Version  = 11
	NameMax  = 64
	PathMax  = 1024
	textMax  = 1024
	TreesMax = 32
	SiteMax  = 4 << 20
)

// Defaults of the C contract.
const (
	DefaultConfig = "/etc/gojail/gojail.toml"
	DefaultState  = "/run/gojail"

	DefaultDeadline = 10 * time.Second // of a launch, where no configuration tells
)

// replyFD is where gojail-launcher writes its answer.
const replyFD = 3

// KeyLen is the length of a template's key in the site file and in records, in bytes.
const KeyLen = 16

// GpusMax is the number of GPUs of a node.
const GpusMax = 64

// Times of the end of a job.
const (
	RetryPause = 10 * time.Second // between two tries to end the jobs whose end failed
	EndMost    = 3 * time.Second  // that the end of one job takes, without networks
)

// Names of files and directories in the state directory (docs/state.md).
const (
	SiteFile        = "site"
	JailsDir        = "jails"
	JobsDir         = "jobs" // also in the scratch directory
	EndedDir        = "ended"
	LockFile        = "lock"
	ZygoteRecord    = "zygote"
	TemplateSpec    = "config.json"
	ScratchLink     = ".scratch"
	NamespaceRecord = ".ns"
	NetEnvFile      = ".net.env"
	SpecSuffix      = ".json"
	MountsSuffix    = ".mounts"
	TriedFile       = ".tried"
)

// TrashDir is in the directory JobsDir of the scratch directory.
const TrashDir = ".trash"

// NetworkConfig is beside gojail.toml.
const NetworkConfig = "network.toml"

// Files of the installation.
const (
	Launcher = "gojail-launcher"
	Library  = "libgojail.so"
)

// Names of processes.
const (
	ZygoteName = "gojail-zygote"
	HolderName = "gojail-holder"
)

// CacheLink is in a node's spool directory, and in that of a jail: the slurm.conf that slurmd fetched.
const CacheLink = "conf-cache"

// CacheInJail is where a jail shows the slurm.conf that slurmd fetched.
const CacheInJail = "/run/gojail/slurm"

// OptionalDir is where a template names what root of a range may install; GOJAIL_OPTIONAL in include/gojail.h.
const OptionalDir = "/run/gojail/optional"

// AccountsDir is where a template has the node's; GOJAIL_ACCOUNTS in include/gojail.h.
const AccountsDir = "/run/gojail/node"

// CDIDir is where a jail has the libraries and programs that its CDI devices bring:
// in its /run, which is the node's own. The path is the same on every node and with
// every driver, so that the ld.so.cache of a jail may name it.
const CDIDir = "/run/gojail/cdi"

// Projects of the quota on a job's /tmp (include/gojail.h).
const (
	ProjectOfJobs = 0x80000000
	ProjectOfRuns = 0x40000000
)
