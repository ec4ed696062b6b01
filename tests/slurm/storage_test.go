// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// cannotMap is what a step says of storage on which --jail-root=range does not work.
const cannotMap = "--jail-root=range: the file system of the jail's root cannot map ids (invalid argument); use --jail-root=self"

// mountRoot makes a root of a jail for the rest of the test with mount(8), from the jail debian.
func mountRoot(t *testing.T, c *harness.Cluster, commands ...[]string) {
	t.Helper()
	for _, dir := range []string{"stored", "stored-upper", "stored-work"} {
		require.Zero(t, c.Root("mkdir", "/srv/jails/"+dir).Code)
	}
	t.Cleanup(func() {
		for _, command := range [][]string{{"gojail", "--node=n1", "--state=/run/gojail/%n", "reload", "stored"}, {"umount", "-l", "/srv/jails/stored"},
			{"rm", "-rf", "/srv/jails/stored", "/srv/jails/stored-upper", "/srv/jails/stored-work"}} {
			r := c.Root(command...)
			assert.Zero(t, r.Code, r)
		}
	})
	for _, command := range commands {
		r := c.Root(command...)
		require.Zero(t, r.Code, r)
	}
}

// TestKindsOfStorage: init, check, steps and run on an overlay, on a root that is read-only, and through FUSE.
func TestKindsOfStorage(t *testing.T) {
	c := sharedCluster(t)
	allowRange(t, c)
	for name, test := range map[string]struct {
		mounts   [][]string
		config   string
		init     string // "": it succeeds
		cannot   bool   // map ids
		describe string
	}{
		"overlay": {[][]string{{"mount", "-t", "overlay", "-o", "lowerdir=/srv/jails/debian,upperdir=/srv/jails/stored-upper,workdir=/srv/jails/stored-work", "overlay", "/srv/jails/stored"}},
			"", "", true, `storage overlay \(overlay\) on /srv/jails/stored`},
		"read-only": {[][]string{{"mount", "--bind", "/srv/jails/debian", "/srv/jails/stored"}, {"mount", "-o", "remount,bind,ro", "/srv/jails/stored"}},
			"readonly = true\n", "", false, `storage \S+ \(\w+\) on /srv/jails/stored, ro`},
		"read-only without a target": {[][]string{{"mount", "--bind", "/srv/jails/debian", "/srv/jails/stored"}, {"mount", "-o", "remount,bind,ro", "/srv/jails/stored"}},
			"[[jail.stored.mounts]]\nsource = \"/data\"\ndestination = \"/opt/new\"\n",
			"jail stored: /srv/jails/stored is read-only on this node (cannot create the file /.gojail.lock); run it on a node that mounts it writable", false, ""},
		"FUSE": {[][]string{{"bindfs", "/srv/jails/debian", "/srv/jails/stored", "-o", "subtype=bindfs"}}, "", "", true, `storage \S+ \(fuse\.bindfs\) on /srv/jails/stored, nosuid, nodev`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(test.mounts[0][0]); err != nil || c.Root("which", test.mounts[0][0]).Code != 0 {
				t.Skip("needs " + test.mounts[0][0] + " on the machine: make deps")
			}
			jail := "[jail.stored]\nroot = \"/srv/jails/stored\"\n"
			configure(t, c, harness.DefaultConfig+jail+test.config)
			mountRoot(t, c, test.mounts...)
			r := c.Gojail("n1", "init", "stored")
			if test.init != "" {
				assert.NotZero(t, r.Code)
				assert.Equal(t, "gojail: "+test.init+"\n", r.Stderr)
				return
			}
			require.Zero(t, r.Code, r)
			found := c.Gojail("n1", "check").Stdout
			assert.NotContains(t, found, "FAIL  jail stored")
			assert.Regexp(t, "(?m)^OK    jail stored: "+test.describe+".*; 1000 lstat in ", found)
			step := func(args ...string) harness.Result {
				return c.Run(harness.Alice, slices.Concat([]string{"srun", "-Q", "-wn1", "-n1", "--jail=stored"}, args)...)
			}
			requireOutput(t, "debian", step("cat", marker))
			requireOutput(t, "debian", c.Gojail("n1", "run", "stored", "--", "cat", marker))
			if test.config == "" {
				job := c.Batch(harness.Alice, "echo written here\n", "-wn1", "--jail=stored", "--output=/home/alice/stored.out")
				t.Cleanup(func() { os.Remove(c.Path("/srv/jails/debian/home/alice/stored.out")) })
				assert.Equal(t, "COMPLETED", job.State, job)
				assert.Equal(t, "written here\n", readFile(c, "/srv/jails/stored/home/alice/stored.out"), job)
			}
			require.NoError(t, c.WriteConfig(harness.DefaultConfig+jail+"jail_root = [\"self\", \"range\"]\n"+test.config))
			requireOutput(t, "0", step("--jail-root=self", "id", "-u"))
			found = c.Gojail("n1", "check").Stdout
			if test.cannot {
				requireRefused(t, cannotMap, step("--jail-root=range", "id", "-u"))
				assert.Contains(t, found, "FAIL  jail stored: --jail-root=range: the file system of /srv/jails/stored cannot map ids (invalid argument); remove \"range\" from jail_root, or use ext4, xfs or btrfs there\n")
				return
			}
			assert.NotContains(t, found, "FAIL  jail stored")
			requireOutput(t, "0", step("--jail-root=range", "id", "-u"))
		})
	}
}
