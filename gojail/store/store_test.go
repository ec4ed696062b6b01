// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	return s
}

func newJail(t *testing.T) *Jail {
	t.Helper()
	j, err := newStore(t).MakeJail("debian")
	require.NoError(t, err)
	return j
}

// publish makes a version with one file.
func (j *Jail) publish(ctx context.Context, id, format string) error {
	work, err := j.StartBuild(ctx, false)
	if err != nil {
		return err
	}
	tree, list := work.Path("tree"), work.Path("list")
	if format == FormatDir {
		err = errors.Join(os.Mkdir(tree, 0o755), os.WriteFile(filepath.Join(tree, "version"), []byte(id), 0o644))
	} else {
		err = os.WriteFile(tree, []byte(id), 0o644)
	}
	err = errors.Join(err, os.WriteFile(list, []byte("list"), 0o644))
	if err == nil {
		err = work.Publish(ctx, tree, list, &Record{Version: id, Format: format, Source: "test", Digest: "sha256:00"})
	}
	return errors.Join(err, work.Remove())
}

func (j *Jail) mustPublish(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, j.publish(context.Background(), id, FormatDir))
	}
}

// state describes a jail: its versions, the current one in brackets.
func (j *Jail) state(t *testing.T) string {
	t.Helper()
	all, err := j.Versions()
	require.NoError(t, err)
	var words []string
	for _, v := range all {
		require.NoError(t, v.Err)
		word := v.Version
		if v.Current {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// mustBeClean fails if anything half-made is left.
func (j *Jail) mustBeClean(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(j.path(workDir))
	require.NoError(t, err)
	require.Empty(t, entries)
	all, err := j.Versions()
	require.NoError(t, err)
	records, err := os.ReadDir(j.path(recordsDir))
	require.NoError(t, err)
	require.Len(t, records, 2*len(all))
}

func TestPublishSwitchAndRollback(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	_, err := j.Rollback(ctx, "me")
	require.EqualError(t, err, "jail debian has no previous version; choose one with: gojail jail switch debian VERSION")
	_, err = j.SwitchTo(ctx, "", "me")
	require.EqualError(t, err, "jail debian has no version; build one with: gojail jail build debian --from SOURCE")
	j.mustPublish(t, "1", "2", "3")
	assert.Equal(t, "1 2 3", j.state(t), "a new version is not in use")
	_, err = j.Version("current")
	require.EqualError(t, err, "jail debian has no current version; choose one with: gojail jail switch debian VERSION")

	moved, err := j.SwitchTo(ctx, "1", "me")
	require.NoError(t, err)
	assert.Equal(t, Moved{"", "1"}, moved)
	moved, err = j.SwitchTo(ctx, "", "me")
	require.NoError(t, err)
	assert.Equal(t, Moved{"1", "3"}, moved, "the newest one")
	target, err := os.Readlink(j.path(currentLink))
	require.NoError(t, err)
	assert.Equal(t, "versions/3", target, "relative: the storage may be mounted elsewhere")
	moved, err = j.SwitchTo(ctx, "3", "me")
	require.NoError(t, err)
	assert.Equal(t, Moved{"3", "3"}, moved)
	_, err = j.SwitchTo(ctx, "2", "me")
	require.NoError(t, err)
	_, err = j.SwitchTo(ctx, "7", "me")
	require.EqualError(t, err, `jail debian has no version "7"; it has: 1, 2, 3`)

	for _, want := range []string{"1 2 [3]", "[1] 2 3"} {
		_, err = j.Rollback(ctx, "me")
		require.NoError(t, err)
		assert.Equal(t, want, j.state(t), "each rollback goes one further")
	}
	_, err = j.Rollback(ctx, "me")
	require.Error(t, err)
	j.mustBeClean(t)
}

func TestPrevious(t *testing.T) {
	entry := func(from, to string) switching { return switching{From: from, To: to} }
	back := func(from, to string) switching { return switching{From: from, To: to, Rollback: true} }
	for name, test := range map[string]struct {
		history []switching
		current string
		want    string
	}{
		"nothing":                        {nil, "1", ""},
		"one":                            {[]switching{entry("", "1")}, "1", ""},
		"two":                            {[]switching{entry("", "1"), entry("1", "2")}, "2", "1"},
		"the last was not carried out":   {[]switching{entry("", "1"), entry("1", "2"), entry("2", "3")}, "2", "1"},
		"one between was not":            {[]switching{entry("", "1"), entry("1", "9"), entry("1", "2")}, "2", "1"},
		"rollback":                       {[]switching{entry("", "1"), entry("1", "2"), entry("2", "3"), back("3", "2")}, "2", "1"},
		"rollback that was killed":       {[]switching{entry("", "1"), entry("1", "2"), entry("2", "3"), back("3", "2")}, "3", "1 2"},
		"rollback over a removed one":    {[]switching{entry("", "1"), entry("1", "2"), entry("2", "3"), back("3", "1")}, "1", ""},
		"switch after a rollback":        {[]switching{entry("", "1"), entry("1", "2"), back("2", "1"), entry("1", "3")}, "3", "1"},
		"there and back":                 {[]switching{entry("", "1"), entry("1", "2"), entry("2", "1")}, "1", "1 2"},
		"the link was changed otherwise": {[]switching{entry("", "1"), entry("1", "2"), entry("5", "6")}, "6", "1 5"},
	} {
		assert.Equal(t, test.want, strings.Join(listPrevious(test.history, test.current), " "), name)
	}
}

func TestRollbackPassesRemovedVersions(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	j.mustPublish(t, "1", "2", "3")
	for _, id := range []string{"1", "2", "3"} {
		_, err := j.SwitchTo(ctx, id, "me")
		require.NoError(t, err)
	}
	require.NoError(t, j.Remove(ctx, "2", func(*Version) error { return nil }))
	moved, err := j.Rollback(ctx, "me")
	require.NoError(t, err)
	assert.Equal(t, Moved{"3", "1"}, moved)
}

func TestVersionByItsBeginning(t *testing.T) {
	j := newJail(t)
	j.mustPublish(t, "2026-a", "2026-b", "2027-a")
	require.NoError(t, j.publish(context.Background(), "2028", FormatSquashfs))
	v, err := j.Version("2027")
	require.NoError(t, err)
	assert.Equal(t, "2027-a", v.Version)
	_, err = j.Version("2026")
	require.EqualError(t, err, `jail debian has 2 versions that begin with "2026"; write more of the name`)
	v, err = j.Version("2028")
	require.NoError(t, err)
	assert.Equal(t, FormatSquashfs, v.Format)
	assert.Equal(t, j.dir+"/versions/2028.squashfs", j.Path(v))
	moved, err := j.SwitchTo(context.Background(), "2028", "me")
	require.NoError(t, err)
	assert.Equal(t, "2028.squashfs", moved.To)
}

// TestNamesSortInTheOrderOfBuilds also within a second, and with clocks that differ.
func TestNamesSortInTheOrderOfBuilds(t *testing.T) {
	j := newJail(t)
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.TimeOnly, text)
		require.NoError(t, err)
		return parsed.AddDate(2026, 0, 0)
	}
	for _, build := range []struct{ now, digest, want string }{
		{"10:00:00", "sha256:ffffffffff", "20260101-100000-ffffffff"},
		{"10:00:00", "sha256:ffffffffff", "20260101-100001-ffffffff"},
		{"10:00:01", "sha256:0000000000", "20260101-100002-00000000"},
		{"09:56:00", "sha256:00", "20260101-100003-00"},
		{"09:00:00", "sha256:00", "20260101-090000-00"}, // a clock that is an hour behind is not followed
		{"09:00:00", "sha256:00", "20260101-090001-00"},
		{"11:00:00", "random:00", "20260101-110000-00"},
	} {
		id, err := j.NewID(at(build.now), build.digest)
		require.NoError(t, err)
		assert.Equal(t, build.want, id, build)
		j.mustPublish(t, id)
	}
	j.mustPublish(t, "odd", "2026")
	_, err := j.NewID(time.Now(), "sha256:00")
	require.NoError(t, err)
}

func TestRemove(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	j.mustPublish(t, "1", "2")
	_, err := j.SwitchTo(ctx, "2", "me")
	require.NoError(t, err)
	never := func(*Version) error { return errors.New("never") }
	require.EqualError(t, j.Remove(ctx, "2", never), "version 2 is the current one of jail debian; switch to another one first")
	require.EqualError(t, j.Remove(ctx, "1", never), "never")
	assert.Equal(t, "1 [2]", j.state(t))
	require.NoError(t, j.Remove(ctx, "1", func(*Version) error { return nil }))
	assert.Equal(t, "[2]", j.state(t))
	j.mustBeClean(t)
}

// TestNobodyRemovesWhatIsCopied: not by force, not by gc, and not while another process copies it, too.
func TestNobodyRemovesWhatIsCopied(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	j.mustPublish(t, "1", "2")
	_, err := j.SwitchTo(ctx, "2", "me")
	require.NoError(t, err)
	always := func(*Version) error { return nil }
	v, end, err := j.BeginCopy(ctx, "1")
	require.NoError(t, err)
	assert.Equal(t, "1", v.Version)
	_, endOther, err := j.BeginCopy(ctx, "1")
	require.NoError(t, err)
	const want = "version 1 is being copied by gojail jail edit; wait for its end"
	require.EqualError(t, j.Remove(ctx, "1", always), want)
	end()
	require.EqualError(t, j.Remove(ctx, "1", always), want)
	list, err := j.Collect(ctx, 0, func() (*Survey, error) { return &Survey{}, nil })
	require.NoError(t, err)
	assert.Equal(t, []Collected{{Version: "1", Why: want}}, list)
	endOther()
	list, err = j.Collect(ctx, 0, func() (*Survey, error) { return &Survey{}, nil })
	require.NoError(t, err)
	assert.Equal(t, []Collected{{Version: "1", Removed: true}}, list)
	_, _, err = j.BeginCopy(ctx, "1")
	require.EqualError(t, err, `jail debian has no version "1"; it has: 2`)
	j.mustBeClean(t)
}

func TestDamagedRecordHidesNoVersion(t *testing.T) {
	j := newJail(t)
	j.mustPublish(t, "1", "2")
	require.NoError(t, os.WriteFile(j.recordPath("1"), []byte("{"), 0o644))
	require.NoError(t, os.WriteFile(j.recordPath("2"), []byte(`{"version": "3", "format": "dir"}`), 0o644))
	all, err := j.Versions()
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, Record{Version: "1", Format: FormatDir}, all[0].Record)
	require.ErrorContains(t, all[0].Err, "is damaged: unexpected EOF")
	require.ErrorContains(t, all[1].Err, `is damaged: it is of version "3" as "dir"`)
}

