// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/imagefile/imagefiletest"
	"github.com/gojail/gojail/tests/harness"
)

// formatImageConfig returns the configuration of a jail whose root is the image of that kind.
func formatImageConfig(kind string) string {
	return harness.DefaultConfig + `
[jail.image]
root = "/srv/jails/image.` + kind + `"
jail_root = ["self", "range"]
[[jail.image.mounts]]
destination = "/home"
source = "/home"
`
}

// makeImage makes the image as an administrator would: a tree, its mount targets if there are to be any, the image.
func makeImage(t *testing.T, c *harness.Cluster, kind string, targets bool) {
	t.Helper()
	imagefiletest.Need(t)
	tree := c.Path("/srv/jails/tree")
	require.NoError(t, exec.Command("cp", "-al", c.Path("/srv/jails/debian"), tree).Run())
	defer os.RemoveAll(tree)
	for _, name := range []string{"etc/gojail-jail", "home"} { // the tree shares its files with debian
		require.NoError(t, os.RemoveAll(filepath.Join(tree, name)))
	}
	for _, name := range []string{"etc/slurm", "var/spool/slurmd"} { // debian's are made already
		require.NoError(t, os.RemoveAll(filepath.Join(tree, name)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(tree, "home"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "etc/gojail-jail"), []byte("image\n"), 0o644))
	if targets {
		r := c.Gojail("n1", "init", "--tree", "/srv/jails/tree", "image")
		require.Zero(t, r.Code, r)
	}
	to := c.Path("/srv/jails/image." + kind)
	command := []string{"mksquashfs", tree, to, "-quiet", "-no-progress", "-noI", "-noD", "-noF", "-noX", "-noappend"}
	if kind == "erofs" {
		command = []string{"mkfs.erofs", to, filepath.Join(c.Dir, "root/srv/jails/tree")} // it follows no link of /proc
	}
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { os.Remove(to) })
}

// listLoopDevices returns the loop devices of the jail's image.
func listLoopDevices(t *testing.T, c *harness.Cluster, kind string) []string {
	return imagefiletest.LoopDevices(t, c.Path("/srv/jails/image."+kind))
}

func TestImageAsRoot(t *testing.T) {
	for _, kind := range []string{"squashfs", "erofs"} {
		t.Run(kind, func(t *testing.T) {
			c := sharedCluster(t)
			configure(t, c, formatImageConfig(kind))
			makeImage(t, c, kind, true)
			loops := len(listLoopDevices(t, c, kind))

			r := c.Gojail("n1", "check")
			assert.Contains(t, r.Stdout, "jail image: /srv/jails/image."+kind)
			assert.NotContains(t, r.Stdout, "FAIL  jail image", r)
			assert.Len(t, listLoopDevices(t, c, kind), loops, "check leaves nothing")

			requireOutput(t, "image", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "cat", "/etc/gojail-jail"))
			r = c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "sh", "-c", "echo >/var/new")
			assert.Contains(t, r.Stderr, "Read-only file system", r)
			if kind == "squashfs" {
				assert.Len(t, listLoopDevices(t, c, kind), loops+1, "one for template, stage and all jobs of a node")
			}
			requireOutput(t, "image\nimage", c.Run(harness.Alice, "srun", "-N2", "--jail=image", "cat", "/etc/gojail-jail"))
			requireOutput(t, "0", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=self", "id", "-u"))

			job := c.Batch(harness.Alice, "cat /etc/gojail-jail; echo one >/tmp/shared; srun cat /tmp/shared; pwd\n",
				"--jail=image", "--chdir=/home/alice", "--output=/home/alice/image.out")
			t.Cleanup(func() { os.Remove(c.Path("/home/alice/image.out")) })
			assert.Equal(t, "COMPLETED", job.State, job)
			assert.Equal(t, "image\none\n/home/alice\n", job.Output, job)
			assert.Equal(t, job.Output, readFile(c, "/home/alice/image.out"))

			r = c.Gojail("n1", "run", "image", "--", "cat", "/etc/gojail-jail")
			assert.Equal(t, "image\n", r.Stdout, r)
			if kind == "squashfs" {
				assert.Len(t, listLoopDevices(t, c, kind), loops+2, "one for each node")
			}
			assert.Contains(t, c.Gojail("n1", "spec", "image").Stdout, `"readonly": true`)

			endTemplates(t, c, kind, loops)
		})
	}
}

