// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/procfs"
)

func TestMemory(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Proc+"/meminfo", "MemTotal:       2097152 kB\nMemAvailable:   1048576 kB\nSwapTotal:       524288 kB\nHugePages_Total:       0\n")
	expect(t, once(h, memory, s), check.OK, "")
	expect(t, once(h, swap, s), check.NotApplicable, "")
	s.Memory = check.MemorySettings{Total: 4096, Available: 512, Swap: 512}
	expect(t, once(h, memory, s), check.Fail, "less memory than the configured 4096 MiB")
	expect(t, once(h, swap, s), check.OK, "")
	s.Memory = check.MemorySettings{Total: 2048, Available: 2000, Swap: 513}
	expect(t, once(h, memory, s), check.Warn, "")
	expect(t, once(h, swap, s), check.Fail, "")
	put(t, h.Roots.Proc+"/meminfo", "MemTotal: much\n")
	expect(t, once(h, memory, s), check.Unknown, "")
	expect(t, once(h, swap, s), check.Unknown, "")
}

func TestClock(t *testing.T) {
	limit := config.DefaultSettings().Clock
	strict := check.ClockSettings{Warn: time.Second, Fail: 10 * time.Second}
	for _, c := range []struct {
		status           int32
		estimated, error int64
		limit            check.ClockSettings
		verdict          check.Verdict
		text             string
	}{
		{unix.STA_NANO, 100, 500_000, limit, check.OK, "the clock is synchronized"},
		{0, 100, 5_000_001, limit, check.Warn, "the clock may be off by more than 5s"},
		{0, 5_000_001, 100, limit, check.Warn, "the clock may be off by more than 5s"},
		{0, 100, 15_999_999, limit, check.Warn, ""}, // as far as the kernel reckons: no drain
		{unix.STA_UNSYNC, 16_000_000, 16_000_000, limit, check.Warn, "the kernel reports the clock as unsynchronized"},
		{0, 100, 9_000_000, strict, check.Warn, "the clock may be off by more than 1s"},
		{0, 100, 10_000_001, strict, check.Fail, "the clock may be off by more than 10s"},
		{unix.STA_UNSYNC, 16_000_000, 16_000_000, strict, check.Unknown, "the kernel reports the clock as unsynchronized"},
	} {
		expect(t, judgeClock(&unix.Timex{Status: c.status, Esterror: c.estimated, Maxerror: c.error}, c.limit), c.verdict, c.text)
	}
	var now unix.Timex
	_, err := unix.Adjtimex(&now)
	require.NoError(t, err)
	f := once(testHost(t), clock, config.DefaultSettings())
	expect(t, f, judgeClock(&now, limit).Verdict, "")
	assert.InDelta(t, float64(now.Maxerror)/1e6, f.Metrics[1].Value, 1)
}

func stat(t *testing.T, h *check.Host, pid, name, state string, uid int) {
	nstest.NeedRoot(t)
	dir := filepath.Join(h.Roots.Proc, pid)
	put(t, dir+"/stat", pid+" ("+name+") "+state+" 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n")
	require.NoError(t, os.Chown(dir, uid, uid))
}

func TestStuck(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, stuck, s), check.Unknown, "")
	stat(t, h, "1", "systemd", "S", 0)
	put(t, h.Roots.Proc+"/7/stat", "7 (nvidia-modeset/kthread_q) D 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n")
	stat(t, h, "8", "nvidia) D (x", "D", 1000)
	var f check.Finding
	for range stuckRuns - 1 {
		f = again(h, stuck, s, f)
		expect(t, f, check.OK, "")
	}
	f = again(h, stuck, s, f)
	expect(t, f, check.Fail, "stuck in the kernel: nvidia-modeset/kthre")
	stat(t, h, "7", "nvidia-modeset/kthread_q", "S", 0)
	f = again(h, stuck, s, f)
	expect(t, f, check.Warn, "stuck in the kernel: nvidia) D (x")
	put(t, h.Roots.Proc+"/8/stat", "garbage")
	expect(t, again(h, stuck, s, f), check.OK, "")
}

