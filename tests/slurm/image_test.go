// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/imagefile/imagefiletest"
	"github.com/gojail/gojail/tests/harness"
)

// imageConfig is the configuration of a jail whose root is the image of that kind.
func imageConfig(kind string) string {
	return harness.DefaultConfig + `
[jail.image]
root = "/srv/jails/image.` + kind + `"
jail_root = ["self", "range"]
[[jail.image.mounts]]
destination = "/home"
source = "/home"
`
}

// makeImage makes the image as an administrator would: a tree, its mount targets, the image.
func makeImage(t *testing.T, c *harness.Cluster, kind string) {
	t.Helper()
	tree := c.Path("/srv/jails/tree")
	require.NoError(t, exec.Command("cp", "-al", c.Path("/srv/jails/debian"), tree).Run())
	defer os.RemoveAll(tree)
	for _, name := range []string{"etc/gojail-jail", "home"} { // the tree shares its files with debian
		require.NoError(t, os.RemoveAll(filepath.Join(tree, name)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(tree, "home"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "etc/gojail-jail"), []byte("image\n"), 0o644))
	r := c.Gojail("n1", "init", "--tree", "/srv/jails/tree", "image")
	require.Zero(t, r.Code, r)
	to := c.Path("/srv/jails/image." + kind)
	command := []string{"mksquashfs", tree, to, "-quiet", "-no-progress", "-noI", "-noD", "-noF", "-noX", "-noappend"}
	if kind == "erofs" {
		command = []string{"mkfs.erofs", to, filepath.Join(c.Dir, "root/srv/jails/tree")} // it follows no link of /proc
	}
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { os.Remove(to) })
}

// imageMounts returns the loop devices of the jail's image.
func imageMounts(t *testing.T, c *harness.Cluster, kind string) []string {
	return imagefiletest.LoopDevices(t, c.Path("/srv/jails/image."+kind))
}

func TestImageAsRoot(t *testing.T) {
	for _, kind := range []string{"squashfs", "erofs"} {
		t.Run(kind, func(t *testing.T) {
			c := shared(t)
			configure(t, c, imageConfig(kind))
			makeImage(t, c, kind)
			loops := len(imageMounts(t, c, kind))

			r := c.Gojail("n1", "check")
			assert.Contains(t, r.Stdout, "jail image: /srv/jails/image."+kind)
			assert.NotContains(t, r.Stdout, "FAIL  jail image", r)
			assert.Len(t, imageMounts(t, c, kind), loops, "check leaves nothing")

			prints(t, "image", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "cat", "/etc/gojail-jail"))
			r = c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "sh", "-c", "echo >/var/new")
			assert.Contains(t, r.Stderr, "Read-only file system", r)
			if kind == "squashfs" {
				assert.Len(t, imageMounts(t, c, kind), loops+1, "one for template, stage and all jobs of a node")
			}
			prints(t, "image\nimage", c.Run(harness.Alice, "srun", "-N2", "--jail=image", "cat", "/etc/gojail-jail"))
			prints(t, "0", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=self", "id", "-u"))

			job := c.Batch(harness.Alice, "cat /etc/gojail-jail; echo one >/tmp/shared; srun cat /tmp/shared; pwd\n",
				"--jail=image", "--chdir=/home/alice", "--output=/home/alice/image.out")
			t.Cleanup(func() { os.Remove(c.Path("/home/alice/image.out")) })
			assert.Equal(t, "COMPLETED", job.State, job)
			assert.Equal(t, "image\none\n/home/alice\n", job.Output, job)
			assert.Equal(t, job.Output, read(c, "/home/alice/image.out"))

			r = c.Gojail("n1", "run", "image", "--", "cat", "/etc/gojail-jail")
			assert.Equal(t, "image\n", r.Stdout, r)
			if kind == "squashfs" {
				assert.Len(t, imageMounts(t, c, kind), loops+2, "one for each node")
			}
			assert.Contains(t, c.Gojail("n1", "spec", "image").Stdout, `"readonly": true`)

			endImage(t, c, kind, loops)
		})
	}
}

// endImage ends the templates of the image, and fails if a loop device stays.
func endImage(t *testing.T, c *harness.Cluster, kind string, loops int) {
	t.Helper()
	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	for _, node := range harness.Nodes {
		r := c.Gojail(node, "reload")
		require.Zero(t, r.Code, r)
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(imageMounts(t, c, kind)) == loops }), "%v", imageMounts(t, c, kind))
}

func TestImageInARange(t *testing.T) {
	for _, kind := range []string{"squashfs", "erofs"} {
		t.Run(kind, func(t *testing.T) {
			c := shared(t)
			configure(t, c, imageConfig(kind))
			makeImage(t, c, kind)
			ranged(t, c)
			prints(t, "0\n0 0", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=range", "sh", "-c", "id -u; stat -c '%u %g' /etc/passwd"))
			r := c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=range", "sh", "-c", "echo >/var/new")
			assert.Contains(t, r.Stderr, "Read-only file system", r)
			endImage(t, c, kind, 0)
		})
	}
}

func TestImageThatIsRefused(t *testing.T) {
	c := shared(t)
	configure(t, c, imageConfig("squashfs"))
	makeImage(t, c, "squashfs")
	image := c.Path("/srv/jails/image.squashfs")
	says := func(why string) {
		t.Helper()
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "true")
		refused(t, why, r)
		assert.Contains(t, c.Gojail("n1", "check").Stdout, why)
		assert.Contains(t, c.Gojail("n1", "init", "image").Stderr, why)
		assert.Empty(t, imageMounts(t, c, "squashfs"))
	}
	require.NoError(t, os.Chown(image, 5001, 5001))
	says("jail root /srv/jails/image.squashfs cannot be trusted: /srv/jails/image.squashfs: belongs to uid 5001 and not to root")
	require.NoError(t, os.Chown(image, 0, 0))
	info, err := os.Stat(image)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(image, info.Size()/2))
	says("jail root /srv/jails/image.squashfs is truncated: it has ")
	require.NoError(t, os.Truncate(image, 0))
	says("jail root /srv/jails/image.squashfs is not a directory, nor an image")
}
