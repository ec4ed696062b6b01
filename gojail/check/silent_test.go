// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// configureChild gives a child mounts of its own, and returns the node of newGoodNode with the jails that more adds.
func configureChild(dir, more string) (*checkedNode, error) {
	if err := nstest.MakePrivate(); err != nil {
		return nil, err
	}
	n := &checkedNode{dir: dir, root: dir + "/jail", conf: dir + "/slurm"}
	n.Node = Node{Config: dir + "/gojail.toml", State: dir + "/state", Name: "n1", LibDir: dir + "/lib", passwdIn: dir + "/passwd"}
	text, err := os.ReadFile(n.Config)
	if err != nil {
		return nil, err
	}
	return n, os.WriteFile(n.Config, append(text, more...), 0o644)
}

// silence is what both checks report of a node with silent storage, and how long they took.
type silence struct {
	Check, Watch []string
	Took         time.Duration
}

func (n *checkedNode) runBothChecks() (s silence) {
	start, watched := time.Now(), make(chan bool)
	list := func(f Finding) string {
		return fmt.Sprintf("%s silent=%v unfinished=%v", f, f.Silent, f.Unfinished)
	}
	go func() {
		defer close(watched)
		Watch(n.Node, Memory{}, start, 2*storageTimeout, func(f Finding) {
			if f.Level == Fail || f.Unfinished {
				s.Watch = append(s.Watch, list(f))
			}
		})
	}()
	Check(n.Node, func(f Finding) {
		if f.Level == Fail || f.Unfinished {
			s.Check = append(s.Check, list(f))
		}
	})
	<-watched
	s.Took = time.Since(start)
	return s
}

func init() {
	// The input is the directory of a good node.
	nstest.Actions["silentStorage"] = func(dir string) (any, error) {
		var jails string
		for i := range 10 {
			jails += fmt.Sprintf("[jail.dead%d]\nroot = %q\nslurm = false\nhost = []\njail_root = [\"range\"]\n", i, fmt.Sprint(dir, "/dead/jails/", i))
		}
		jails += "[jail.source]\nroot = \"" + dir + "/jail\"\nslurm = false\nhost = []\n[[jail.source.mounts]]\nsource = \"" + dir + "/dead/home\"\ndestination = \"/bin\"\n"
		n, err := configureChild(dir, jails)
		if err != nil {
			return nil, err
		}
		stop, err := nstest.MountSilent(dir + "/dead")
		if err != nil {
			return nil, err
		}
		defer stop()
		return n.runBothChecks(), nil
	}
	nstest.Actions["slowStorage"] = func(dir string) (any, error) {
		n, err := configureChild(dir, "")
		if err != nil {
			return nil, err
		}
		// The root answers; what is looked up below it does not.
		stop, err := nstest.MountSilent(dir + "/jail/etc")
		if err != nil {
			return nil, err
		}
		defer stop()
		var found []string
		c := newChecker(n.Node, func(f Finding) {
			if f.Level != OK && strings.HasPrefix(f.Subject, "jail") {
				found = append(found, fmt.Sprintf("%s silent=%v unfinished=%v", f, f.Silent, f.Unfinished))
			}
		})
		c.watch = true
		c.checkNode()
		c.checkJails(2*time.Second, needAll)
		return found, nil
	}
}

// Ten jails on a silent storage cost one patience, each is named with its root and its storage, whatever
// users may do in it, and the jails on other storage are checked all the same.
func TestJailsOnSilentStorage(t *testing.T) {
	nstest.NeedFUSE(t)
	n := newGoodNode(t)
	require.NoError(t, os.Mkdir(n.dir+"/dead", 0o755))
	require.NoError(t, os.Remove(n.root+"/tmp")) // a finding about the jail that answers
	var s silence
	require.NoError(t, nstest.RunText(t, "silentStorage", n.dir, &s))
	const end = ": its storage silent (fuse.silent) does not answer; check the server and the network to it silent=true unfinished=false"
	want := []string{"FAIL  jail a: mount targets are missing in " + n.root + ": /tmp; create them once, for all nodes: gojail init a silent=false unfinished=false"}
	for i := range 10 {
		want = append(want, fmt.Sprint("FAIL  jail dead", i, ": ", n.dir, "/dead/jails/", i, end))
	}
	want = append(want, "FAIL  jail source: "+n.dir+"/dead/home"+end)
	assert.Equal(t, want, s.Check)
	assert.Equal(t, want, s.Watch)
	assert.Less(t, s.Took, 10*storageTimeout, "they are checked side by side")
}

// Storage that answers, if too slowly for the whole check, is not dead.
func TestJailOnSlowStorage(t *testing.T) {
	nstest.NeedFUSE(t)
	n := newGoodNode(t)
	require.NoError(t, os.Remove(n.root+"/bin/sh"))
	require.NoError(t, os.Symlink("/etc/sh", n.root+"/bin/sh"))
	var found []string
	require.NoError(t, nstest.RunText(t, "slowStorage", n.dir, &found))
	require.Len(t, found, 1)
	assert.Regexp(t, "^WARN  jail a: "+n.root+`: its storage \S+ \(\w+\) answers, but the jail could not be checked to the end within 2s; `+
		"check the load of the server, and the network to it silent=false unfinished=true$", found[0])
}