// A set-user-ID program of root can have any name, that of a link to it.
func TestStuckUnderAnotherName(t *testing.T) {
	for name, c := range map[string]struct {
		comm, exe, cgroup string
		verdict           check.Verdict
	}{
		"a user's link":          {"nvidia-x", "/usr/bin/sudo", "0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n", check.Warn},
		"it ends":                {"nvidia-x", "", "0::/user.slice/user-1000.slice/session-1.scope\n", check.Warn},
		"NVIDIA's, for a user":   {"nvidia-modprobe", "/usr/bin/nvidia-modprobe", "0::/system.slice/slurmd.service\n", check.Warn},
		"NVIDIA's service":       {"nvidia-persiste", "/usr/bin/nvidia-persistenced", "0::/system.slice/nvidia-persistenced.service\n", check.Fail},
		"a user's link to sudo":  {"gojail-zygote", "/usr/bin/sudo", "0::/system.slice/slurmd.service\n", check.Warn},
		"a jail's first process": {"gojail-zygote", "/usr/lib/gojail/gojail-launcher", "0::/system.slice/slurmd.service\n", check.Fail},
	} {
		h, s := testHost(t), config.DefaultSettings()
		stat(t, h, "7", c.comm, "D", 0)
		put(t, h.Roots.Proc+"/7/cgroup", c.cgroup)
		if c.exe != "" {
			require.NoError(t, os.Symlink(c.exe, h.Roots.Proc+"/7/exe"))
		}
		f := check.Finding{State: []byte(`{"7/4711": 4}`)}
		f = again(h, stuck, s, f)
		assert.Equal(t, c.verdict, f.Verdict, name)
	}
}

func TestDisk(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, disk, s), check.NotApplicable, "")
	md, nvme := h.Roots.Sys+"/block/md0/md/", h.Roots.Sys+"/class/nvme/nvme0/"
	put(t, md+"array_state", "clean\n")
	put(t, nvme+"state", "live\n")
	expect(t, once(h, disk, s), check.OK, "")
	put(t, md+"degraded", "1\n")
	expect(t, once(h, disk, s), check.Warn, "RAID array md0 is degraded")
	put(t, md+"array_state", "inactive\n")
	expect(t, once(h, disk, s), check.Fail, "RAID array md0 is inactive")
	put(t, md+"array_state", "clean\n")
	put(t, nvme+"state", "dead\n")
	expect(t, once(h, disk, s), check.Fail, "nvme0 is dead")
	put(t, nvme+"state", "sideways\n")
	expect(t, once(h, disk, s), check.Unknown, "")
}

// The container of arrays with Intel or DDF metadata is not an array itself.
func TestAnMDContainerIsNoArray(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Sys+"/block/md127/md/array_state", "inactive\n")
	put(t, h.Roots.Sys+"/block/md127/md/metadata_version", "external:imsm\n")
	expect(t, once(h, disk, s), check.NotApplicable, "")
	put(t, h.Roots.Sys+"/block/md126/md/array_state", "active\n")
	put(t, h.Roots.Sys+"/block/md126/md/metadata_version", "external:/md127/0\n")
	expect(t, once(h, disk, s), check.OK, "")
	put(t, h.Roots.Sys+"/block/md126/md/array_state", "inactive\n")
	expect(t, once(h, disk, s), check.Fail, "RAID array md126 is inactive")
	put(t, h.Roots.Sys+"/block/md126/md/metadata_version", "external:-md127/0\n") // as mdmon writes while it takes it over
	expect(t, once(h, disk, s), check.Fail, "RAID array md126 is inactive")
}