// TestCheckMountsAnImageOnce: whatever gojail check looks at in an image, it mounts it once.
func TestCheckMountsAnImageOnce(t *testing.T) {
	c := sharedCluster(t)
	if c.Root("which", "strace").Code != 0 {
		t.Skip("needs strace in the machine: make deps")
	}
	for _, kind := range []string{"squashfs", "erofs"} {
		configure(t, c, formatImageConfig(kind))
		makeImage(t, c, kind, true)
		r := c.Root("strace", "-f", "-qq", "-e", "trace=fsmount", "gojail", "--node=n1", "--state=/run/gojail/%n", "check")
		assert.Contains(t, r.Stdout, "OK    jail image: /srv/jails/image."+kind, r)
		assert.Equal(t, 1, strings.Count(r.Stderr, "fsmount("), r)
	}
}

// endTemplates ends the templates of the image, and fails if a loop device is left.
func endTemplates(t *testing.T, c *harness.Cluster, kind string, loops int) {
	t.Helper()
	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	for _, node := range harness.Nodes {
		r := c.Gojail(node, "reload")
		require.Zero(t, r.Code, r)
	}
	if kind == "directory" {
		return
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(listLoopDevices(t, c, kind)) == loops }), "%v", listLoopDevices(t, c, kind))
}

func TestImageInARange(t *testing.T) {
	for _, kind := range []string{"squashfs", "erofs"} {
		t.Run(kind, func(t *testing.T) {
			c := sharedCluster(t)
			configure(t, c, formatImageConfig(kind))
			makeImage(t, c, kind, true)
			allowRange(t, c)
			requireOutput(t, "0\n0 0", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=range", "sh", "-c", "id -u; stat -c '%u %g' /etc/passwd"))
			r := c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=range", "sh", "-c", "echo >/var/new")
			assert.Contains(t, r.Stderr, "Read-only file system", r)
			endTemplates(t, c, kind, 0)
		})
	}
}

func TestImageThatIsRefused(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, formatImageConfig("squashfs"))
	makeImage(t, c, "squashfs", true)
	image := c.Path("/srv/jails/image.squashfs")
	says := func(why string) {
		t.Helper()
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "true")
		requireRefused(t, why, r)
		assert.Contains(t, withoutFlags(c.Gojail("n1", "check").Stdout), why)
		assert.Contains(t, c.Gojail("n1", "init", "image").Stderr, why)
		assert.Empty(t, listLoopDevices(t, c, "squashfs"))
	}
	makeImage(t, c, "squashfs", false)
	says("create it in the tree that the image is made of, and create the image again: gojail init --tree DIR image")
	makeImage(t, c, "squashfs", true)
	require.NoError(t, os.Chown(image, 5001, 5001))
	says("jail root /srv/jails/image.squashfs cannot be trusted: /srv/jails/image.squashfs: belongs to uid 5001, a user, and not to root")
	require.NoError(t, os.Chown(image, 0, 0))
	info, err := os.Stat(image)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(image, info.Size()/2))
	says("jail root /srv/jails/image.squashfs is truncated: it has ")
	require.NoError(t, os.Truncate(image, 0))
	says("jail root /srv/jails/image.squashfs is not a directory, nor an image")
}

// TestImageIsReplacedUnderAJob: a job keeps the image that it began with, also when no file has its name any more.
func TestImageIsReplacedUnderAJob(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, formatImageConfig("squashfs"))
	makeImage(t, c, "squashfs", true)
	job := c.Run(harness.Alice, "sbatch", "--parsable", "-wn1", "--jail=image", "--chdir=/home/alice", "--output=/home/alice/image.out", "--wrap",
		"srun cat /etc/gojail-jail; touch /home/alice/began; while [ -e /home/alice/began ]; do sleep 0.1; done; srun cat /etc/gojail-jail; srun ls /usr/share | wc -l")
	require.Zero(t, job.Code, job)
	t.Cleanup(func() { os.Remove(c.Path("/home/alice/image.out")) })
	began := c.Path("/home/alice/began")
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(began); return err == nil }), job)

	image := c.Path("/srv/jails/image.squashfs")
	old, err := os.Open(image) // by which its loop device is known
	require.NoError(t, err)
	defer old.Close()
	require.NoError(t, os.WriteFile(image+".new", []byte("no image"), 0o644))
	require.NoError(t, os.Rename(image+".new", image))
	require.NoError(t, os.Remove(began))
	require.True(t, c.WaitIdle(), c.Drained())
	text := readFile(c, "/home/alice/image.out")
	require.True(t, strings.HasPrefix(text, "image\nimage\n"), text)
	assert.Len(t, strings.Fields(text), 3)

	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	require.Zero(t, c.Gojail("n1", "reload").Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		return len(imagefiletest.LoopDevices(t, fmt.Sprintf("/proc/self/fd/%d", old.Fd()))) == 0
	}))
}