// TestWatchChecksJailsWhenItMust: the jails themselves are looked into at first, after a change or a
// failure, and after ten minutes; a root that is gone is seen at once.
func TestWatchChecksJailsWhenItMust(t *testing.T) {
	n := newGoodNode(t)
	now := time.Unix(1e9, 0)
	var memory Memory
	watch := func() string {
		var found []string
		memory = Watch(n.Node, memory, now, time.Minute, func(f Finding) {
			if f.Level != OK && f.Subject == "jail a" || f.Level == Fail {
				found = append(found, f.Found)
			}
		})
		return strings.Join(found, "\n")
	}
	const missing = "mount targets are missing in "
	assert.Empty(t, watch())
	require.NoError(t, os.Remove(n.root+"/tmp"))
	assert.Empty(t, watch(), "not looked into again")
	now = now.Add(watchAll - time.Second)
	assert.Empty(t, watch())
	now = now.Add(time.Second)
	assert.Contains(t, watch(), missing)
	assert.Contains(t, watch(), missing, "a failure is looked at in each run")
	require.NoError(t, os.Mkdir(n.root+"/tmp", 0o755))
	assert.Empty(t, watch())

	n.configure(t, "[[jail.a.mounts]]\ndestination = \"/new\"\nsource = \"/usr\"\n")
	assert.Contains(t, watch(), missing, "the configuration has changed")
	require.NoError(t, os.Mkdir(n.root+"/new", 0o755))
	assert.Empty(t, watch())

	require.NoError(t, os.Rename(n.root, n.dir+"/away"))
	assert.Contains(t, watch(), "jail root "+n.root+": no such file or directory")
	require.NoError(t, os.Mkdir(n.root, 0o755))
	assert.Contains(t, watch(), "is empty: is its storage mounted?")
	require.NoError(t, os.Remove(n.root))
	require.NoError(t, os.Rename(n.dir+"/away", n.root))
	assert.Empty(t, watch())
	require.NoError(t, os.Remove(n.root+"/tmp"))
	require.NoError(t, os.Rename(n.root, n.dir+"/away"))
	require.NoError(t, os.Mkdir(n.root, 0o755))
	require.NoError(t, unix.Mount(n.dir+"/away", n.root, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(n.root, unix.MNT_DETACH) })
	assert.Empty(t, watch(), "the same directory through another mount")
	now = now.Add(-time.Hour)
	assert.Contains(t, watch(), missing, "the clock was set back")
}

// readRequests returns the names of the requests that a FUSE server received, from the log of bindfs -d.
func readRequests(log string) (names []string) {
	for line := range strings.Lines(log) {
		if _, rest, found := strings.Cut(line, "opcode: "); found {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return name == "FORGET" || name == "BATCH_FORGET" || name == "RELEASE" || name == "RELEASEDIR"
	}) // sent when the kernel likes
}

func init() {
	nstest.Actions["requests"] = func(dir string) (any, error) {
		n, err := configureChild(dir, "[jail.b]\nroot = \""+dir+"/jail/b\"\nslurm = false\nhost = []\n")
		if err != nil {
			return nil, err
		}
		if err := os.Rename(n.root, dir+"/tree"); err != nil {
			return nil, err
		}
		if err := os.Mkdir(n.root, 0o755); err != nil {
			return nil, err
		}
		log := dir + "/requests"
		stop, err := nstest.MountFUSELogged(dir+"/tree", n.root, log, "-o", "attr_timeout=3600,entry_timeout=3600,negative_timeout=3600")
		if err != nil {
			return nil, err
		}
		defer stop()
		var memory Memory
		var each [][]string
		seen := 0
		for range 3 {
			failed := ""
			memory = Watch(n.Node, memory, time.Now(), time.Minute, func(f Finding) {
				if f.Level == Fail {
					failed += f.String()
				}
			})
			text, err := os.ReadFile(log)
			if err != nil || failed != "" {
				return nil, fmt.Errorf("%s %w", failed, err)
			}
			all := readRequests(string(text))
			each, seen = append(each, all[seen:]), len(all)
		}
		return each, nil
	}
}

// A healthy run of the health check has one request to each storage, however many jails lie on it.
func TestWatchAsksEachStorageOnce(t *testing.T) {
	nstest.NeedFUSE(t)
	n := newGoodNode(t)
	for _, sub := range []string{"proc", "sys", "dev", "run", "tmp", "etc", "spool", "bin"} {
		require.NoError(t, os.MkdirAll(n.root+"/b/"+sub, 0o755))
	}
	var each [][]string
	require.NoError(t, nstest.RunText(t, "requests", n.dir, &each))
	assert.Greater(t, len(each[0]), 10, "the first looks into the jails: %v", each[0])
	assert.Equal(t, [][]string{{"GETATTR"}, {"GETATTR"}}, each[1:])
}
