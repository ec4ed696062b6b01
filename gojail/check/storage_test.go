// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/storage"
)

func init() {
	// The input is the directory of a good node, whose jail is shown by each storage in turn.
	nstest.Actions["storageLines"] = func(dir string) (any, error) {
		n, err := configureChild(dir, "")
		if err != nil {
			return nil, err
		}
		tree := dir + "/tree"
		if err := os.Rename(n.root, tree); err != nil {
			return nil, err
		}
		for _, sub := range []string{"/jail", "/upper", "/work"} {
			if err := os.Mkdir(dir+sub, 0o755); err != nil {
				return nil, err
			}
		}
		mount := func(source, kind string, flags uintptr, options string) func() (func(), error) {
			return func() (func(), error) {
				if err := unix.Mount(source, n.root, kind, 0, options); err != nil {
					return nil, err
				}
				stop := func() { unix.Unmount(n.root, unix.MNT_DETACH) }
				return stop, unix.Mount("", n.root, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")
			}
		}
		found := map[string][]string{}
		for name, show := range map[string]func() (stop func(), err error){
			"overlay": mount("overlay", "overlay", unix.MS_NOSUID|unix.MS_NODEV, "lowerdir="+tree+",upperdir="+dir+"/upper,workdir="+dir+"/work"),
			"noexec": func() (func(), error) {
				if err := unix.Mount(tree, n.root, "", unix.MS_BIND, ""); err != nil {
					return nil, err
				}
				return func() { unix.Unmount(n.root, unix.MNT_DETACH) }, unix.Mount("", n.root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOEXEC, "")
			},
			"FUSE":     func() (func(), error) { return nstest.MountFUSE(tree, n.root) },
			"squashed": func() (func(), error) { return nstest.MountSquashed(tree, n.root) },
		} {
			stop, err := show()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			Check(n.Node, func(f Finding) {
				if strings.HasPrefix(f.Subject, "jail") && (strings.Contains(f.Found, "storage") || f.Level != OK) {
					found[name] = append(found[name], f.String())
				}
			})
			stop()
		}
		return found, nil
	}
}

// One line says what each jail's storage is and can do; only what is wrong has a line more.
func TestCheckDescribesStorage(t *testing.T) {
	nstest.NeedFUSE(t)
	n := newGoodNode(t)
	require.NoError(t, os.Mkdir(n.root+"/root", 0o700))
	var found map[string][]string
	require.NoError(t, nstest.RunText(t, "storageLines", n.dir, &found))
	times := regexp.MustCompile(`lstat in [0-9.]+\S+, median [0-9.]+\S+$`)
	source := regexp.MustCompile(`storage \S+ \(ext4|storage \S+ \(xfs|storage \S+ \(btrfs`)
	for name, lines := range found {
		for i := range lines {
			lines[i] = source.ReplaceAllString(times.ReplaceAllString(strings.ReplaceAll(lines[i], n.dir, "DIR"), "lstat in TIME"), "storage DISK (FS")
		}
		found[name] = lines
	}
	const can, end = "file capabilities; user xattrs; d_type", "; 1000 lstat in TIME"
	assert.Equal(t, map[string][]string{
		"overlay": {"OK    jail a: storage overlay (overlay) on DIR/jail, nosuid, nodev; root is not squashed; cannot map ids (no --jail-root=range); " +
			can + end},
		"noexec": {"OK    jail a: storage DISK (FS) on DIR/jail, ro, noexec; root is not squashed; can map ids; " + can + end,
			"FAIL  jail a: storage DISK (FS) is mounted noexec: no program of the root can be executed, and every new job fails; " +
				"run: mount -o remount,exec DIR/jail; and remove noexec from /etc/fstab"},
		"FUSE": {"OK    jail a: storage DIR/tree (fuse) on DIR/jail, nosuid, nodev, default_permissions; root is not squashed; cannot map ids (no --jail-root=range); " + can + end},
		"squashed": {"OK    jail a: storage DIR/tree (fuse) on DIR/jail, nosuid, nodev, default_permissions; root is squashed; cannot map ids (no --jail-root=range); " +
			can + end},
	}, found)
}

// What of a mount's options makes some jobs fail or slow is a warning each, and a root without programs is a failure.
func TestCheckOfMountOptions(t *testing.T) {
	for options, want := range map[string]string{
		"hard,vers=4.2": "",
		"soft":          "is mounted soft: while the server is away, programs and writes of jobs fail with an I/O error; mount it with hard, nfs(5)",
		"softerr":       "is mounted softerr: ",
		"noac":          "caches no attributes (noac): each open of a file asks the server; mount it without noac and actimeo=0, nfs(5)",
		"acregmin=0,acregmax=0,acdirmin=0,acdirmax=0": "caches no attributes (noac)",
		"lookupcache=none":                            "caches no names (lookupcache=none)",
		"lookupcache=positive":                        "",
		"noexec":                                      "", // an image file may lie there
	} {
		var found []string
		c := &checker{report: func(f Finding) { found = append(found, f.String()) }}
		c.checkOptions(&config.Jail{Name: "a"}, &storage.Mount{Source: "s:/e", Type: "nfs4", Options: strings.Split(options, ",")})
		if want == "" {
			assert.Empty(t, found, options)
			continue
		}
		require.Len(t, found, 1, options)
		assert.Contains(t, found[0], "WARN  jail a: storage s:/e (nfs4) "+want)
	}
	for want, jails := range map[bool][]config.Jail{
		true:  {{}, {Host: []string{"/usr/lib", "/etc/hosts"}}, {Options: []string{"noexec"}}},
		false: {{Host: []string{"/usr"}}, {Mounts: []config.Mount{{Destination: "/bin"}}}, {Options: []string{"exec"}}},
	} {
		for _, j := range jails {
			var found []string
			c := &checker{report: func(f Finding) { found = append(found, f.String()) }}
			c.checkExec(&j, &storage.Mount{Source: "s:/e", Type: "nfs4", Options: []string{"noexec"}})
			assert.Equal(t, want, len(found) == 1 && strings.HasPrefix(found[0], "FAIL "), "%v: %v", j, found)
		}
	}
	assert.Equal(t, "latency unknown", describeLatency(storage.Latency{}))
	assert.Equal(t, "9 lstat in 10.12ms, median 2.1µs", describeLatency(storage.Latency{Count: 9, Total: 10123456, Median: 2100 * time.Nanosecond}))
}

func init() {
	// The input is the directory of a good node, whose jail is closed to the user that root is on the storage.
	nstest.Actions["closedRoot"] = func(dir string) (any, error) {
		n, err := configureChild(dir, "jail_root = [\"range\"]\n")
		if err != nil {
			return nil, err
		}
		tree := dir + "/tree"
		if err := os.Rename(n.root, tree); err != nil {
			return nil, err
		}
		if err := os.Mkdir(n.root, 0o755); err != nil {
			return nil, err
		}
		found := map[string]string{}
		for name, uid := range map[string]int{"root's": 0, "a user's": 1000} {
			if err := os.Chown(tree, uid, uid); err != nil {
				return nil, err
			}
			stop, err := nstest.MountSquashed(tree, n.root)
			if err == nil {
				err = os.Chmod(tree, 0o700) // the server itself starts in an open one
			}
			if err != nil {
				return nil, err
			}
			Check(n.Node, func(f Finding) {
				if f.Level == Fail {
					found[name] += fmt.Sprintf("%s content=%v", f, f.Content)
				}
			})
			stop()
			if err := os.Chmod(tree, 0o755); err != nil {
				return nil, err
			}
		}
		return found, nil
	}
}

// A root that is closed to root of the node is a failure of the node, whatever --jail-root allows, unless it
// is a user's, who may have closed it.
func TestRootClosedToRoot(t *testing.T) {
	nstest.NeedFUSE(t)
	n := newGoodNode(t)
	var found map[string]string
	require.NoError(t, nstest.RunText(t, "closedRoot", n.dir, &found))
	line := "FAIL  jail a: jail root " + n.root + ": permission denied; root of this node has no access: if the storage squashes root, " +
		"open the root and the directories above it to others (chmod 755); FUSE needs allow_other content="
	assert.Equal(t, map[string]string{"root's": line + "false", "a user's": line + "true"}, found)
}
