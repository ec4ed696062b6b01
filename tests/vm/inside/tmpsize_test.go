// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/vm"
)

const tmpLimit = 16 << 20

// startLimited starts a private Slurm whose scratch directory is on the guest's disk, which has project
// quotas: the jail debian limits /tmp, other does not.
func startLimited(t *testing.T) *harness.Cluster {
	t.Helper()
	if os.Getenv(vm.GuestVariable) == "" {
		t.Skip("runs in the VM: make test-vm")
	}
	config := strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\ntmp_size = \"16M\"\n", 1)
	return harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, Config: config})
}

// readTmpQuota returns the limit of a job's /tmp and its usage in bytes (Q_GETQUOTA and struct if_dqblk of
// linux/quota.h).
func readTmpQuota(t *testing.T, c *harness.Cluster, job string) (limit, used uint64) {
	t.Helper()
	dir, err := os.Open(c.Path("/var/lib/gojail/n1"))
	require.NoError(t, err)
	defer dir.Close()
	number, err := strconv.Atoi(job)
	require.NoError(t, err)
	const getQuota = 0x800007<<8 | 2 // for projects
	var quota [72]byte
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), getQuota, uintptr(0x80000000|number), uintptr(unsafe.Pointer(&quota)), 0, 0)
	require.Zero(t, errno, "%v", errno)
	return binary.NativeEndian.Uint64(quota[:]) << 10, binary.NativeEndian.Uint64(quota[16:])
}

// leaveProject tries what takes a directory of one's own out of its project
// (ioctl_fsxattr and ioctl_setflags, linux/fs.h; 0x20000000 is FS_PROJINHERIT_FL).
const leaveProject = `import fcntl, os, struct
os.mkdir("/tmp/mine")
fd = os.open("/tmp/mine", os.O_RDONLY)
def attempt(name, get, set, size, change):
    data = bytearray(size)
    fcntl.ioctl(fd, get, data)
    change(data)
    try:
        fcntl.ioctl(fd, set, bytes(data))
        print(name, "done")
    except OSError as e:
        print(name, e.strerror)
attempt("project", 0x801c581f, 0x401c5820, 28, lambda d: struct.pack_into("I", d, 12, 7))
attempt("inherit", 0x801c581f, 0x401c5820, 28, lambda d: struct.pack_into("I", d, 0, struct.unpack_from("I", d)[0] & ~0x200))
attempt("flags", 0x80086601, 0x40086602, 8, lambda d: struct.pack_into("I", d, 0, struct.unpack_from("I", d)[0] & ~0x20000000))
`

// manyProjects makes a deep tree of directories that nothing may be moved between.
const manyProjects = `import fcntl, os, struct
os.chdir("/tmp")
for i in range(300):
    os.mkdir("deep")
    os.chdir("deep")
    fd = os.open(".", os.O_RDONLY)
    fcntl.ioctl(fd, 0x401c5820, struct.pack("4I12x", 0x200, 0, 0, 1000 + i))
    os.close(fd)
print("made")
`

// setOwnProject puts the scratch directories into a project, as an administrator may.
func setOwnProject(t *testing.T, path string) {
	t.Helper()
	dir, err := os.Open(path)
	require.NoError(t, err)
	defer dir.Close()
	var attributes [28]byte
	binary.NativeEndian.PutUint32(attributes[0:], 0x200)
	binary.NativeEndian.PutUint32(attributes[12:], 999)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), 0x401c5820, uintptr(unsafe.Pointer(&attributes)))
	require.Zero(t, errno, "%v", errno)
}

const projectOfTmp = `import fcntl, os, struct
data = bytearray(28)
fcntl.ioctl(os.open("/tmp", os.O_RDONLY), 0x801c581f, data) # FS_IOC_FSGETXATTR
print(struct.unpack_from("I", data, 12)[0])
`

// makeFiles makes more empty files than a /tmp may have that is limited to a few MB: 16384.
const makeFiles = `import os
n = 0
try:
    while n < 17000:
        os.mknod("/tmp/%d" % n)
        n += 1
    print(n, "made")
except OSError as e:
    print(n, e.strerror)
for i in range(n): # the job's end has no time for them here
    os.unlink("/tmp/%d" % i)
`

