// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// findSpare returns the spare of a zygote of the jail debian on n1.
func findSpare(t *testing.T, c *harness.Cluster, zygote int) (pid int) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		for _, p := range c.Processes() {
			if p.Status["Name"] == "gojail-spare" && p.Status["PPid"] == strconv.Itoa(zygote) {
				pid = p.Pid
			}
		}
		return pid > 0
	}), "no spare")
	return pid
}

// readRecordPid returns the pid of a record in n1's state directory.
func readRecordPid(t *testing.T, c *harness.Cluster, name string) int {
	t.Helper()
	words := strings.Fields(readFile(c, "/run/gojail/n1/"+name))
	require.Greater(t, len(words), 1, name)
	pid, err := strconv.Atoi(words[1])
	require.NoError(t, err)
	return pid
}

// TestSpareBecomesTheHolder of the next job, and of no second sandbox of that.
func TestSpareBecomesTheHolder(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	spare := findSpare(t, c, zygote)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("cat "+marker))
	assert.Equal(t, spare, readRecordPid(t, c, "jobs/"+id+"/debian"))

	next := findSpare(t, c, zygote)
	r := c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=debian", "--jail-mount=/data:/mnt", "sh", "-c", "cat "+marker+"; readlink /proc/self/ns/ipc")
	require.Zero(t, r.Code, r)
	requireOutput(t, strings.TrimSpace(r.Stdout), step("cat "+marker+"; readlink /proc/self/ns/ipc"))
	assert.Equal(t, next, findSpare(t, c, zygote), "for a job's second sandbox, which shares its namespaces")

	other, id := allocate(t, c)
	requireOutput(t, "debian", other("cat "+marker))
	assert.Equal(t, next, readRecordPid(t, c, "jobs/"+id+"/debian"))
	c.Run(harness.Alice, "scancel", "--user=alice")
	requireNothingLeft(t, c, before)
}

// TestSpareHasTheHostName that the node has when the job comes.
func TestSpareHasTheHostName(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	spare := findSpare(t, c, readRecordPid(t, c, "jails/debian/zygote"))
	before := strings.TrimSpace(c.Root("hostname").Stdout)
	t.Cleanup(func() { c.Root("hostname", before) })
	require.Zero(t, c.Root("hostname", "renamed").Code)
	step, id := allocate(t, c)
	requireOutput(t, "renamed", step("cat /proc/sys/kernel/hostname"))
	assert.Equal(t, spare, readRecordPid(t, c, "jobs/"+id+"/debian"))
}

// TestSpareOfAnotherKind: a jail that is configured otherwise since has what it is configured to have.
func TestSpareOfAnotherKind(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	spare := findSpare(t, c, zygote)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]", "[jail.debian]\nnamespaces = [\"ipc\"]", 1))
	own := func() harness.Result {
		return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", "cat "+marker+"; readlink /proc/self/ns/pid")
	}
	nodes, err := os.Readlink(c.Path("/proc/1/ns/pid"))
	require.NoError(t, err)
	requireOutput(t, "debian\n"+nodes, own())
	require.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"), "this needs no other template")
	assert.NotEqual(t, spare, findSpare(t, c, zygote), "the next one is of the new kind")
	requireOutput(t, "debian\n"+nodes, own())
}

// TestSpareEndsWithItsZygote, whose socket it would serve; and the zygote goes on without its spare.
func TestSpareEndsWithItsZygote(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	try := func() {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	}
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	spare := findSpare(t, c, zygote)
	c.Root("kill", "-KILL", strconv.Itoa(spare))
	try()
	assert.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))
	spare = findSpare(t, c, zygote)
	c.Root("kill", "-KILL", strconv.Itoa(zygote))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(spare); return err != nil }), "the spare lives on")
	try()
	requireNothingLeft(t, c, before)
}

// TestSpareWaitsForASlowCaller: another job's does not.
func TestSpareWaitsForASlowCaller(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	spare := findSpare(t, c, zygote)
	dir, err := os.Open(filepath.Dir(c.Path("/run/gojail/n1/jails/debian/socket")))
	require.NoError(t, err)
	defer dir.Close()
	silent, err := net.Dial("unixpacket", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/socket")
	require.NoError(t, err)
	defer silent.Close()
	for range 3 {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	}
	assert.Equal(t, spare, findSpare(t, c, zygote), "it waits for the one that says nothing")
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(spare); return err != nil }), "it serves the template of before")
	silent.Close()
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))

	// What is no request of this version is refused as ever.
	wrong, err := net.Dial("unixpacket", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/socket")
	require.NoError(t, err)
	defer wrong.Close()
	_, err = wrong.Write(binary.NativeEndian.AppendUint32(nil, 1<<30))
	require.NoError(t, err)
	answer := make([]byte, 4096)
	_, err = wrong.Read(answer) // who it is
	require.NoError(t, err)
	n, err := wrong.Read(answer)
	require.NoError(t, err)
	assert.Contains(t, string(answer[:n]), "another gojail version")
	requireNothingLeft(t, c, before)
}

// TestSpareInARenamedProc: the owner of the jail's root can move mounts there after the spare was made. A step that gets it at once is
// refused; a spare that is older than a second has looked at its mounts, and the step is in a new template.
func TestSpareInARenamedProc(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	findSpare(t, c, zygote)
	proc := c.Path("/srv/jails/debian/proc")
	require.NoError(t, os.Rename(proc, proc+".old"))
	require.NoError(t, os.Mkdir(proc, 0o755))
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", task)
	require.NoError(t, os.Remove(proc))
	require.NoError(t, os.Rename(proc+".old", proc))
	if r.Code == 0 {
		requireOutput(t, "ran in debian", r)
		assert.NotEqual(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))
	} else {
		requireRefused(t, "/proc of the jail is not what was mounted there", r)
	}
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	requireNothingLeft(t, c, before)
}