func TestCurrentLinkToElsewhere(t *testing.T) {
	j := newJail(t)
	j.mustPublish(t, "1")
	require.NoError(t, os.Symlink("/etc", j.path(currentLink)))
	_, err := j.Versions()
	require.ErrorContains(t, err, `current leads to "/etc" and not to a version`)
}

func TestStoreMustBeRoots(t *testing.T) {
	s := newStore(t)
	_, err := Open(filepath.Join(s.dir, "missing"))
	require.ErrorContains(t, err, "missing does not exist; is its storage mounted?")
	open := filepath.Join(s.dir, "open")
	require.NoError(t, os.Mkdir(open, 0o755))
	require.NoError(t, os.Chmod(open, 0o777))
	_, err = Open(open)
	require.ErrorContains(t, err, "open: is writable by others (mode 0777)")
	_, err = s.Jail("open")
	require.ErrorContains(t, err, "cannot use jail open of the store: ")
	_, err = s.Jail("other")
	require.EqualError(t, err, s.dir+` has no jail "other"; it has: open`)
	for _, name := range []string{"", "..", "a/b", ".hidden", strings.Repeat("x", 65)} {
		_, err = s.MakeJail(name)
		require.ErrorContains(t, err, "invalid name", name)
	}
}

func TestTwoBuilders(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	first, err := j.StartBuild(ctx, false)
	require.NoError(t, err)
	_, err = j.StartBuild(ctx, false)
	var busy *busyError
	require.ErrorAs(t, err, &busy)
	host, _ := os.Hostname()
	require.ErrorContains(t, err, fmt.Sprintf("jail debian is being built by %q, process %d on %s, since ", strings.Join(os.Args, " "), os.Getpid(), host))

	got := make(chan error)
	go func() {
		second, err := j.StartBuild(ctx, true)
		if err == nil {
			err = second.Remove()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatal("did not wait: ", err)
	case <-time.After(200 * time.Millisecond): // it waits
	}
	require.NoError(t, first.Remove())
	require.NoError(t, <-got)

	first, err = j.StartBuild(ctx, false)
	require.NoError(t, err)
	short, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("interrupted"))
	_, err = j.StartBuild(short, true)
	require.EqualError(t, err, "interrupted")
	require.NoError(t, first.Remove())
	j.mustBeClean(t)
}

