// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Names with each character that the kernel escapes, idle and used automounts, and mount points that come and go.
const oddMounts = `/dev/vda1 / ext4 rw,relatime 0 0
//10.0.0.1/3.\040Projects/seq\040list /mnt/seq\040list cifs rw,vers=3.0 0 0
/dev/tab\011a /mnt/tab\011b ext4 rw 0 0
/dev/line\012a /mnt/line\012b ext4 rw 0 0
/dev/back\134a /mnt/back\134b ext4 rw 0 0
srv:/hash\043a /mnt/hash\043b nfs ro 0 0
/dev/vdb /mnt/plain040x ext4 ro 0 0
/dev/vdc /mnt/plain\040x ext4 rw 0 0
 /mnt/nameless tmpfs rw 0 0
systemd-1 /data autofs rw,relatime,fd=48,pgrp=1,timeout=0,minproto=5,maxproto=5,direct,pipe_ino=1 0 0
/etc/auto.direct /direct autofs rw,fd=6,pgrp=1,timeout=300,minproto=5,maxproto=5,direct 0 0
srv:/direct /direct nfs4 rw,vers=4.2 0 0
/etc/auto.home /home autofs rw,fd=6,pgrp=1,timeout=300,minproto=5,maxproto=5,indirect 0 0
srv:/home/alice /home/alice nfs4 rw,vers=4.2 0 0
systemd-1 /proc/sys/fs/binfmt_misc autofs rw,fd=1,direct 0 0
tmpfs /run/user/0 tmpfs rw 0 0
/dev/loop0 /snap/core20/1 squashfs ro 0 0
/dev/loop1 /opt/cd iso9660 ro 0 0
proc /proc proc rw 0 0
`