func TestEDAC(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, edac, s), check.NotApplicable, "")
	mc := h.Roots.Sys + "/devices/system/edac/mc/mc0/"
	put(t, mc+"ue_count", "0\n")
	put(t, mc+"ce_count", "10\n")
	f := once(h, edac, s)
	expect(t, f, check.OK, "")
	put(t, mc+"ce_count", "5000\n")
	expect(t, again(h, edac, s, f), check.Warn, "")
	put(t, mc+"ue_count", "1\n")
	expect(t, once(h, edac, s), check.Fail, "memory of controller mc0 had uncorrectable errors")
	put(t, mc+"ue_count", "one\n")
	expect(t, once(h, edac, s), check.Unknown, "")
}

func TestLimits(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, limits, s), check.Unknown, "")
	stat(t, h, "1", "init", "S", 0)
	put(t, h.Roots.Proc+"/sys/fs/file-nr", "1000\t0\t9223372036854775807\n")
	put(t, h.Roots.Proc+"/sys/kernel/pid_max", "4194304\n")
	put(t, h.Roots.Proc+"/loadavg", "0.10 0.20 0.30 2/900 77777\n")
	expect(t, once(h, limits, s), check.OK, "")
	put(t, h.Roots.Proc+"/sys/fs/file-nr", "900\t0\t1000\n")
	put(t, h.Roots.Proc+"/sys/kernel/pid_max", "1000\n")
	expect(t, once(h, limits, s), check.Warn, "open files are at 80% of the kernel's limit; processes are at 80% of the kernel's limit")
	put(t, h.Roots.Proc+"/sys/fs/file-nr", "many\n")
	expect(t, once(h, limits, s), check.Unknown, "")
	put(t, h.Roots.Proc+"/sys/fs/file-nr", "1 0 1000\n")
	put(t, h.Roots.Proc+"/sys/kernel/pid_max", "32768\n")
	h.Shared = &check.Shared{}
	_, err := check.ReadOnce(h.Shared, "processes", func() ([]process, error) {
		return slices.Repeat([]process{{Stat: procfs.Stat{State: 'Z'}}}, manyZombies), nil
	})
	require.NoError(t, err)
	expect(t, once(h, limits, s), check.Warn, "there are 1000 or more zombies that their parents do not reap")
}

func TestHugePagesAndIdleMemory(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	const mem = "MemTotal:       2097152 kB\nMemAvailable:   1048576 kB\nSwapTotal:       524288 kB\nHugePages_Total:      16\nHugePages_Free: 1\n"
	put(t, h.Roots.Proc+"/meminfo", mem)
	stat(t, h, "1", "init", "S", 0)
	expect(t, once(h, hugePages, s), check.NotApplicable, "")
	expect(t, once(h, idleMemory, s), check.NotApplicable, "")
	s.Memory.HugePages, s.Memory.Idle = 16, 1024
	expect(t, once(h, hugePages, s), check.OK, "")
	expect(t, once(h, idleMemory, s), check.OK, "")
	s.Memory.HugePages, s.Memory.Idle = 17, 1025
	expect(t, once(h, hugePages, s), check.Fail, "fewer huge pages than the configured 17")
	expect(t, once(h, idleMemory, s), check.Fail, "no job runs, but less than 1025 MiB of memory is available")
	for _, left := range []string{"Shmem: 1024 kB\n", "AnonPages: 1024 kB\n"} { // of a job that has ended
		put(t, h.Roots.Proc+"/meminfo", mem+left)
		expect(t, once(h, idleMemory, s), check.Warn, "no job runs, but files in memory or processes leave less than 1025 MiB available")
	}
	stat(t, h, "50", "slurmstepd", "S", 0)
	put(t, h.Roots.Proc+"/50/cmdline", "slurmstepd: [17.extern]\x00")
	expect(t, once(h, idleMemory, s), check.OK, "jobs are running and may use the memory")
	put(t, h.Roots.Proc+"/meminfo", "HugePages_Total: some\n")
	expect(t, once(h, hugePages, s), check.Unknown, "")
	expect(t, once(h, idleMemory, s), check.Unknown, "")
}
