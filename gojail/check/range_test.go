// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/subids"
	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	nstest.Actions["tryRange"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		layers := "lowerdir=" + dir + "/lower,upperdir=" + dir + "/upper,workdir=" + dir + "/work"
		if out, err := exec.Command("mount", "-t", "overlay", "-o", layers, "overlay", dir+"/overlay").CombinedOutput(); err != nil {
			return string(out), err
		}
		found := map[string]string{}
		for name, j := range map[string]*config.Jail{
			"disk":    {Root: dir + "/lower"},
			"overlay": {Root: dir + "/overlay"},
			"data":    {Root: dir + "/lower", Mounts: []config.Mount{{Destination: "/data", Type: "bind", Source: dir + "/overlay"}}},
			"read":    {Root: dir + "/lower", Mounts: []config.Mount{{Destination: "/data", Type: "bind", Source: dir + "/overlay", Options: []string{"ro"}}}},
			"no data": {Root: dir + "/lower", Mounts: []config.Mount{{Destination: "/opt/x", Type: "bind", Source: dir + "/overlay"}}},
		} {
			j.Isolation.NoNewPrivs = true
			c := &config.Config{Jails: map[string]*config.Jail{name: j}}
			root, err := node.OpenJail(j)
			if err != nil {
				return nil, err
			}
			if remedy, err := (&checker{config: c, ids: &userNamespace{}}).checkRange(j, root); err != nil {
				found[name] = err.Error() + "; " + remedy
			}
			unix.Close(root)
		}
		return found, nil
	}
}

// TestCheckTriesIDMaps: the file systems themselves are asked, as a launch asks them.
func TestCheckTriesIDMaps(t *testing.T) {
	nstest.NeedRoot(t)
	dir, err := os.MkdirTemp("/var/tmp", "gojail-range-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"lower", "upper", "work", "overlay"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	var found map[string]string
	require.NoError(t, nstest.RunText(t, "tryRange", dir, &found))
	want := `--jail-root=range: the file system of ` + dir + `/overlay cannot map ids (invalid argument); remove "range" from jail_root, or use ext4, xfs or btrfs there`
	assert.Equal(t, map[string]string{"overlay": want, "data": want}, found)
}

// TestCheckSaysOnceHowToCloseARange: the finding has one remedy.
func TestCheckSaysOnceHowToCloseARange(t *testing.T) {
	n := newGoodNode(t)
	n.configure(t, `jail_root = ["range"]`)
	n.setSubIDs(t, "alice:100000:65536\n", "")
	found := n.listFindings()
	assert.Contains(t, found, "FAIL  jail a: --jail-root=range: a set-user-ID file created in the jail could be executed on the node in "+n.root+"; ")
	assert.Equal(t, 1, strings.Count(found, "chmod 700 "+n.dir), found)
	require.NoError(t, os.Chmod(n.dir, 0o700))
	assert.NotContains(t, n.listFindings(), "range")
}

// setSubIDs gives the node ranges of uids and of gids, and accounts besides root.
func (n *checkedNode) setSubIDs(t *testing.T, ranges, accounts string) {
	t.Helper()
	n.subIDs = &subids.Source{
		Etc: filepath.Join(n.dir, "etc"),
		List: func(_ context.Context, database string, line func(string)) error {
			for text := range strings.Lines("root:x:0:0:::\n" + accounts) {
				if database == "passwd" {
					line(strings.TrimSpace(text))
				}
			}
			return nil
		},
		LookUp: func(_ context.Context, database string, id uint32) (string, error) {
			if id == 300000 {
				return "", errors.New("connection refused")
			}
			return "", nil
		},
	}
	require.NoError(t, os.MkdirAll(n.subIDs.Etc, 0o755))
	for name, text := range map[string]string{"subuid": ranges, "subgid": ranges} {
		n.writeFile(t, "etc/"+name, text, 0o644)
	}
}

// TestCheckOfSubordinateIDs requires a line for each user to whom range is refused, whose remedy helps, and what cannot be known.
func TestCheckOfSubordinateIDs(t *testing.T) {
	const taken = "FAIL  subordinate ids: --jail-root=range: the ids 100000-165535 of alice in /etc/subuid include uid 123456 of carol; write alice:165536:65536 in its place, whose ids are free"
	both := func(user, other string) string {
		line := "the ids 100000-165535 of " + user + " in /etc/sub%s overlap those of " + other + " there (" + other + ":100000:65536); write " + user + ":165536:65536 in its place, whose ids are free"
		return fmt.Sprintf("FAIL  subordinate ids: --jail-root=range: "+line+"; and "+line, "uid", "gid")
	}
	const others = "alice:100000:65536\nbob:231072:65536\n5003:300:10\n"
	for name, test := range map[string]struct {
		ranges, accounts string
		want             []string
	}{
		"good":                  {ranges: others, want: []string{"OK    subordinate ids: --jail-root=range: nobody else is known to have an id of the ranges of 2 users"}},
		"an account":            {ranges: others, accounts: "carol:x:123456:1:::", want: []string{taken, "OK    subordinate ids: --jail-root=range: nobody else is known to have an id of the ranges of 1 users"}},
		"its remedy":            {ranges: strings.Replace(others, "alice:100000:65536", "alice:165536:65536", 1), accounts: "carol:x:123456:1:::", want: []string{"OK    subordinate ids: --jail-root=range: nobody else is known to have an id of the ranges of 2 users"}},
		"one user by two names": {ranges: others + "5001:100000:65536\n", accounts: "alice:x:5001:5001:::", want: []string{"OK    subordinate ids: --jail-root=range: nobody else is known to have an id of the ranges of 2 users"}},
		"two users alike":       {ranges: "alice:100000:65536\nbob:100000:65536\n", want: []string{both("alice", "bob"), both("bob", "alice")}},
		"nobody":                {want: []string{"WARN  subordinate ids: --jail-root=range is refused to all users: DIR/subuid and DIR/subgid give nobody 65536 ids; write a line such as alice:100000:65536 into both, or remove \"range\" from jail_root"}},
		"a silent service":      {ranges: "alice:300000:65536\n", want: []string{"FAIL  subordinate ids: --jail-root=range: cannot ask the name service whether an account has uid 300000: connection refused; try again, or correct it"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			require.NoError(t, os.Chmod(n.dir, 0o700))
			n.configure(t, `jail_root = ["range"]`)
			n.setSubIDs(t, test.ranges, test.accounts)
			var found []string
			Check(n.Node, func(f Finding) {
				if f.Subject == "subordinate ids" {
					found = append(found, strings.ReplaceAll(f.String(), n.subIDs.Etc, "DIR"))
				}
			})
			assert.Equal(t, test.want, found)
			n.configure(t, `jail_root = ["self"]`)
			n.Accounts = nil // else the names of users are looked for
			n.subIDs.List = func(context.Context, string, func(string)) error { panic("nobody needs it") }
			n.listFindings()
		})
	}
}
