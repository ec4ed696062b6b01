// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
)

func TestVersionOfATemplate(t *testing.T) {
	nstest.NeedRoot(t)
	dir, stateDir := t.TempDir(), t.TempDir()
	versions := filepath.Join(dir, "debian/versions")
	for _, name := range []string{"1", "2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(versions, name), 0o755))
	}
	link := filepath.Join(dir, "debian/current")
	j := &config.Jail{Name: "a", Root: link, Versions: "debian"}
	var found []Finding
	c := newChecker(Node{State: stateDir}, func(f Finding) { found = append(found, f) })
	c.config = &config.Config{Store: dir, Jails: map[string]*config.Jail{"a": j}}
	look := func() (Finding, bool) {
		found = nil
		told := c.checkVersion(j)
		if len(found) == 0 {
			return Finding{}, told
		}
		require.Len(t, found, 1)
		return found[0], told
	}
	switchTo := func(name string, age time.Duration) {
		require.NoError(t, os.RemoveAll(link))
		require.NoError(t, os.Symlink("versions/"+name, link))
		at := unix.NsecToTimeval(time.Now().Add(-age).UnixNano())
		require.NoError(t, unix.Lutimes(link, []unix.Timeval{at, at}))
	}
	switchTo("1", 0)
	f, told := look()
	assert.Equal(t, Finding{}, f, "no template")
	assert.False(t, told)

	s, err := state.OpenState(stateDir)
	require.NoError(t, err)
	statetest.AddRecord(t, s, "jails/a/zygote", statetest.RecordOf(t, statetest.Sleeper(t).Process.Pid))
	require.NoError(t, s.NoteVersions("a", []string{"1", "2"}))
	f, _ = look()
	assert.Equal(t, Finding{}, f, "it may be either")
	require.NoError(t, s.NoteVersions("a", []string{"1"}))
	f, told = look()
	assert.Equal(t, Finding{Level: OK, Subject: "jail a", Found: "its template has version 1, the current one", Version: "1"}, f)
	assert.False(t, told)

	const behind, remedy = "its template has version 1, and version 2 is current", "the next job gets a new template; to make it now: gojail reload a"
	switchTo("2", time.Minute)
	f, told = look()
	assert.Equal(t, Finding{Level: OK, Subject: "jail a", Found: behind, Remedy: remedy, Version: "1", Behind: true}, f)
	assert.True(t, told)
	switchTo("2", 2*time.Hour)
	f, _ = look()
	assert.Equal(t, Finding{Level: Warn, Subject: "jail a", Found: behind, Remedy: remedy, Version: "1", Behind: true, Alert: true}, f)

	require.NoError(t, os.Remove(filepath.Join(versions, "1")))
	f, told = look()
	assert.Equal(t, Warn, f.Level)
	assert.True(t, told)
	assert.Equal(t, "version 1, which its template on this node has, is gone from the store: jobs that have it lose files", f.Found)
}
