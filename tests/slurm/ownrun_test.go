// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestRunIsEachSandboxsOwn: what root leaves in /run, in a job, is in no later sandbox, and a job can fill no more than a small tmpfs there.
func TestRunIsEachSandboxsOwn(t *testing.T) {
	c := sharedCluster(t)
	leave := []string{"sh", "-c", "echo x >/run/left && ls -d /run/left"}
	requireOutput(t, "/run/left", c.Run("root", append([]string{"srun", "-wn1", "--jail=debian"}, leave...)...))
	requireOutput(t, "", c.Gojail("n1", "run", "debian", "--", "sh", "-c", "test ! -e /run/left"))
	const look = `ls /run; stat -c '%a %u:%g' /run /run/lock /run/screen; touch /run/lock/mine; touch /run/mine 2>/dev/null && echo written
df --output=size -k /run | tail -n1 | tr -d ' '; /run/gojail/bin/gojail --help >/dev/null && echo command; ls /run/munge`
	for range 2 { // in a sandbox that is made when it is asked for, and in one that was begun before
		requireOutput(t, "gojail\nlock\nmunge\nscreen\n755 0:0\n1777 0:0\n1777 0:0\n65536\ncommand\nmunge.socket.2", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", look))
	}
}

// TestRunOfARange: /run belongs to root in the jail, which may create there what packages need.
func TestRunOfARange(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-root=range", "sh", "-c",
		"mkdir /run/sshd /run/munge/x && touch /run/adduser /run/lock/x && chown 7:8 /run/adduser && stat -c '%a %u:%g' /run /run/lock /run/munge /run/sshd /run/adduser")
	requireOutput(t, "755 0:0\n1777 0:0\n755 0:0\n755 0:0\n644 7:8", r)
}

// runFiles is a file of the jail's tmpfiles.d.
const runFiles = `d /run/enroot 1777 root root -
D /run/enroot/deep 0777 root root -
d /run/sshd 0755 root root -
L /run/shm - - - - /dev/shm
d /run/munge 1777 root root -
d /run/gojail/bin 1777 root root -
L /run/gojail/node - - - - /etc
d /run/systemd/resolve 1777 root root -
L /run/lock - - - - /etc
`

// TestRunHasWhatTheJailsBootMakes for programs of users, in each kind of sandbox, beside what gojail mounts there.
func TestRunHasWhatTheJailsBootMakes(t *testing.T) {
	c := sharedCluster(t)
	roots := "[jail.debian]\njail_root = [\"range\", \"self\"]\n"
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", roots, 1))
	allowRange(t, c)
	file := c.Path("/srv/jails/debian/usr/lib/tmpfiles.d/site.conf")
	require.NoError(t, os.WriteFile(file, []byte(runFiles), 0o644))
	t.Cleanup(func() {
		os.Remove(file)
		c.Gojail("n1", "reload", "debian")
	})
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	const look = `cd /run && mkdir enroot/user enroot/deep/user lock/mine screen/S-alice && echo x >/run/shm/x && cat /dev/shm/x
stat -c '%n %a' enroot enroot/deep munge lock screen; ls -d sshd systemd/resolve 2>/dev/null; test -x /run/gojail/bin/gojail && echo command`
	const want = "x\nenroot 1777\nenroot/deep 1777\nmunge 755\nlock 1777\nscreen 1777\nsystemd/resolve\ncommand"
	for _, options := range [][]string{nil, nil, {"--jail-root=self"}, {"--jail-root=range"}, {"--jail-mount=/data:/mnt"}} {
		r := c.Run(harness.Alice, slices.Concat([]string{"srun", "-wn1", "--jail=debian"}, options, []string{"sh", "-c", look})...)
		requireOutput(t, want, r)
	}
	requireOutput(t, want, c.Gojail("n1", "run", "debian", "-u", "nobody", "--", "sh", "-c", look))
}

