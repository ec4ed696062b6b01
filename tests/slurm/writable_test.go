// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// formatWritableConfig returns the configuration of a jail image, with a root of that kind, where each job may write.
func formatWritableConfig(kind, where string) string {
	config := strings.Replace(formatImageConfig(kind), `jail_root = ["self", "range"]`, `jail_root = ["self"]`+"\nwritable = \""+where+`"`, 1)
	if kind == "directory" {
		config = strings.Replace(config, "/srv/jails/image.directory", "/srv/jails/other", 1)
	}
	return config + "[[jail.image.user_mounts]]\nsource = \"/data\"\n"
}

func TestWritableRoot(t *testing.T) {
	for _, test := range []struct{ kind, where string }{
		{"squashfs", "tmpfs"}, {"squashfs", "disk"}, {"erofs", "disk"}, {"directory", "tmpfs"}, {"directory", "disk"},
	} {
		t.Run(test.kind+" on "+test.where, func(t *testing.T) {
			c := sharedCluster(t)
			configure(t, c, formatWritableConfig(test.kind, test.where))
			if test.kind != "directory" {
				makeImage(t, c, test.kind, test.where == "tmpfs" || test.kind == "erofs")
			}
			r := c.Gojail("n1", "check")
			assert.NotContains(t, r.Stdout, "FAIL  jail image", r)
			// A user changes what is the user's, and root all; a later step sees it, also as root and with --jail-mount.
			job := c.Batch("root", `set -e
echo changed >/etc/gojail-jail; mkdir /opt/new; rm /etc/debian_version; mv /usr/share/doc /usr/share/docs 2>/dev/null || cp -a /usr/share/doc /usr/share/docs
srun -Q cat /etc/gojail-jail
srun -Q --jail-mount=/data:/mnt sh -c 'cat /etc/gojail-jail; ls -d /opt/new; echo also >/opt/new/file'
srun -Q cat /opt/new/file
test ! -e /etc/debian_version
stat -fc %T /
findmnt -no OPTIONS / | grep -o nosuid
`, "-wn1", "--jail=image", "--chdir=/tmp", "--output=/home/alice/writable.out")
			t.Cleanup(func() { os.Remove(c.Path("/home/alice/writable.out")) })
			assert.Equal(t, "changed\nchanged\n/opt/new\nalso\noverlayfs\nnosuid\n", job.Output, job)
			assert.Equal(t, "COMPLETED", job.State, job)

			requireOutput(t, "no", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "sh", "-c", "test -e /opt/new && echo yes || echo no"))
			r = c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "sh", "-c", "echo >/etc/theirs; cat /run/gojail/n1/site /var/lib/gojail/n1/jobs/*/root.image/upper/*")
			assert.Contains(t, r.Stderr, "/etc/theirs: Permission denied", r)
			requireOutput(t, "0 mine", c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "--jail-root=self", "sh", "-c", "id -u | tr '\\n' ' '; echo mine >/tmp/x && cat /tmp/x"))
			require.True(t, c.WaitIdle())
			requireOnlySpares(t, c)
			endTemplates(t, c, test.kind, 0)
		})
	}
}

// TestWritableRootWithoutMountsOfAnother: two sandboxes of a job have its root in common, and not what one of them shows there.
func TestWritableRootWithoutMountsOfAnother(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, formatWritableConfig("directory", "tmpfs"))
	job := c.Batch(harness.Alice, `set -e
mountpoint -q /mnt && echo the first has it
srun -Q --jail-mount=/data:/media sh -c 'mountpoint -q /mnt || echo the second has not; mountpoint -q /media && echo its own'
`, "-wn1", "--jail=image", "--jail-mount=/data:/mnt", "--chdir=/tmp", "--output=/home/alice/writable.out")
	t.Cleanup(func() { os.Remove(c.Path("/home/alice/writable.out")) })
	assert.Equal(t, "the first has it\nthe second has not\nits own\n", job.Output, job)
}

// TestWritableRootOutlivesItsHolder on disk, and in memory it begins anew.
func TestWritableRootOutlivesItsHolder(t *testing.T) {
	for where, want := range map[string]string{"disk": "changed", "tmpfs": "no file"} {
		t.Run(where, func(t *testing.T) {
			c := sharedCluster(t)
			configure(t, c, formatWritableConfig("directory", where))
			_, id := allocate(t, c)
			step := func(script string) harness.Result {
				return c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=image", "sh", "-c", script)
			}
			requireOutput(t, "", step("echo changed >/var/tmp/file"))
			c.Root("kill", "-KILL", strconv.Itoa(readRecordPid(t, c, "jobs/"+id+"/image")))
			require.True(t, harness.Poll(harness.Timeout, func() bool { return countHolders(c) == 0 }))
			requireOutput(t, want, step("cat /var/tmp/file 2>/dev/null || echo no file"))
			requireMissing(t, c, "/srv/jails/other/var/tmp/file")
		})
	}
}

// TestWritableRootOfTasksWithoutHolder: no second overlay has the changes while tasks have the first one.
func TestWritableRootOfTasksWithoutHolder(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(formatWritableConfig("directory", "disk"), "jail_root = ", "namespaces = []\njail_root = ", 1)) // else they end with it
	_, id := allocate(t, c)
	step := func(script string) harness.Result {
		return c.Run(harness.Alice, "srun", "--overlap", "--jobid="+id, "--jail=image", "sh", "-c", script)
	}
	requireOutput(t, "", step("echo changed >/var/tmp/file"))
	// It ends when the next step after it can write.
	done := make(chan harness.Result, 1)
	go func() { done <- step("echo $$ >/var/tmp/running; while test ! -e /tmp/end; do sleep 0.1; done") }()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return step("test -e /var/tmp/running").Code == 0 }))
	c.Root("kill", "-KILL", strconv.Itoa(readRecordPid(t, c, "jobs/"+id+"/image")))
	require.True(t, harness.Poll(harness.Timeout, func() bool { return countHolders(c) == 0 }))

	r := step("cat /var/tmp/file")
	assert.NotZero(t, r.Code)
	assert.Contains(t, r.Stderr, "writable: processes of an earlier sandbox of this job still run and use its changes to the jail's root", r)
	runAsRoot(t, c, "touch /var/lib/gojail/n1/jobs/"+id+"/tmp/end")
	r = <-done
	assert.Zero(t, r.Code, r)
	requireOutput(t, "changed", step("cat /var/tmp/file"))
}

// TestWritableRootHalfMade: what a launcher that was killed left of the layers is completed.
func TestWritableRootHalfMade(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, formatWritableConfig("directory", "disk"))
	_, id := allocate(t, c)
	job := "/var/lib/gojail/n1/jobs/" + id
	runAsRoot(t, c, "mkdir -p "+job+"/tmp "+job+"/root.image/work "+job+"/root.image/new; chmod 1777 "+job+"/tmp; chmod -R 700 "+job+"/root.image; chown alice "+job)
	requireOutput(t, "755", c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=image", "stat", "-c", "%a", "/"))
}

// TestWritableRootIsLimited: writable_size in memory.
func TestWritableRootIsLimited(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(formatWritableConfig("directory", "tmpfs"), "writable = ", "writable_size = \"8M\"\nwritable = ", 1))
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "sh", "-c", "head -c 16M /dev/zero >/var/tmp/file")
	assert.Contains(t, r.Stderr, "No space left on device", r)
	require.True(t, c.WaitIdle())
}
