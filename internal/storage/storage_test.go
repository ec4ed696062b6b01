// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// nfs are mounts as Linux 6.12 shows them.
const nfs = `30 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
31 30 0:51 / /shared ro,nosuid,nodev,relatime shared:2 - nfs4 10.0.0.1:/export rw,vers=4.2,rsize=262144,wsize=262144,namlen=255,soft,noac,proto=tcp,nconnect=4,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,lookupcache=none,local_lock=none,addr=10.0.0.1
32 31 0:52 / /shared/apps rw,noexec - nfs 10.0.0.3:/apps rw,vers=3,hard,nolock,local_lock=all
`

func TestTellingOptions(t *testing.T) {
	all, err := mountinfo.GetMountsFromReader(strings.NewReader(nfs), nil)
	require.NoError(t, err)
	var found []string
	for _, path := range []string{"/shared/jails/debian", "/shared/apps", "/sharedx"} {
		m := Table(all).Above(path)
		found = append(found, m.String()+" on "+m.Point+": "+strings.Join(m.TellingOptions(), ", "))
	}
	assert.Equal(t, []string{
		"10.0.0.1:/export (nfs4) on /shared: ro, nosuid, nodev, soft, vers=4.2, proto=tcp, nconnect=4, noac, lookupcache=none",
		"10.0.0.3:/apps (nfs) on /shared/apps: noexec, hard, vers=3, nolock, local_lock=all",
		"/dev/vda (ext4) on /: ",
	}, found)
}

// seen is the result of the probes of one storage.
type seen struct {
	Type                 string
	Squash, User, Labels Answer
	Types                Answer
	Count                int
}

func probeStorage(path string) (s seen, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	defer unix.Close(fd)
	m, err := MountOf(fd)
	if err != nil {
		return s, err
	}
	l := MeasureLatency(fd, 1000, time.Minute)
	return seen{m.Type, SquashesRoot(fd), HasXattrs(fd, "user.x"), HasXattrs(fd, "security.capability"), l.TellsTypes, l.Count}, nil
}

func init() {
	// The input is a directory with tree/ and an empty mnt/.
	nstest.Actions["probe"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		at := filepath.Join(dir, "mnt")
		all := map[string]seen{}
		for name, show := range map[string]func() (stop func(), err error){
			"fuse":     func() (func(), error) { return nstest.MountFUSE(dir+"/tree", at) },
			"squashed": func() (func(), error) { return nstest.MountSquashed(dir+"/tree", at) },
			"tmpfs": func() (func(), error) {
				return func() { unix.Unmount(at, 0) }, unix.Mount("none", at, "tmpfs", 0, "mode=755")
			},
		} {
			stop, err := show()
			if err == nil {
				all[name], err = probeStorage(at)
				stop()
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return all, nil
	}
	nstest.Actions["walk"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		stop, err := nstest.MountSilent(dir + "/mnt")
		if err != nil {
			return nil, err
		}
		defer stop()
		table, err := ReadTable()
		if err != nil {
			return nil, err
		}
		var found []string
		for _, path := range []string{"/mnt/jails/debian", "/link/debian", "/tree/root"} {
			w, done := NewWalk(table), make(chan bool)
			go func() {
				defer close(done)
				w.Follow(dir + path)
			}()
			for silent := false; !silent; time.Sleep(time.Millisecond) { // each walk ends there, or is done
				m := w.Mount()
				select {
				case <-done:
					silent = true
				default:
					silent = m != nil && m.Type == "fuse.silent"
				}
			}
			found = append(found, w.Mount().Type)
		}
		return found, nil
	}
}

// makeTree makes a tree to be exported, with a directory that only root may open.
func makeTree(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "gojail-storage-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, sub := range []string{"tree/etc", "mnt"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	require.NoError(t, os.Mkdir(dir+"/tree/root", 0o700))
	return dir
}

func TestProbesOfStorage(t *testing.T) {
	nstest.NeedFUSE(t)
	dir := makeTree(t)
	var all map[string]seen
	require.NoError(t, nstest.RunText(t, "probe", dir, &all))
	assert.Equal(t, map[string]seen{
		"fuse":     {"fuse", No, Yes, Yes, Yes, 1000},
		"squashed": {"fuse", Yes, Yes, Yes, Yes, 1000},
		"tmpfs":    {"tmpfs", Unknown, Yes, Yes, Unknown, 0}, // nothing there could tell
	}, all)
}

func TestWalkNamesTheStorageThatIsSilent(t *testing.T) {
	nstest.NeedFUSE(t)
	dir := makeTree(t)
	require.NoError(t, os.Symlink("mnt/jails", dir+"/link"))
	var found []string
	require.NoError(t, nstest.RunText(t, "walk", dir, &found))
	assert.Equal(t, []string{"fuse.silent", "fuse.silent"}, found[:2])
	assert.NotEqual(t, "fuse.silent", found[2])
}

// A directory whose names take longer than the limit is not read to the end.
func TestLatencyIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		require.NoError(t, os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600))
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	l := MeasureLatency(fd, 120, time.Minute)
	assert.Equal(t, 120, l.Count, "names are asked for again")
	assert.LessOrEqual(t, l.Median, l.Total)
	assert.Zero(t, MeasureLatency(fd, 120, 0).Count)
}