// TestRunOfAJailThatUsersWrite: what they write to tmpfiles.d keeps no job from starting.
func TestRunOfAJailThatUsersWrite(t *testing.T) {
	c := sharedCluster(t)
	file := c.Path("/srv/jails/debian/etc/tmpfiles.d")
	t.Cleanup(func() {
		os.RemoveAll(file)
		c.Gojail("n1", "reload", "debian")
	})
	for _, text := range []string{
		"L /run/x - - - - /etc\nd /run/x/y 1777", "d /run/x/y 1777\nL /run/x - - - - /etc", "L /run/x - - - - x\nL /run/x/y - - - - x",
		"d /run/" + strings.Repeat("long/", 50) + " 1777", "d /run/" + strings.Repeat("x", 300) + " 1777", "L /run/gojail - - - - /tmp", "L /run/munge - - - - /tmp",
		"d /run/munge/munge.socket.2 1777", "L /run/munge/munge.socket.2 - - - - /etc/passwd", "d /run/gojail/bin/gojail/x 1777",
	} {
		require.NoError(t, os.RemoveAll(file))
		require.NoError(t, os.MkdirAll(file, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(file, "evil.conf"), []byte(text+"\n"), 0o644))
		require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", "cat "+marker+"; test -S /run/munge/munge.socket.2 && echo munge")
		assert.Equal(t, "debian\nmunge\n", r.Stdout, "%s: %s", text, r)
	}
}

// A package that brings a user, as openssh-server does: its postinst fails if one command does.
const packageScript = `set -e
mkdir -p /tmp/p/DEBIAN
printf 'Package: brings\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: brings a user\n' >/tmp/p/DEBIAN/control
printf '#!/bin/sh -e\ngroupadd --system brought\nuseradd --system --gid brought --no-create-home brought\nmkdir -p /run/brings /var/lib/brings\nchown brought:brought /run/brings /var/lib/brings\n: >/run/lock/brings\n' >/tmp/p/DEBIAN/postinst
chmod 755 /tmp/p/DEBIAN/postinst
dpkg-deb --root-owner-group -b /tmp/p /tmp/brings.deb >/dev/null
dpkg -i /tmp/brings.deb >/dev/null
stat -c %U:%G /var/lib/brings`

// TestPackagesThatBringUsers are installed by range into a jail that has the node's passwd and group;
// later jobs know their users and the node's.
func TestPackagesThatBringUsers(t *testing.T) {
	c := sharedCluster(t)
	r := c.Root("sh", "-c", `cd /srv/jails && cp -al debian fresh && rm -rf fresh/etc fresh/var && cp -a debian/etc debian/var fresh && grep -v alice debian/etc/passwd >fresh/etc/passwd`)
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { c.Root("rm", "-rf", "/srv/jails/fresh") })
	// Nothing that the jail's owner writes there takes the place of a user of the node.
	own, err := os.OpenFile(c.Path("/srv/jails/fresh/etc/passwd"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = own.WriteString("bob:x:77:77::/:/bin/sh\nzero:x:0:0::/:/bin/sh\nperson:x:1077:1077::/:/bin/sh\n+evil:x:78:78::/:/bin/sh\nfine:x:79:79::/:/bin/sh\nhalf:x:80:80")
	require.NoError(t, err)
	require.NoError(t, own.Close())
	configure(t, c, harness.DefaultConfig+"[jail.fresh]\nroot = \"/srv/jails/fresh\"\njail_root = [\"range\"]\nhost = [\"/etc/passwd\", \"/etc/group\"]\n")
	allowRange(t, c)
	r = c.Gojail("n1", "init", "fresh")
	require.Zero(t, r.Code, r)
	alice := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-wn1", "--jail=fresh"}, args...)...)
	}
	requireOutput(t, "alice\nfine\nbob:5002", alice("sh", "-c", "id -un; getent passwd fine | cut -d: -f1; echo bob:$(id -u bob)\ngetent passwd zero person half +evil evil; :"))
	require.Zero(t, c.Root("sh", "-c", "echo >>/srv/jails/fresh/etc/passwd").Code) // useradd of shadow 4.20 refuses a file without its last newline
	requireOutput(t, "brought:brought", alice("--jail-root=range", "sh", "-c", packageScript))
	for range 2 { // the first may be one that was begun before the package came
		// By name: the node may have other users with the ids, which a lookup by id finds first.
		requireOutput(t, "alice\nsame", alice("sh", "-c", "id -un; getent group brought >/dev/null && test $(id -u brought) = $(stat -c %u /var/lib/brings) && echo same"))
	}
	assert.Contains(t, readFile(c, "/srv/jails/fresh/etc/passwd"), "\nbrought:")
	assert.NotContains(t, readFile(c, "/etc/passwd"), "brought")
	// Root reads only what alice could read herself.
	for _, change := range []string{"chmod 600 passwd", "chmod 644 passwd && mv passwd own && ln -s own passwd"} {
		r := c.Root("sh", "-c", "cd /srv/jails/fresh/etc && "+change)
		require.Zero(t, r.Code, r)
		require.Zero(t, alice("true").Code, "its sandbox may be one that was begun before")
		requireOutput(t, "alice\nnone", alice("sh", "-c", "id -un; getent passwd fine || echo none"))
	}
}