func TestLockNamesItsHolder(t *testing.T) {
	j := newJail(t)
	require.NoError(t, j.withLock(context.Background(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		err := j.withLock(ctx, func() error { return nil })
		require.ErrorContains(t, err, fmt.Sprintf("%s is locked by %q, process %d on ", j.path(lockFile), strings.Join(os.Args, " "), os.Getpid()))
		return nil
	}))
	require.EqualError(t, explainLock("/x", unix.ENOLCK), "cannot lock /x: no locks available; the storage must have locks for all nodes: NFS without nolock, Lustre with -o flock")
	require.EqualError(t, explainLock("/x", unix.EROFS), "cannot lock /x: read-only file system; run it on a node that may write to the storage")
}

// TestOrphansAreRemoved covers each thing that a killed command may leave.
func TestOrphansAreRemoved(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	j.mustPublish(t, "1")
	work, err := j.StartBuild(ctx, false)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(work.Path("tree/deep/er"), 0o700))
	work.lock.Close() // as the kernel does
	require.NoError(t, os.Mkdir(j.path(workDir, kindBuild+"without-owner"), 0o700))
	require.NoError(t, os.WriteFile(j.recordPath("2"), []byte("{}"), 0o644))
	require.NoError(t, os.WriteFile(j.ListPath("2"), nil, 0o644))
	require.NoError(t, os.WriteFile(j.recordPath("1")+".new", nil, 0o644))
	require.NoError(t, os.Symlink("x", j.path(workDir, linkName)))
	_, err = j.SwitchTo(ctx, "1", "me")
	require.NoError(t, err)
	j.mustBeClean(t)
	assert.Equal(t, "[1]", j.state(t))
}

