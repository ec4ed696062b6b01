// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/procfs"
)

const mountTable = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:30 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
24 22 0:31 / /data ro,relatime shared:3 - ext4 /dev/sdb rw
25 22 0:32 / /err rw,relatime shared:4 - ext4 /dev/sdc ro
`

func TestMounted(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Proc+"/self/mountinfo", mountTable)
	for _, c := range []struct {
		fs      check.FileSystem
		verdict check.Verdict
		text    string
	}{
		{check.FileSystem{Path: "/home"}, check.OK, ""},
		{check.FileSystem{Path: "/home/"}, check.OK, ""},
		{check.FileSystem{Path: "/home/deep/er", Any: true}, check.OK, ""},
		{check.FileSystem{Path: "/home/deep"}, check.Fail, "/home/deep is not mounted"},
		{check.FileSystem{Path: "/data"}, check.Fail, "/data is mounted read-only"},
		{check.FileSystem{Path: "/data", ReadOnly: true}, check.OK, ""},
		{check.FileSystem{Path: "/err"}, check.Fail, "/err is mounted read-only"},
	} {
		s.FileSystems = []check.FileSystem{c.fs}
		expect(t, once(h, mounted, s), c.verdict, c.text)
	}
	put(t, h.Roots.Proc+"/self/mountinfo", "garbage\n")
	expect(t, once(h, mounted, s), check.Unknown, "")
	put(t, h.Roots.Proc+"/self/mountinfo", mountTable)
	s.FileSystems = nil
	expect(t, once(h, mounted, s), check.OK, "")
}

func TestSpace(t *testing.T) {
	for _, c := range []struct {
		free, files uint64
		verdict     check.Verdict
	}{{50, 50, check.OK}, {4, 50, check.Warn}, {1, 50, check.Fail}, {50, 1, check.Fail}, {0, 50, check.Fail}, {50, 0, check.Fail}} {
		var p problems
		judgeSpace(&p, "/x", 98, &unix.Statfs_t{Blocks: 100, Bfree: c.free, Bavail: c.free, Files: 100, Ffree: c.files}, p.failed)
		expect(t, p.finding("good"), c.verdict, "")
	}
	var p problems
	judgeSpace(&p, "/x", 98, &unix.Statfs_t{}, p.failed) // overlay and some network file systems tell nothing
	expect(t, p.finding("good"), check.OK, "")
}

func TestStorageAnswers(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := t.TempDir()
	s.FileSystems = []check.FileSystem{{Path: dir, Full: 100}}
	expect(t, once(h, full, s), check.OK, "")
	expect(t, once(h, writable, s), check.OK, "")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	s.FileSystems = append(s.FileSystems, check.FileSystem{Path: dir + "/gone"})
	expect(t, once(h, writable, s), check.Fail, dir+"/gone: no file can be made: no such file or directory")
	expect(t, once(h, full, s), check.Fail, "")
}

// A job may fill what users can write to, so that alone drains no node.
func TestAJobThatFillsAFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a tmpfs")
	}
	h, s := testHost(t), config.DefaultSettings()
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, "size=1m,nr_inodes=8"))
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	s.FileSystems = []check.FileSystem{{Path: dir}}
	asked := *s
	asked.FileSystems = []check.FileSystem{{Path: dir, Full: 90}}
	expect(t, once(h, full, s), check.OK, "")
	require.NoError(t, unix.Fallocate(touch(t, dir+"/job"), 0, 0, 1<<20))
	expect(t, once(h, full, s), check.Warn, dir+" is full (space)")
	expect(t, once(h, writable, s), check.Warn, dir+" has no room for a file")
	expect(t, once(h, full, &asked), check.Fail, dir+" is full (space)")
	require.NoError(t, os.Truncate(dir+"/job", 0))
	for i := range 6 {
		touch(t, fmt.Sprint(dir, "/", i))
	}
	expect(t, once(h, full, s), check.Warn, dir+" is full (inodes)")
	expect(t, once(h, writable, s), check.Warn, dir+" has no room for a file")
	expect(t, once(h, full, &asked), check.Fail, dir+" is full (inodes)")
}

// touch makes a file that is open until the end of the test.
func touch(t *testing.T, path string) int {
	f, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// A run that is killed in between leaves nothing, where files need no name.
func TestAProbeHasNoName(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "gojail-test-")
	if err != nil {
		t.Skip("no tmpfs on this machine, which has files without a name for certain")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f, _, err := scratch(dir)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("x")
	assert.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)

	f, remove, err := scratch("/proc/self/nothing")
	assert.Error(t, err)
	assert.Nil(t, f)
	assert.Nil(t, remove)
}

// The probe does not queue behind what jobs have written to the page cache: it has no
// page there.
func TestAProbePassesTheCache(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_DIRECT); err != nil {
		t.Skipf("the temporary directory's file system: %v", err)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, 0)
	require.NoError(t, err)
	require.NoError(t, writeThrough(f))
	var pages unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0); err != nil {
		t.Skipf("needs Linux 6.5: %v", err)
	}
	assert.Zero(t, pages.Cache)
	st, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, os.Getpagesize(), st.Size())
}

func TestAProbeOfAFileSystemThatIsACache(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a ramfs")
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "ramfs", 0, ""))
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	f, err := os.Create(dir + "/f")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, writeThrough(f))
	text, err := os.ReadFile(dir + "/f")
	require.NoError(t, err)
	assert.Contains(t, string(text), "gojail-healthcheck\n")
}

func TestHangingStorageIsNamed(t *testing.T) {
	s := config.DefaultSettings()
	s.FileSystems = []check.FileSystem{{Path: "/good"}, {Path: "/hung"}}
	ctx, cancel := context.WithCancel(context.Background())
	never := make(chan struct{})
	defer close(never)
	f, failed := eachFileSystem(ctx, s, func(fs check.FileSystem, _ *problems) {
		if fs.Path == "/hung" {
			cancel()
			<-never
		}
	})
	assert.Equal(t, check.Fail, f.Verdict)
	assert.Contains(t, f.Text, "/hung does not answer")
	assert.Contains(t, failed, "/hung")
}

// An answer that is there counts, also if the time is up because of another one.
func TestAnAnswerThatIsThereCounts(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		answer := make(chan *problems, 1)
		answer <- &problems{}
		_, ok := await(ctx, answer)
		assert.True(t, ok)
	}
	_, ok := await(ctx, make(chan *problems))
	assert.False(t, ok)
}

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
		{unix.STA_NANO, 100, 500_000, limit, check.OK, "the clock is kept"},
		{0, 100, 5_000_001, limit, check.Warn, "the clock may be off by more than 5s"},
		{0, 5_000_001, 100, limit, check.Warn, "the clock may be off by more than 5s"},
		{0, 100, 15_999_999, limit, check.Warn, ""}, // as far as the kernel reckons: no drain
		{unix.STA_UNSYNC, 16_000_000, 16_000_000, limit, check.Warn, "nothing keeps the clock: the kernel calls it unsynchronized"},
		{0, 100, 9_000_000, strict, check.Warn, "the clock may be off by more than 1s"},
		{0, 100, 10_000_001, strict, check.Fail, "the clock may be off by more than 10s"},
		{unix.STA_UNSYNC, 16_000_000, 16_000_000, strict, check.Unknown, "nothing keeps the clock: the kernel calls it unsynchronized"},
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

// A program of root's that a user may start goes by any name, that of a link to it.
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
		f := check.Finding{Keep: []byte(`{"7/4711": 4}`)}
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

// The container of arrays of Intel's or DDF's metadata is not one itself.
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

func TestDaemons(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, daemons, s), check.NotApplicable, "")
	s.Daemons.Processes = []string{"sssd", "a-name-longer-than-the-kernel-keeps"}
	expect(t, once(h, daemons, s), check.Unknown, "")
	stat(t, h, "5", "sssd", "S", 0)
	stat(t, h, "6", "a-name-longer-t", "S", 101)
	expect(t, once(h, daemons, s), check.OK, "")
	stat(t, h, "5", "sssd", "Z", 0)
	expect(t, once(h, daemons, s), check.Fail, "sssd does not run")
	stat(t, h, "5", "sssd", "S", 1000)
	expect(t, once(h, daemons, s), check.Fail, "sssd does not run")
}

// munged is imitated for what a real one does not say.
func fakeMunge(t *testing.T, answer []byte) string {
	path := filepath.Join(t.TempDir(), "m")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if answer != nil {
				c.Read(make([]byte, 64))
				c.Write(answer)
				c.Close()
			}
		}
	}()
	return path
}

func TestMunge(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Daemons.Munge = fakeMunge(t, []byte{0, 0x60, 0x6d, 0x4b, 4, 3, 0, 0, 0, 0, 9, 0, 0})
	expect(t, once(h, munge, s), check.OK, "")
	s.Daemons.Munge = fakeMunge(t, []byte{0, 0x60, 0x6d, 0x4b, 4, 3, 0, 0, 0, 0, 9, 5, 0})
	expect(t, once(h, munge, s), check.Fail, "munged refuses to make a credential (code 5)")
	s.Daemons.Munge = fakeMunge(t, []byte("HTTP/1.1 400 no\r\n"))
	expect(t, once(h, munge, s), check.Fail, "munged's answer is not understood")
	s.Daemons.Munge = filepath.Join(t.TempDir(), "none")
	expect(t, once(h, munge, s), check.Fail, "munged does not run")
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	s.Daemons.Munge = fakeMunge(t, nil)
	expect(t, munge(ctx, h, s), check.Unknown, "munged does not answer")
	s.Daemons.Munge = "none"
	expect(t, once(h, munge, s), check.NotApplicable, "")
	s.Daemons.Munge = ""
	expect(t, once(h, munge, s), check.NotApplicable, "")
	put(t, h.Roots.Etc+"/munge/munge.key", "")
	expect(t, once(h, munge, s), check.Fail, "munged does not run")
}

// A munged that others keep busy is asked again.
func TestMungeWithAFullQueue(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	path := filepath.Join(t.TempDir(), "m")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	require.NoError(t, unix.Listen(fd, 0))
	file := os.NewFile(uintptr(fd), path)
	listener, err := net.FileListener(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	defer listener.Close()
	for err == nil { // until nobody else is let in
		_, err = net.Dial("unix", path)
	}
	require.ErrorIs(t, err, unix.EAGAIN)

	s.Daemons.Munge = path
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	expect(t, munge(short, h, s), check.Unknown, "munged does not answer")
	go func() {
		time.Sleep(100 * time.Millisecond)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				c.Read(make([]byte, 64))
				c.Write([]byte{0, 0x60, 0x6d, 0x4b, 4, 3, 0, 0, 0, 0, 9, 0, 0})
			}()
		}
	}()
	expect(t, once(h, munge, s), check.OK, "munged makes credentials")
}

func TestMungeOfTheMachine(t *testing.T) {
	path, err := exec.LookPath("munged")
	if err != nil {
		t.Skip("munged is not installed")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.WriteFile(dir+"/key", make([]byte, 64), 0o400))
	cmd := exec.Command(path, "--foreground", "--force", "--key-file="+dir+"/key", "--socket="+dir+"/s", "--pid-file="+dir+"/pid",
		"--log-file="+dir+"/log", "--seed-file="+dir+"/seed", "--num-threads=1")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s := config.DefaultSettings()
	s.Daemons.Munge = dir + "/s"
	require.Eventually(t, func() bool {
		return once(testHost(t), munge, s).Verdict == check.OK
	}, 10*time.Second, 50*time.Millisecond)
	assert.False(t, errors.Is(cmd.Process.Signal(unix.Signal(0)), os.ErrProcessDone))
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
	expect(t, once(h, limits, s), check.Warn, "open files are at 80% of what the kernel lets be; processes are at 80% of what the kernel lets be")
	put(t, h.Roots.Proc+"/sys/fs/file-nr", "many\n")
	expect(t, once(h, limits, s), check.Unknown, "")
	put(t, h.Roots.Proc+"/sys/fs/file-nr", "1 0 1000\n")
	put(t, h.Roots.Proc+"/sys/kernel/pid_max", "32768\n")
	h.Shared = &check.Shared{}
	_, err := check.ReadOnce(h.Shared, "processes", func() ([]process, error) {
		return slices.Repeat([]process{{Stat: procfs.Stat{State: 'Z'}}}, manyZombies), nil
	})
	require.NoError(t, err)
	expect(t, once(h, limits, s), check.Warn, "there are 1000 dead processes or more that their parents leave")
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
	expect(t, once(h, idleMemory, s), check.Fail, "no job runs, and less than 1025 MiB of memory is available")
	for _, left := range []string{"Shmem: 1024 kB\n", "AnonPages: 1024 kB\n"} { // of a job that has ended
		put(t, h.Roots.Proc+"/meminfo", mem+left)
		expect(t, once(h, idleMemory, s), check.Warn, "no job runs, and files in memory or processes leave less than 1025 MiB available")
	}
	stat(t, h, "50", "slurmstepd", "S", 0)
	put(t, h.Roots.Proc+"/50/cmdline", "slurmstepd: [17.extern]\x00")
	expect(t, once(h, idleMemory, s), check.OK, "jobs run, and may have the memory")
	put(t, h.Roots.Proc+"/meminfo", "HugePages_Total: some\n")
	expect(t, once(h, hugePages, s), check.Unknown, "")
	expect(t, once(h, idleMemory, s), check.Unknown, "")
}

// A file system that was full is mended with some room only.
func TestFullUntilThereIsRoom(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := t.TempDir()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	if st.Blocks == 0 {
		t.Skip("the temporary directory's file system does not tell its space")
	}
	used := 100 * max(1-float64(st.Bavail)/float64(st.Blocks-st.Bfree+st.Bavail), 1-float64(st.Ffree)/float64(max(st.Files, 1)))
	s.FileSystems = []check.FileSystem{{Path: dir, Full: min(100, used+roomAgain/2.0)}}
	f := again(h, full, s, check.Finding{})
	expect(t, f, check.Warn, "")
	assert.JSONEq(t, "null", string(f.Keep))
	f.Keep = []byte(`["` + dir + `"]`)
	f = again(h, full, s, f)
	expect(t, f, check.Fail, "")
	assert.JSONEq(t, `["`+dir+`"]`, string(f.Keep))
}
