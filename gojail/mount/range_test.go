// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/nstest"
)

// judged is what a test of refuseSuid mounts in a namespace of its own, and its verdict.
type judged struct {
	Dir    string     // a tmpfs that is nosuid is mounted there, with /jails/debian in it
	Mounts [][]string // arguments of mount(8); DIR stands for Dir
	Closed []string   // directories below Dir that are closed to others
	Root   string     // of the jail, below Dir
	Jail   string     // root of another jail, where set-user-ID files work
}

func init() {
	nstest.Actions["judge"] = func(input string) (any, error) {
		var j judged
		if err := json.Unmarshal([]byte(input), &j); err != nil {
			return nil, err
		}
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		for _, args := range append([][]string{{"-t", "tmpfs", "-o", "mode=755", "tmpfs", "DIR"}, nil}, j.Mounts...) {
			if args == nil {
				for _, dir := range []string{"/jails/debian/home/alice", "/a/b", "/c", "/home"} {
					if err := os.MkdirAll(j.Dir+dir, 0o755); err != nil {
						return nil, err
					}
				}
				os.Symlink("../jails", j.Dir+"/a/link")
				continue
			}
			args = strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "DIR", j.Dir), "\n")
			if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("mount %s: %s", args, out)
			}
		}
		for _, dir := range j.Closed {
			if err := os.Chmod(j.Dir+dir, 0o700); err != nil {
				return nil, err
			}
		}
		c := &config.Config{Jails: map[string]*config.Jail{"closed": {Name: "closed", Root: j.Dir + j.Root, Isolation: config.Isolation{NoNewPrivs: true}}}}
		if j.Jail != "" {
			c.Jails["open"] = &config.Jail{Name: "open", Root: j.Dir + j.Jail}
		}
		root, err := node.OpenJail(c.Jails["closed"])
		if err != nil {
			return nil, err
		}
		v, err := ReadMountView("self")
		if err != nil {
			return nil, err
		}
		own, err := v.RegionOf(root)
		if err == nil {
			err = RefuseSuid(c, own)
		}
		if suid := (*SuidError)(nil); errors.As(err, &suid) {
			return strings.ReplaceAll(suid.Error()+"; "+suid.Remedy(), j.Dir, ""), nil
		}
		return "", err
	}
}

// TestSuidFilesOfAJailAreNotForTheNode: it is the way that the kernel goes that must be closed, every way that
// this node has, or nosuid.
func TestSuidFilesOfAJailAreNotForTheNode(t *testing.T) {
	const could = "--jail-root=range: a set-user-ID file created in the jail could be executed "
	nosuid := []string{"-o", "remount,bind,nosuid", "DIR"}
	bind := func(from, to string) []string { return []string{"--bind", "DIR" + from, "DIR" + to} }
	for name, test := range map[string]struct {
		judged
		want string
	}{
		"open": {judged{}, "on the node in /jails/debian; mount it nosuid (mount -o remount,bind,nosuid ), or restrict a directory above it: chmod 700 /jails"},
		"the root itself, which users are to come to": {judged{Closed: []string{"/jails/debian"}},
			"on the node in /jails/debian; mount it nosuid (mount -o remount,bind,nosuid ), or restrict a directory above it: chmod 700 /jails"},
		"closed":                     {judged{Closed: []string{"/jails"}}, ""},
		"nosuid":                     {judged{Mounts: [][]string{nosuid}}, ""},
		"a mount of its own, nosuid": {judged{Mounts: [][]string{bind("/jails/debian", "/jails/debian"), {"-o", "remount,bind,nosuid", "DIR/jails/debian"}}}, ""},
		"a symbolic link in a closed directory": {judged{Root: "/a/link/debian", Closed: []string{"/a"}},
			"on the node in /jails/debian; mount it nosuid (mount -o remount,bind,nosuid ), or restrict a directory above it: chmod 700 /jails"},
		"a symbolic link to a closed directory": {judged{Root: "/a/link/debian", Closed: []string{"/jails"}}, ""},
		"the same elsewhere": {judged{Closed: []string{"/jails"}, Mounts: [][]string{bind("/jails/debian", "/a/b")}},
			"on the node in /a/b; mount it nosuid (mount -o remount,bind,nosuid /a/b), or restrict a directory above it: chmod 700 /a"},
		"a part elsewhere": {judged{Closed: []string{"/jails"}, Mounts: [][]string{bind("/jails/debian/home", "/home")}},
			"on the node in /home; mount it nosuid (mount -o remount,bind,nosuid /home), or restrict a directory above it: chmod 700 "},
		"the whole elsewhere": {judged{Closed: []string{"/a"}, Root: "/a/b/debian", Mounts: [][]string{bind("/jails", "/a/b"), bind("/a/b", "/c"), bind("/home", "/jails")}},
			"on the node in /c/debian; mount it nosuid (mount -o remount,bind,nosuid /c), or restrict a directory above it: chmod 700 /c"},
		"elsewhere and closed": {judged{Closed: []string{"/jails", "/a"}, Mounts: [][]string{bind("/jails/debian", "/a/b")}}, ""},
		"elsewhere and nosuid": {judged{Closed: []string{"/jails"}, Mounts: [][]string{bind("/jails/debian", "/a/b"), {"-o", "remount,bind,nosuid", "DIR/a/b"}}}, ""},
		"another part of what is nosuid, which users move files to": {judged{Mounts: [][]string{bind("/c", "/home"), nosuid}},
			"on the node in /home; mount it nosuid (mount -o remount,bind,nosuid /home), or restrict a directory above it: chmod 700 "},
		"the same of what is closed":    {judged{Closed: []string{"/jails"}, Mounts: [][]string{bind("/c", "/home"), nosuid}}, ""},
		"the same of what is read-only": {judged{Mounts: [][]string{bind("/c", "/home"), {"-o", "remount,bind,nosuid,ro", "DIR"}}}, ""},
		"covered":                       {judged{Closed: []string{"/jails"}, Mounts: [][]string{bind("/jails/debian", "/a/b"), bind("/c", "/a/b")}}, ""},
		"a jail where they work":        {judged{Closed: []string{"/jails"}, Jail: "/jails/debian/home"}, "in jail open, which shows /jails/debian/home; give jail open no_new_privs = true, or its mounts the option \"nosuid\""},
		"another jail of its own":       {judged{Closed: []string{"/jails"}, Jail: "/c"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.Dir = t.TempDir()
			for dir := test.Dir; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
				require.NoError(t, os.Chmod(dir, 0o755))
			}
			if test.Root == "" {
				test.Root = "/jails/debian"
			}
			var got string
			require.NoError(t, nstest.Run(t, "judge", test.judged, &got))
			if test.want != "" {
				test.want = could + test.want
			}
			assert.Equal(t, test.want, got)
		})
	}
}