// mountsTable has checks with their faults: "" none, "?" a remark.
var mountsTable = []struct{ check, fault string }{
	// Escapes: nhc-genconf's form, the kernel's, and the name itself.
	{`check_fs_mount_rw -t "cifs" -s "//10.0.0.1/3.\040Projects/seq\040list" -f "/mnt/seq\040list"`, ""},
	{`check_fs_mount_rw -t "cifs" -s "//10.0.0.1/3.040Projects/seq040list" -f "/mnt/seq040list"`, ""},
	{`check_fs_mount_rw -t "cifs" -s "//10.0.0.1/3.\\040Projects/seq\\040list" -f "/mnt/seq\\040list"`, ""},
	{`check_fs_mount_rw -t "cifs" -s "//10.0.0.1/3. Projects/seq list" -f "/mnt/seq list"`, ""},
	{`check_fs_mount_rw -s '//10.0.0.1/*' -f "/mnt/seq list"`, ""},
	{`check_fs_mount_rw -s '/3\\\. Projects/' -f "/mnt/seq list"`, ""},
	{`check_fs_mount_rw -s '!*Projects*' -f "/mnt/seq list"`, "source of /mnt/seq list: //10.0.0.1/3. Projects/seq list instead of !*Projects*"},
	{`check_fs_mount_rw -s '!*\040Projects*' -f "/mnt/seq list"`, "source of /mnt/seq list: //10.0.0.1/3. Projects/seq list instead of !*040Projects*"},
	{`check_fs_mount_rw -s "//10.0.0.2/x" -f "/mnt/seq\040list"`, "source of /mnt/seq040list: //10.0.0.1/3. Projects/seq list instead of //10.0.0.2/x"},
	{`check_fs_mount -s '/dev/tab\011a' -f '/mnt/tab\011b'`, ""},
	{`check_fs_mount -s '/dev/line\012a' -f '/mnt/line\012b'`, ""},
	{`check_fs_mount -s '/dev/back\134a' -f '/mnt/back\134b'`, ""},
	{`check_fs_mount -s '/dev/back\\\\a' -f '/mnt/back\\b'`, ""}, // a match string, in which a backslash is an escape
	{`check_fs_mount -s 'srv:/hash\043a' -f '/mnt/hash\043b'`, ""},
	{`check_fs_mount -s 'srv:/hash#a' -f '/mnt/hash#b'`, ""},
	{`check_fs_mount_rw /mnt/seq\040list //10.0.0.1/3.\040Projects/seq\040list cifs`, ""},
	{`check_fs_mount_ro -f /mnt/plain040x`, ""},
	{`check_fs_mount_rw -f '/mnt/plain x'`, ""},
	{`check_fs_mount -t tmpfs -s '' -f /mnt/nameless`, ""},
	{`check_fs_mount -f /mnt/seq`, "/mnt/seq is not mounted"},
	{`check_fs_mount -f /mnt/hash\043b/`, ""},

	// Automounts: idle and used, with a direct and an indirect map.
	{"check_fs_mount -f /data", ""},
	{"check_fs_mount_rw -f /data", ""},
	{"check_fs_mount -t autofs -f /data", ""},
	{"check_fs_mount -t xfs -s /dev/vdb1 -f /data", "?/data is an idle automount; write -F in place of -f"},
	{"check_fs_mount -s /dev/vdb1 -f /data", "?/data is an idle automount; write -F in place of -f"},
	{"check_fs_mount_ro -f /data", "?/data is an idle automount; write -F in place of -f"},
	{"check_fs_mount -t xfs -f /data -f /nothing", "/nothing is not mounted"},
	{"check_fs_mount -t xfs -F /data", "type of /data: autofs instead of xfs"},
	{"check_fs_mount -F /data", "/data is an automount that mounts nothing"},
	{"check_fs_mount -t autofs -F /data", ""},
	{"check_fs_mount -t nfs4 -s srv:/direct -f /direct", ""},
	{"check_fs_mount -t nfs4 -s srv:/direct -F /direct", ""},
	{"check_fs_mount -t nfs3 -f /direct", "type of /direct: nfs4 instead of nfs3"},
	{"check_fs_mount -F /home", ""},
	{"check_fs_mount -t nfs4 -f /home/alice", ""},
	{"check_fs_mount -t nfs4 -f /home/bob", "?/home/bob is not in use below the automount /home; write -F in place of -f"},
	{"check_fs_mount -t nfs4 -f /home/alice/sub", "/home/alice/sub is not mounted"},
	{"check_fs_mount -t nfs4 -F /home/bob", "/home/bob is not mounted"},
	{"check_fs_mount_rw -t binfmt_misc -s binfmt_misc -f /proc/sys/fs/binfmt_misc", "?/proc/sys/fs/binfmt_misc is an idle automount; write -F in place of -f"},

	// File systems without space.
	{"check_fs_used /opt/cd 100%", "?/opt/cd is a iso9660, which is always full"},
	{"check_fs_free /proc 3%", "?/proc has no size of its own, which NHC ignores"},
	{"check_fs_used /nothing 90%", "?/nothing is not a mount point, which NHC ignores"},
	{"check_fs_free // 0%", ""},

	// Mount points that come and go are left out; the others of the line are not.
	{"check_fs_mount_rw -t ext4 -f / -f /run/user/1000", ""},
	{"check_fs_mount_rw -f /run/user/1000 -f /nothing", "/nothing is not mounted"},
	{"check_fs_mount -f /run/user", "/run/user is not mounted"},
	{"check_fs_mount -f /var/lib/docker", "/var/lib/docker is not mounted"},
	{"check_fs_mount -f /var/lib/docker/overlay2", "/var/lib/docker/overlay2 is not mounted"},
	{"check_fs_mount -f /var/lib/containers/storage", "/var/lib/containers/storage is not mounted"},
	{"check_fs_mount -f /var/lib/lxcfs", "/var/lib/lxcfs is not mounted"},
	{"check_fs_mount -f /snap", "/snap is not mounted"},
	{"check_fs_mount -f /media", "/media is not mounted"},
	{"check_fs_mount -f /sys/kernel/debug", "/sys/kernel/debug is not mounted"},
}