// TestTmpOnDiskIsLimited: all steps of a job share a limit that no task gets around.
func TestTmpOnDiskIsLimited(t *testing.T) {
	c := startLimited(t)
	assert.NotContains(t, c.Gojail("n1", "check").Stdout, "does not limit")
	allocation := c.Run(harness.Alice, "salloc", "-Q", "--no-shell", "-wn1", "-n1", "-Jlimited")
	require.Zero(t, allocation.Code, allocation)
	id := strings.TrimSpace(c.Root("squeue", "-h", "-nlimited", "-o%A").Stdout)
	step := func(jail string, args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-Q", "--jobid=" + id, "--jail=" + jail}, args...)...)
	}
	fill := func(name string) string { return "head -c 12M /dev/zero >/tmp/" + name }
	r := step("debian", "sh", "-c", "df -B1 --output=size /tmp | tail -1; "+fill("one"))
	require.Zero(t, r.Code, r)
	assert.Equal(t, strconv.Itoa(tmpLimit), strings.TrimSpace(r.Stdout), "df shows the limit")
	r = step("debian", "sh", "-c", "mkdir /tmp/below; "+fill("below/two"))
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "Disk quota exceeded", r)
	limit, used := readTmpQuota(t, c, id)
	assert.EqualValues(t, tmpLimit, limit)
	assert.LessOrEqual(t, used, limit)
	assert.Greater(t, used, uint64(12<<20))
	metrics := c.Gojail("n1", "metrics").Stdout
	assert.Regexp(t, `gojail_job_scratch_bytes{job_id="`+id+`",node="n1"} 1\.[2-6]\d+e\+07\n`, metrics)
	assert.Contains(t, metrics, `gojail_job_scratch_limit_bytes{job_id="`+id+`",node="n1"} 1.6777216e+07`+"\n")

	r = step("debian", "sh", "-c", "rm -r /tmp/one /tmp/below; exec python3 -c \"$0\"", leaveProject)
	const no = "Operation not permitted"
	assert.Equal(t, fmt.Sprintf("project %s\ninherit %[1]s\nflags %[1]s\n", no), r.Stdout, r)
	r = step("debian", "python3", "-c", makeFiles)
	assert.Regexp(t, `^1[56]\d\d\d Disk quota exceeded\n$`, r.Stdout, r) // less the few directories
	require.Zero(t, c.Run(harness.Alice, "scancel", id).Code)
	require.True(t, c.WaitIdle(), c.Drained())
	waitFor(t, "the limit is forgotten", func() bool { limit, used = readTmpQuota(t, c, id); return limit == 0 && used == 0 })

	// A jail without a limit is no place either to put files into the project of a job that has one.
	other := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-Q", "-wn1", "--jail=other"}, args...)...)
	}
	r = other("python3", "-c", leaveProject)
	assert.Equal(t, fmt.Sprintf("project %s\ninherit %[1]s\nflags %[1]s\n", no), r.Stdout, r)

	// The control: without a limit, all of that is possible.
	r = other("sh", "-c", fill("one")+"; "+fill("two"))
	assert.Zero(t, r.Code, r)
	r = other("python3", "-c", makeFiles)
	assert.Equal(t, "17000 made\n", r.Stdout, r)
	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	r = other("python3", "-c", leaveProject)
	assert.Equal(t, "project done\ninherit done\nflags done\n", r.Stdout, r)

	// And what a job can do then does not keep its end from removing it.
	setOwnProject(t, c.Path("/var/lib/gojail/n1/jobs"))
	r = other("python3", "-c", manyProjects)
	assert.Equal(t, "made\n", r.Stdout, r)
	var project string
	for range 4 { // some have directories that were made before
		project = other("python3", "-c", projectOfTmp).Stdout
	}
	assert.Equal(t, "999\n", project, "what the administrator has all of it in stays, where no jail limits /tmp")
	waitFor(t, "it is removed", func() bool {
		left, err := filepath.Glob(c.Path("/var/lib/gojail/n1/jobs") + "/[0-9.]*") // not the spares
		return err == nil && len(left) == 0
	})
}

