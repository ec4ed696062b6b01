// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// layoutConfig is gojail.toml with a jail that has the programs of another one.
const layoutConfig = `default = "none"
allow_none = true
scratch = "/var/lib/gojail/%n"
[slurm]
spool = "/var/spool/slurmd/%n"
[jail.NAME]
root = "/srv/jails/NAME"
[[jail.NAME.mounts]]
destination = "/usr"
source = "/srv/jails/debian/usr"
options = ["rbind", "nosuid", "nodev"]
`

// layoutTree makes a jail with the programs of another one.
const layoutTree = `mkdir /srv/jails/NAME
cd /srv/jails/debian
cp -al bin sbin lib* etc ../NAME
cp -a home data ../NAME
cd ../NAME
mkdir -p usr dev/shm proc sys run srv opt var/lib var/log var/spool
mkdir -m 1777 tmp var/tmp
`

// target is a name in the jail that gojail.toml mounts a file of the node on.
type target struct {
	name string
	tree string // shell script in the root of the jail
	host string // the file
	same string // another name of what the jail has there, which jobs are to see as it is; "": none
	move string // shell script in the root of the jail, while a template has the mount
}

var targets = []target{
	{name: "real", tree: "echo jail >etc/f", host: "/etc/f", move: "echo new >etc/f.new; mv etc/f.new etc/f"},
	{name: "link", tree: "echo jail >etc/g; ln -s g etc/f", host: "/etc/f", same: "/etc/g", move: "ln -s g etc/f.new; mv -T etc/f.new etc/f"},
	{name: "abs", tree: "mkdir -p opt/x; echo jail >opt/x/g; ln -s /opt/x/g etc/f", host: "/etc/f", same: "/opt/x/g", move: "rm etc/f; echo new >etc/f"},
	{name: "chain", tree: "echo jail >etc/g; ln -s g etc/h; ln -s h etc/f", host: "/etc/f", same: "/etc/h", move: "mv etc/f etc/f.old; touch etc/f"},
	{name: "dangling", tree: "ln -s nosuch etc/f", host: "/etc/f"},
	{name: "run", tree: "ln -s ../run/systemd/resolve/stub etc/f", host: "/etc/f"},
	{name: "directory", tree: "mkdir etc/d; ln -s d etc/f", host: "/etc/f", move: "rm etc/f; ln -s nosuch etc/f"},
	{name: "outward", tree: "ln -s ../../../../../../etc/shadow etc/f", host: "/etc/f"},
	{name: "below", tree: "mkdir srv/x; ln -s srv/x site; echo jail >srv/x/g; ln -s g srv/x/f", host: "/site/f", same: "/site/g", move: "mv srv/x srv/y; mkdir srv/x; echo new >srv/x/f"},
	{name: "passwd", tree: "mv etc/passwd etc/passwd.site; ln -s passwd.site etc/passwd", host: "/etc/passwd", same: "/etc/passwd.site"},
}

// TestFileOfTheNodeHidesNoOther mounts files of the node on names of a jail that are symbolic links, or lead
// through them, and exchanges what has the name while a template has the mount. Jobs see the node's file by that
// name and the jail's by all others.
func TestFileOfTheNodeHidesNoOther(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: strings.Split(strings.ReplaceAll(layoutConfig, "NAME", "debian"), "[[")[0]})
	shell := func(script string) {
		r := c.Root("sh", "-euc", script)
		require.Zero(t, r.Code, r)
	}
	shell("mkdir -p /site; echo node | tee /etc/f >/site/f")
	for _, kind := range []string{"", "writable = \"tmpfs\"\n"} {
		for i, row := range targets {
			t.Run(row.name+kind, func(t *testing.T) {
				jail := "t" + formatNumber(uint64(i))
				if kind != "" {
					jail += "w"
				}
				shell(strings.ReplaceAll(layoutTree, "NAME", jail) + row.tree)
				keys := "host = [\"" + row.host + "\"]\n" + kind
				require.NoError(t, c.WriteConfig(strings.Replace(strings.ReplaceAll(layoutConfig, "NAME", jail), "[[", keys+"[[", 1)))
				made := c.Gojail("n1", "init", jail)
				require.Zero(t, made.Code, made)
				want := "node"
				if row.name == "passwd" {
					want = "alice:x:5001:5001::/home/alice:/bin/bash"
				}
				see := func() harness.Result {
					return c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail="+jail, "grep", "-m1", "node\\|^alice:\\|jail\\|^new$", row.host)
				}
				requireOutput(t, want, see())
				if row.same != "" {
					other := c.Run(harness.Alice, "srun", "-wn1", "--jail="+jail, "cat", row.same)
					assert.NotContains(t, other.Stdout, "node\n", other)
					assert.Contains(t, other.Stdout, readFile(c, "/srv/jails/"+jail+strings.Replace(row.same, "/site", "/srv/x", 1)), other)
				}
				if row.move != "" {
					shell("cd /srv/jails/" + jail + "; " + row.move)
					seen := harness.Poll(harness.Timeout, func() bool { return see().Stdout == want+"\n" }) // a sandbox may be a second old
					assert.True(t, seen, see())
					assert.Contains(t, c.Gojail("n1", "check").Stdout, "all mount targets exist")
				}
			})
		}
	}
}

// TestMountsOfTheNodeThatGo: the node's own mounts, as those of login sessions and containers, end no template that has copies of them.
func TestMountsOfTheNodeThatGo(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}})
	shell := func(script string) {
		r := c.Root("sh", "-euc", script)
		require.Zero(t, r.Code, r)
	}
	for _, dir := range []string{"/run/user/5001", "/var/lib/containers/merged"} {
		t.Run(dir, func(t *testing.T) {
			shell("mkdir -p " + dir + "; mount -t tmpfs none " + dir)
			require.Zero(t, c.Gojail("n1", "reload").Code)
			launch := func() {
				requireOutput(t, "ok", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "echo", "ok"))
			}
			launch()
			zygote := readRecordPid(t, c, "jails/debian/zygote")
			shell("umount " + dir + "; rmdir " + dir)
			for range 3 {
				launch()
			}
			assert.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"), "the template stays")
		})
	}
}

// TestLinksWhileOthersRename: a link that leads through ".." fails with EAGAIN while anybody on the node renames files (openat2(2)).
func TestLinksWhileOthersRename(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}})
	r := c.Root("sh", "-euc", "cd /srv/jails/debian; rm -r tmp; ln -s "+strings.Repeat("srv/../", 8)+"var/tmp tmp")
	require.Zero(t, r.Code, r)
	for range 2 {
		busy := c.Exec(context.Background(), harness.Command{Args: []string{"perl", "-e", `alarm 120; chdir "/dev/shm"; mkdir $$; while (1) { rename $$, "$$.b"; rename "$$.b", $$ }`}})
		require.NoError(t, busy.Start())
		t.Cleanup(func() { busy.Process.Kill(); busy.Wait() })
	}
	for range 15 {
		requireOutput(t, "ok", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "--error=/tmp/out", "echo", "ok"))
	}
}
