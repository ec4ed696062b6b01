// SPDX-License-Identifier: Apache-2.0

package gojail

import "time"

// Limits of the C contract (include/gojail.h); contract_test.go compares them.
const (
	ContractVersion = 10
	nameMax         = 64
	pathMax         = 1024
	textMax         = 1024
	treesMax        = 32
	siteMax         = 4 << 20
)

// Defaults of the C contract.
const (
	DefaultConfig = "/etc/gojail/gojail.toml"
	DefaultState  = "/run/gojail"
)

// ReplyFD is where gojail-launcher writes its answer.
const ReplyFD = 3

// KeyLen is the length of a template's key in the site file and in records, in bytes.
const KeyLen = 16

// gpusMax is the number of GPUs of a node.
const gpusMax = 64

// Times of the end of a job.
const (
	retryPause = 10 * time.Second // between two tries to end the jobs whose end failed
	endMost    = 3 * time.Second  // that the end of one job takes, without networks
)

// cacheInJail is where a jail shows the slurm.conf that slurmd fetched; also in spank/.
const cacheInJail = "/run/gojail/slurm"

// optionalDir is where a template names what root of a range may install; GOJAIL_OPTIONAL in include/gojail.h.
const optionalDir = "/run/gojail/optional"

// accountsDir is where a template has the node's; GOJAIL_ACCOUNTS in include/gojail.h.
const accountsDir = "/run/gojail/node"

// runOptions are those of each sandbox's /run, as include/gojail.h has them.
const runOptions = "mode=755,size=64m,nr_inodes=16k"

// cdiDir is where a jail has the libraries and programs that its CDI devices bring:
// in its /run, which is the node's own. The path is the same on every node and with
// every driver, so that the ld.so.cache of a jail may name it.
const cdiDir = "/run/gojail/cdi"

// Projects of the quota on a job's /tmp (include/gojail.h).
const (
	projectOfJobs = 0x80000000
	projectOfRuns = 0x40000000
)