// TestTmpLimitOfSeveralJails: the lowest of a job's jails is that of its /tmp, in whatever order they come and also
// for what there was before.
func TestTmpLimitOfSeveralJails(t *testing.T) {
	c := startLimited(t)
	steps := func(does string, names ...string) string {
		script := ""
		for _, name := range names {
			jail, file, _ := strings.Cut(name, " ")
			script += "export NAME='" + name + "' FILE=/tmp/sub/" + file + "; srun -Q --jail=" + jail + " sh -c '" + does + "; true'\n"
		}
		return c.Batch(harness.Alice, script, "--jail=none", "-wn1").Output
	}
	const over = "head: error writing 'standard output': Disk quota exceeded\n"
	assert.Equal(t, "other one\n"+over+over,
		steps("mkdir -p /tmp/sub; head -c 12M /dev/zero >$FILE && echo $NAME", "other one", "debian two", "other three"))

	text, err := os.ReadFile(c.Path(harness.ConfigPath))
	require.NoError(t, err)
	require.NoError(t, c.WriteConfig(strings.Replace(string(text), "[jail.other]\n", "[jail.other]\ntmp_size = \"32M\"\n", 1)))
	assert.Equal(t, "32\n16\n16\n", steps("df -BM --output=size /tmp | tail -1 | tr -dc \"0-9\\n\"", "other", "debian", "other"))
	assert.Equal(t, "16\n16\n", steps("df -BM --output=size /tmp | tail -1 | tr -dc \"0-9\\n\"", "debian", "other"))
}

// TestTmpLimitOfAKilledJob: what the epilog could not forget, the sweep does.
func TestTmpLimitOfAKilledJob(t *testing.T) {
	c := startLimited(t)
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\nhead -c 1M /dev/zero >/tmp/file\ntouch /tmp/up\nexec sleep 31416\n",
		Args: []string{"sbatch", "--parsable", "--jail=debian", "-wn1", "--no-requeue"}})
	require.Zero(t, submit.Code, submit)
	id := strings.TrimSpace(submit.Stdout)
	scratch := c.Path("/var/lib/gojail/n1/jobs/" + id + "/tmp")
	waitFor(t, "the job", func() bool { _, err := os.Stat(scratch + "/up"); return err == nil })
	limit, used := readTmpQuota(t, c, id)
	assert.EqualValues(t, tmpLimit, limit)
	assert.GreaterOrEqual(t, used, uint64(1<<20))

	holder, err := os.ReadFile(c.Path("/run/gojail/n1/jobs/" + id + "/debian"))
	require.NoError(t, err)
	slurmd, err := os.ReadFile(c.Path("/run/slurm/slurmd-n1.pid"))
	require.NoError(t, err)
	pids := []string{strings.TrimSpace(string(slurmd)), strings.Fields(string(holder))[1]}
	for _, text := range []string{"slurmstepd: [" + id, "sleep 31416"} {
		var found []harness.Process
		waitFor(t, text, func() bool { found = c.Find(text); return len(found) > 0 }) // the shell becomes sleep after its last file
		for _, p := range found {
			pids = append(pids, strconv.Itoa(p.Pid))
		}
	}
	c.Root(append([]string{"kill", "-KILL"}, pids...)...)
	c.Root("scancel", id)
	assert.DirExists(t, scratch)
	limit, _ = readTmpQuota(t, c, id)
	assert.EqualValues(t, tmpLimit, limit, "nobody has had the time")

	require.NoError(t, c.StartSlurmd("n1")) // which sweeps
	waitFor(t, "the limit is forgotten", func() bool { limit, used = readTmpQuota(t, c, id); return limit == 0 && used == 0 })
	assert.NoDirExists(t, scratch)
	c.Resume("n1")
	assert.True(t, c.WaitIdle(), c.Drained())
}
