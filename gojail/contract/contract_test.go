// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contract reads the #define lines of include/gojail.h.
func contract(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../include/gojail.h")
	require.NoError(t, err)
	defines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define (GOJAIL_\w+)[ \t]+(.+?)[ \t]*(/\*.*)?$`).FindAllStringSubmatch(string(text), -1) {
		defines[m[1]] = m[2]
	}
	return defines
}

func TestContractConstants(t *testing.T) {
	defines := contract(t)
	for name, value := range map[string]string{
		"GOJAIL_VERSION":             fmt.Sprint(Version),
		"GOJAIL_PROJECT_OF_JOBS":     fmt.Sprintf("%#x", ProjectOfJobs),
		"GOJAIL_PROJECT_OF_RUNS":     fmt.Sprintf("%#x", ProjectOfRuns),
		"GOJAIL_PROJECT_OF_LOGINS":   fmt.Sprintf("%#x", ProjectOfLogins),
		"GOJAIL_NAME_MAX":            fmt.Sprint(NameMax),
		"GOJAIL_PATH_MAX":            fmt.Sprint(PathMax),
		"GOJAIL_TEXT_MAX":            fmt.Sprint(TextMax),
		"GOJAIL_TREES_MAX":           fmt.Sprint(TreesMax),
		"GOJAIL_KEY_LEN":             fmt.Sprint(KeyLen),
		"GOJAIL_SITE_MAX":            "(4 << 20)",
		"GOJAIL_DEFAULT_CONFIG":      fmt.Sprintf("%q", DefaultConfig),
		"GOJAIL_DEFAULT_STATE":       fmt.Sprintf("%q", DefaultState),
		"GOJAIL_DEFAULT_DEADLINE_MS": fmt.Sprint(DefaultDeadline.Milliseconds()),
		"GOJAIL_REPLY_FD":            "3", // of C alone
		"GOJAIL_RETRY_PAUSE":         fmt.Sprint(RetryPause.Seconds()),
		"GOJAIL_END_MS":              fmt.Sprint(EndMost.Milliseconds()),
		"GOJAIL_ACCOUNTS":            fmt.Sprintf("%q", strings.TrimPrefix(AccountsDir, "/run/")),
		"GOJAIL_OPTIONAL":            fmt.Sprintf("%q", strings.TrimPrefix(OptionalDir, "/run/")),
		"GOJAIL_GPU_NODES_MAX":       fmt.Sprint(GPUNodesMax),
		"GOJAIL_STAGE_DATA":          fmt.Sprintf("%q", StageData),
		"GOJAIL_STAGE_NODE":          fmt.Sprintf("%q", StageNode),
		"GOJAIL_SLURMD":              fmt.Sprintf("%q", SlurmdRecord),
		"GOJAIL_SITE":                fmt.Sprintf("%q", SiteFile),
		"GOJAIL_JAILS":               fmt.Sprintf("%q", JailsDir),
		"GOJAIL_JOBS":                fmt.Sprintf("%q", JobsDir),
		"GOJAIL_NICS_UNKNOWN":        fmt.Sprintf("%q", NICsUnknown),
		"GOJAIL_ALLOCATED":           fmt.Sprintf("%q", AllocatedDir),
		"GOJAIL_ENDED":               fmt.Sprintf("%q", EndedDir),
		"GOJAIL_LOCK":                fmt.Sprintf("%q", LockFile),
		"GOJAIL_ZYGOTE":              fmt.Sprintf("%q", ZygoteRecord),
		"GOJAIL_TEMPLATE_SPEC":       fmt.Sprintf("%q", TemplateSpec),
		"GOJAIL_SOCKET":              fmt.Sprintf("%q", ZygoteSocket),
		"GOJAIL_STORAGE_SOCKET":      fmt.Sprintf("%q", StorageSocket),
		"GOJAIL_IDENTITY":            fmt.Sprintf("%q", IdentityFile),
		"GOJAIL_VERSION_FILE":        fmt.Sprintf("%q", VersionFile),
		"GOJAIL_VERSIONS":            fmt.Sprintf("%q", VersionsFile),
		"GOJAIL_GPUS":                fmt.Sprintf("%q", GPUsFile),
		"GOJAIL_CGROUPS":             fmt.Sprintf("%q", CgroupsFile),
		"GOJAIL_OWNER":               fmt.Sprintf("%q", OwnerFile),
		"GOJAIL_NET":                 fmt.Sprintf("%q", NetRecord),
		"GOJAIL_LAUNCHES":            fmt.Sprintf("%q", LaunchesDir),
		"GOJAIL_NO_JAIL":             fmt.Sprintf("%q", NoJailFile),
		"GOJAIL_TOOK_US":             strings.Trim(strings.ReplaceAll(fmt.Sprint(TookBounds), " ", ", "), "[]"),
		"GOJAIL_SCRATCH":             fmt.Sprintf("%q", ScratchLink),
		"GOJAIL_NAMESPACES":          fmt.Sprintf("%q", NamespaceRecord),
		"GOJAIL_NET_ENV":             fmt.Sprintf("%q", NetEnvFile),
		"GOJAIL_NET_COUNTERS":        fmt.Sprintf("%q", NetCountersFile),
		"GOJAIL_SPEC_SUFFIX":         fmt.Sprintf("%q", SpecSuffix),
		"GOJAIL_MOUNTS_SUFFIX":       fmt.Sprintf("%q", MountsSuffix),
		"GOJAIL_STORAGE_SUFFIX":      fmt.Sprintf("%q", StorageSuffix),
		"GOJAIL_TRIED":               fmt.Sprintf("%q", TriedFile),
		"GOJAIL_SESSIONS":            fmt.Sprintf("%q", SessionsLock),
		"GOJAIL_WATCHER":             fmt.Sprintf("%q", WatcherLock),
		"GOJAIL_LOGIN":               fmt.Sprintf("%q", LoginPrefix),
		"GOJAIL_TRASH":               fmt.Sprintf("%q", TrashDir),
		"GOJAIL_NETWORK_CONFIG":      fmt.Sprintf("%q", NetworkConfig),
		"GOJAIL_PLUGIN":              fmt.Sprintf("%q", Plugin),
		"GOJAIL_GPU_PATH_MAX":        fmt.Sprint(GPUPathMax),
		"GOJAIL_LOGIN_NAME_MAX":      fmt.Sprint(LoginNameMax),
		"GOJAIL_LAUNCHER":            fmt.Sprintf("%q", Launcher),
		"GOJAIL_LIBRARY":             fmt.Sprintf("%q", Library),
		"GOJAIL_SESSION":             fmt.Sprintf("%q", Session),
		"GOJAIL_SESSION_CONFIG":      fmt.Sprintf("%q", SessionConfig),
		"GOJAIL_ZYGOTE_NAME":         fmt.Sprintf("%q", ZygoteName),
		"GOJAIL_HOLDER_NAME":         fmt.Sprintf("%q", HolderName),
		"GOJAIL_SLURM_CACHE":         fmt.Sprintf("%q", CacheInJail),
		"GOJAIL_SLURM_CACHE_LINK":    fmt.Sprintf("%q", CacheLink),
	} {
		assert.Equal(t, defines[name], value, name)
	}
	assert.Equal(t, 4<<20, SiteMax)
	for number, reason := range FailReasons {
		assert.Equal(t, fmt.Sprint(number), defines["GOJAIL_REASON_"+strings.ToUpper(reason)], reason)
	}
}
