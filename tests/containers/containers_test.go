// SPDX-License-Identifier: Apache-2.0

package containers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// tree is the root that `make containers` makes.
const tree = "../../build/cache/containers"

// settings are the jails of docs/containers.md, all with that root.
const settings = `default = "usual"
allow_none = true
scratch    = "/var/lib/gojail/%n"
[slurm]
spool = "/var/spool/slurmd/%n"
[jail.usual]
root = "/srv/jails/containers"
[jail.containers]
root = "/srv/jails/containers"
seccomp = "containers"
devices = ["/dev/fuse"]
[jail.ids]
root = "/srv/jails/containers"
seccomp = "containers"
no_new_privs = false
options = ["nodev"]
`

// prepare makes a root with busybox as $ROOT and as the image img.tar and img.sqsh of it.
const prepare = `export HOME=/tmp/home ROOT=/tmp/root
mkdir -p $HOME $ROOT/bin $ROOT/dev $ROOT/etc $ROOT/home $ROOT/mnt $ROOT/proc $ROOT/root $ROOT/run $ROOT/sys $ROOT/tmp $ROOT/usr/bin /tmp/m /tmp/u /tmp/w
cp /bin/busybox $ROOT/bin && ln -s busybox $ROOT/bin/sh
for f in passwd group hosts resolv.conf; do touch $ROOT/etc/$f; done
tar -C $ROOT -cf /tmp/img.tar . && mksquashfs $ROOT /tmp/img.sqsh -quiet >/dev/null
{ podman import -q /tmp/img.tar img; } >/dev/null 2>&1
cd /tmp
`

const noNamespace = "Operation not permitted"

// programs are run in each setting. What is wanted is in the output; an empty string is for settings that make no difference to the one before.
var programs = []struct {
	name, command          string
	usual, containers, ids string // what alice sees, who has ids in /etc/subuid
	single                 string // what bob sees in containers, who has none; empty: as alice
}{
	{name: "unshare", command: "unshare -r id -u", usual: noNamespace, containers: "0"},
	{name: "bubblewrap", command: "bwrap --ro-bind / / --proc /proc --dev /dev echo ran", usual: "No permissions to create new namespace", containers: "ran"},
	{name: "bubblewrap with a PID namespace", command: "bwrap --unshare-pid --ro-bind / / --proc /proc --dev /dev echo ran",
		usual: "No permissions to create new namespace", containers: "Can't mount proc"},
	{name: "bubblewrap with a PID namespace and /proc of the jail", command: "bwrap --unshare-pid --ro-bind / / --bind /proc /proc --dev /dev echo ran",
		usual: "No permissions to create new namespace", containers: "ran"},
	{name: "Charliecloud", command: "ch-run $ROOT -- /bin/busybox echo ran", usual: noNamespace, containers: "ran"},
	{name: "PRoot", command: "proot -R $ROOT /bin/busybox echo ran", usual: "ran", containers: "ran"},
	{name: "Podman", command: "podman run --rm img /bin/busybox id -u", usual: "cannot clone: Operation not permitted",
		containers: "newuidmap: write to uid_map failed: Operation not permitted", ids: "0", single: "0"},
	{name: "Podman with a PID namespace", command: "podman run --rm --pid=private img /bin/busybox id -u", usual: "cannot clone",
		containers: "newuidmap", ids: "mount `proc` to `proc`: Operation not permitted", single: "mount `proc` to `proc`"},
	{name: "Podman, other ids", command: `podman run --rm img /bin/busybox sh -c 'busybox touch /tmp/x && busybox chown 5:5 /tmp/x && echo changed'`,
		usual: "cannot clone", containers: "newuidmap", ids: "changed", single: "chown: /tmp/x: Invalid argument"},
	{name: "Podman build", command: `printf 'FROM localhost/img\nRUN busybox touch /tmp/x && busybox chown 5:5 /tmp/x\nRUN echo built\n' >Containerfile; ` +
		"podman build --isolation=chroot -t new . 2>&1", usual: "cannot clone", containers: "newuidmap", ids: "Successfully tagged localhost/new",
		single: "setting supplemental groups list: operation not permitted"},
	{name: "Buildah", command: "c=$(buildah from localhost/img) && buildah run --isolation=chroot $c /bin/busybox echo ran",
		usual: "Operation not permitted", containers: "newuidmap", ids: "ran", single: "operation not permitted"},
	{name: "a file system of FUSE", command: "squashfuse img.sqsh m; ls m", usual: "device not found, try 'modprobe fuse' first",
		containers: "mount failed: Operation not permitted", ids: "modprobe fuse"},
	{name: "a file system of FUSE in a user namespace", command: "unshare -rm sh -c 'squashfuse img.sqsh m && ls m'", usual: noNamespace,
		containers: "bin", ids: "modprobe fuse"},
	{name: "an overlay in a user namespace", command: "unshare -rm sh -c 'mount -t overlay overlay -o lowerdir=root,upperdir=u,workdir=w m && ls m/bin'",
		usual: noNamespace, containers: "busybox"},
}

// startSite starts a cluster with the jails of settings.
func startSite(t *testing.T) *harness.Cluster {
	t.Helper()
	if _, err := os.Stat(tree); err != nil {
		t.Skip("needs a root with Podman and the like; run: make containers")
	}
	c := harness.Start(t, harness.Options{Plugin: true, Bare: true, Config: settings})
	root := filepath.Join(c.Dir, "root/srv/jails/containers") // by hard links, as the harness copies its own
	out, err := exec.Command("cp", "-al", mustResolve(t, tree), root).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, node := range harness.Nodes {
		require.Zero(t, c.Gojail(node, "init", "usual").Code)
	}
	if r := c.Run(harness.Alice, "unshare", "--user", "true"); r.Code != 0 {
		t.Skip("needs user namespaces for users: " + r.Stderr)
	}
	// As udev(7) makes it: on this machine it may be root's.
	r := c.Root("sh", "-c", "mknod -m 666 /opt/fuse c 10 229 && mount --bind /opt/fuse /dev/fuse")
	require.Zero(t, r.Code, "needs the kernel's fuse: %s", r)
	return c
}

func mustResolve(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	require.NoError(t, err)
	return path
}

// TestProgramsOfContainers runs each program in each setting.
func TestProgramsOfContainers(t *testing.T) {
	c := startSite(t)
	var all strings.Builder
	all.WriteString(prepare)
	for _, p := range programs {
		all.WriteString("echo '" + p.name + ":'\n(" + p.command + ") 2>&1 </dev/null\n")
	}
	for _, jail := range []string{"usual", "containers", "ids"} {
		for _, user := range []string{harness.Alice, harness.Bob} {
			if user == harness.Bob && jail != "containers" {
				continue
			}
			seen := c.Run(user, "srun", "-Q", "-wn1", "--jail="+jail, "sh", "-c", all.String()).Stdout
			for _, p := range programs {
				want := p.containers
				switch {
				case jail == "usual":
					want = p.usual
				case jail == "ids" && p.ids != "":
					want = p.ids
				case user == harness.Bob && p.single != "":
					want = p.single
				}
				_, part, _ := strings.Cut(seen, p.name+":\n")
				for _, next := range programs {
					part, _, _ = strings.Cut(part, "\n"+next.name+":\n")
				}
				assert.Contains(t, part, want, "%s of %s in %s", p.name, user, jail)
			}
		}
	}
}