func TestMounts(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/self", 0o755))
	require.NoError(t, os.WriteFile(dir+"/self/mounts", []byte(oddMounts), 0o644))
	for _, c := range mountsTable {
		lines := Parse("* || "+c.check, "n1")
		require.Len(t, lines, 1)
		require.Empty(t, lines[0].Problem, c.check)
		got, err := lines[0].Check(t.Context(), &System{Proc: dir, Now: time.Now})
		if err != nil {
			got = "?" + err.Error()
		}
		assert.Equal(t, c.fault, got, c.check)
	}
}

// TestTransientMounts: list says which lines of nhc-genconf to take out.
func TestTransientMounts(t *testing.T) {
	for path, with := range map[string]string{
		"/run/user/1000": "sessions of its user", "/run/user/1000/gvfs": "sessions of its user", "/var/run/user/0": "sessions of its user", "/run/user/1000/": "sessions of its user",
		"/run/credentials/systemd-sysctl.service": "a service", "/run/netns/cni-1": "a network namespace", "/run/netns": "a network namespace",
		"/run/docker/netns/default": "a container", "/var/lib/docker/overlay2/ab12/merged": "a container", "/var/lib/docker/containers/ab12/mounts/shm": "a container",
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/ab/rootfs": "a container", "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/ab/shm": "a container",
		"/var/lib/containers/storage/overlay/ab/merged": "a container", "/var/lib/containers/storage/overlay": "a container",
		"/var/lib/containers/storage/overlay-containers/ab/userdata/shm": "a container", "/var/lib/kubelet/pods/1/volumes/x": "a container",
		"/home/alice/.local/share/containers/storage/overlay": "a container", "/scratch/docker/overlay2/ab/merged": "a container",
		"/snap/core20/2015": "a version of its package", "/var/lib/snapd/snap/core/1": "a version of its package", "/run/snapd/ns/lxd.mnt": "a container",
		"/run/media/alice/usb": "a medium", "/media/cdrom": "a medium", "/tmp/.mount_appXYZ": "a program", "/sys/kernel/debug/tracing": "its first use",
	} {
		want := path + " comes and goes with " + with + "; take it out"
		for _, check := range []string{"check_fs_mount_rw -t \"x\" -s \"y\" -f \"" + path + "\"", "check_fs_mount " + path, "check_fs_mount -F " + path,
			"check_fs_free " + path + " 3%", "check_fs_used " + path + " 90%", "check_fs_iused " + path + " 98%"} {
			l := Parse("* || "+check, "n1")[0]
			assert.Equal(t, want, l.Problem, check)
		}
		l := Parse("* || check_fs_mount -f / -f "+path, "n1")[0]
		assert.Empty(t, l.Problem, path)
		assert.Equal(t, []string{want}, l.Notes)
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(oddMounts, "/mnt/seq list", "*\\040list")
	f.Add(mountTable, "/home", "server:*")
	f.Add("a\\04 /\\7777 x y\n", "/", "/a/")
	f.Fuzz(func(t *testing.T, text, path, want string) {
		list := parseMounts(text)
		for _, m := range list {
			require.NotEmpty(t, m.point)
			found, ok := list.find(decodeOctal(m.point))
			require.True(t, ok)
			require.Equal(t, decodeOctal(m.point), decodeOctal(found.point))
		}
		list.find(path)
		list.findAutomount(path)
		if m, err := parseMatch(want); err == nil && len(list) > 0 {
			_ = m.matchesField(list[0].source)
			require.NotEqual(t, m.matchesField(path), (&match{text: "!" + want, not: !m.not, expr: m.expr, ranges: m.ranges}).matchesField(path))
		}
		_ = strings.TrimSpace(explainTransient(path))
	})
}