// TestManyMountsBelowARecursiveOne: hundreds of homes that an automounter has mounted come along with /home.
func TestManyMountsBelowARecursiveOne(t *testing.T) {
	c := sharedCluster(t)
	const homes = 400
	long := strings.Repeat("long/", 110) + "home"
	r := c.Root("sh", "-c", fmt.Sprintf(`mkdir -p /data/homes && mount -t tmpfs homes /data/homes && cd /data/homes &&
for i in $(seq %d); do mkdir h$i && mount -t tmpfs -o size=4k home h$i || exit 1; done
mkdir -p %s && mount -t tmpfs -o size=4k home %[2]s && echo here >h%[1]d/file`, homes, long))
	t.Cleanup(func() { c.Root("sh", "-c", "umount -R /data/homes; rmdir /data/homes") })
	require.Zero(t, r.Code, r)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.other]\n", "[[jail.debian.mounts]]\ndestination = \"/mnt\"\nsource = \"/data/homes\"\noptions = [\"rbind\"]\n[jail.other]\n", 1))
	for range 2 {
		requireOutput(t, "here", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", filepath.Join("/mnt", fmt.Sprintf("h%d", homes), "file")))
	}
}

// TestRangeReplacesLibraries: a library that is the node's in other steps, as the jail lacks it, can be installed
// by root of a range; later steps have the jail's own, also those of root of a range.
func TestRangeReplacesLibraries(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	step := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-wn1", "--jail=debian"}, args...)...)
	}
	r := step("sh", "-c", "basename -a $(readlink /run/gojail/optional/*); awk '{print $5}' /proc/self/mountinfo")
	require.Zero(t, r.Code, r)
	names := strings.Fields(r.Stdout)
	var library string
	for _, path := range names {
		if strings.HasPrefix(path, "/") && strings.Contains(path, ".so.") && slices.Contains(names, filepath.Base(path)) {
			library = path
		}
	}
	if library == "" {
		t.Skip("needs a Slurm whose commands have a library that the jail lacks")
	}
	t.Cleanup(func() { // a file that is not on the storage of others' jails
		c.Root("sh", "-c", "rm -f /srv/jails/debian"+library+"; : >/srv/jails/debian"+library)
		c.Gojail("n1", "reload", "debian")
	})
	for range 2 {
		requireOutput(t, "own", step("--jail-root=range", "sh", "-c", fmt.Sprintf("echo own >%[1]s.new && mv %[1]s.new %[1]s && cat %[1]s", library)))
	}
	requireOutput(t, "own", step("cat", library))
}