// TestSwitchedImage: after the link that is the root was switched, the next job has the new image; a running job keeps the old
// one, whose loop device is gone when the job is.
func TestSwitchedImage(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, formatImageConfig("link"))
	devices := func(name string) int {
		return len(imagefiletest.LoopDevices(t, c.Path("/srv/jails/"+name+".squashfs")))
	}
	for _, name := range []string{"old", "new"} {
		makeImage(t, c, "squashfs", true)
		runAsRoot(t, c, fmt.Sprintf("cd /srv/jails && mv image.squashfs %s.squashfs && mkdir added && echo %[1]s >added/which", name))
		out, err := exec.Command("mksquashfs", c.Path("/srv/jails/added"), c.Path("/srv/jails/"+name+".squashfs"), "-quiet", "-no-progress").CombinedOutput()
		require.NoError(t, err, "%s", out)
		runAsRoot(t, c, "rm -r /srv/jails/added")
	}
	runAsRoot(t, c, "cd /srv/jails && ln -s old.squashfs image.link")
	t.Cleanup(func() { c.Root("sh", "-c", "cd /srv/jails && rm -f old.squashfs new.squashfs image.link") })
	which := func() string {
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "cat", "/which")
		return strings.TrimSpace(r.Stdout + findGojailLine(r.Stderr))
	}
	require.Equal(t, "old", which())
	_, job := allocate(t, c)
	step := func() harness.Result {
		return c.Run(harness.Alice, "srun", "--jobid="+job, "--jail=image", "cat", "/which")
	}
	requireOutput(t, "old", step())

	runAsRoot(t, c, "cd /srv/jails && ln -s new.squashfs next && mv -T next image.link")
	waitForExpiry()
	assert.Equal(t, "new", which())
	requireOutput(t, "old", step())
	assert.Equal(t, 1, devices("old"), "the job's")
	assert.Equal(t, 1, devices("new"), "the template's")
	require.Zero(t, c.Run(harness.Alice, "scancel", job).Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return devices("old") == 0 }))
	assert.Equal(t, "new", which())
	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	require.Zero(t, c.Gojail("n1", "reload").Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return devices("new") == 0 }))
}

// TestKilledTemplateOfAnImage: whatever is killed while a template is made, no loop device and no mount is left.
func TestKilledTemplateOfAnImage(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, formatImageConfig("squashfs"))
	makeImage(t, c, "squashfs", true)
	met := 0
	for ms := 0; ms < 120*int(harness.Slow); ms += 8 * int(harness.Slow) {
		done := make(chan harness.Result)
		go func() { done <- c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "cat", "/etc/gojail-jail") }()
		var launchers []harness.Process
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			launchers = c.Find("gojail-launcher template state=/run/gojail/n1 ")
			return len(launchers) > 0
		}))
		time.Sleep(time.Duration(ms) * time.Millisecond) // where in the launch is the test's variable
		for _, p := range c.Find("gojail-launcher template state=/run/gojail/n1 ") {
			c.Root("kill", "-KILL", strconv.Itoa(p.Pid))
		}
		// The holder has its launcher's command line. Where it is killed, Slurm cannot fork the task, and srun ends with 0.
		if r := <-done; r.Code != 0 || strings.Contains(r.Stderr, "launch failed") {
			met++
		} else {
			assert.Equal(t, "image\n", r.Stdout, r)
		}
		if record := strings.Fields(readFile(c, "/run/gojail/n1/jails/image/zygote")); len(record) > 1 {
			c.Root("kill", "-KILL", record[1])
		}
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(listLoopDevices(t, c, "squashfs")) == 0 }), "after %d ms", ms)
	}
	assert.Positive(t, met, "no launch met the kill")
	requireOutput(t, "image", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "cat", "/etc/gojail-jail"))
	endTemplates(t, c, "squashfs", 0)
}