func init() {
	nstest.Actions["work"] = func(input string) (any, error) {
		s, err := Open(input)
		if err != nil {
			return nil, err
		}
		j, err := s.Jail("debian")
		for i := 0; err == nil; i++ {
			err = j.workOnce(fmt.Sprintf("%d-%d", os.Getpid(), i))
			if err != nil && (strings.Contains(err.Error(), "has no version") || strings.Contains(err.Error(), "has no previous version") || strings.Contains(err.Error(), "is the current one") || strings.Contains(err.Error(), "is being built by")) {
				err = nil // the other process was faster
			}
		}
		return nil, err
	}
}

// workOnce publishes a version, switches to it and back, and collects.
func (j *Jail) workOnce(id string) error {
	ctx := context.Background()
	if err := j.publish(ctx, id, FormatDir); err != nil {
		return err
	}
	if _, err := j.SwitchTo(ctx, id, "child"); err != nil {
		return err
	}
	if _, err := j.Rollback(ctx, "child"); err != nil {
		return err
	}
	all, err := j.Versions()
	if err != nil || len(all) < 4 {
		return err
	}
	_, err = j.Collect(ctx, 1, func() (*Survey, error) { return &Survey{}, nil })
	return err
}

// TestChild is where a child of nstest begins its work.
func TestChild(*testing.T) { nstest.Child() }

// TestKilledAtAnyMoment kills two processes that build, switch and remove. After each, the jail is whole, and the
// next change finds nothing half-made.
func TestKilledAtAnyMoment(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	const rounds = 60
	for round := 0; round < rounds || j.state(t) == "" && round < 10*rounds; round++ { // on a busy machine, the children begin late
		var cmds []*exec.Cmd
		var output [2]bytes.Buffer
		for i := range output {
			cmd := nstest.Command("work", filepath.Dir(j.dir))
			cmd.Stdout = &output[i]
			require.NoError(t, cmd.Start())
			cmds = append(cmds, cmd)
		}
		time.Sleep(time.Duration(20+round*3) * time.Millisecond) // any moment
		for _, cmd := range cmds {
			require.NoError(t, cmd.Process.Kill())
			cmd.Wait()
		}
		require.Empty(t, output[0].String()+output[1].String(), "what a child could not do")
		all, err := j.Versions()
		require.NoError(t, err)
		if target, err := os.Readlink(j.path(currentLink)); err == nil {
			_, err = os.Stat(j.path(target, "version"))
			require.NoError(t, err, "the current version is whole")
		}
		for _, v := range all {
			require.NoError(t, v.Err)
			text, err := os.ReadFile(filepath.Join(j.Path(v), "version"))
			require.NoError(t, err)
			require.Equal(t, v.Version, string(text))
		}
		require.NoError(t, j.withLock(ctx, func() error { return nil }))
		j.mustBeClean(t)
	}
	require.NotEmpty(t, j.state(t), "the children did something")
}
