// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/nstest"
)

// killedSite is a site whose commands are killed.
type killedSite struct {
	*testSite
	store, before string // the store, and a copy of it from before the command that is killed
	source        string // a tar file compressed with xz
}

func newKilledSite(t *testing.T) *killedSite {
	t.Helper()
	s, dir := newStoreSite(t)
	tree := filepath.Join(s.dir, "tiny")
	for _, name := range []string{"a", "b/c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(tree, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(tree, name, "file"), bytes.Repeat([]byte("x"), 10_000), 0o644))
	}
	source := filepath.Join(s.dir, "tiny.tar.xz")
	out, err := exec.Command("tar", "-C", tree, "-cJf", source, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return &killedSite{s, dir, filepath.Join(s.dir, "before"), source}
}

// copyStore replaces a directory by a copy of another.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	out, err := exec.Command("cp", "-a", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}

// restore makes the store what it was, with leases that are newer than that.
func (k *killedSite) restore(t *testing.T) {
	t.Helper()
	copyStore(t, k.before, k.store)
	leases, err := filepath.Glob(filepath.Join(k.store, ".nodes/*.json"))
	require.NoError(t, err)
	for _, lease := range leases {
		text, err := os.ReadFile(lease)
		require.NoError(t, err)
		soon := time.Now().Add(30 * time.Second).Format(time.RFC3339) // clocks may differ by a minute
		text = regexp.MustCompile(`"asked": *"[^"]*"`).ReplaceAll(text, []byte(`"asked": "`+soon+`"`))
		require.NoError(t, os.WriteFile(lease, text, 0o644))
	}
}

// isBetween reports whether a store may be left like this by a command that is killed: what is there before and after the command
// is there, and nothing more than that.
func (s stored) isBetween(before, after stored) bool {
	for file, files := range before.versions {
		if _, stays := after.versions[file]; stays && s.versions[file] != files {
			return false
		}
	}
	few, many := len(before.versions), len(after.versions)
	return len(s.versions) >= min(few, many) && len(s.versions) <= max(few, many) && (s.current == before.current || s.current == after.current)
}

// stored is what a store has of jail debian.
type stored struct {
	current  string
	versions map[string]string // the files of each, see listVersion
}

func (k *killedSite) read(t *testing.T) (s stored) {
	t.Helper()
	s.versions = map[string]string{}
	if target, err := os.Readlink(filepath.Join(k.store, "debian/current")); err == nil {
		s.current = filepath.Base(target)
	}
	entries, _ := os.ReadDir(filepath.Join(k.store, "debian/versions"))
	for _, e := range entries {
		s.versions[e.Name()] = listVersion(t, filepath.Join(k.store, "debian/versions", e.Name()))
	}
	return s
}

// listVersion returns the names, modes and sizes of a version's files.
func listVersion(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		size := info.Size()
		if d.IsDir() {
			size = 0
		}
		fmt.Fprintf(&b, "%s %s %d\n", strings.TrimPrefix(path, root), info.Mode(), size)
		return nil
	}))
	return b.String()
}

// requireClean runs a command that changes nothing but what killed ones left, and fails if anything is left of them, or a new
// version is not as it was built.
func (k *killedSite) requireClean(t *testing.T, before, has stored) {
	t.Helper()
	k.must(t, "jail", "gc", "debian", "--no-slurm", "--keep", "99")
	require.Equal(t, has, k.read(t), "the next command")
	allowed := map[string][]string{"": {"current", "history.json", "lock", "records", "versions", "work"}, "work": nil, "records": nil}
	for file, files := range has.versions {
		if was, existed := before.versions[file]; existed {
			require.Equal(t, was, files, "version %s", file)
		} else {
			require.Contains(t, k.must(t, "jail", "verify", "debian", store.ID(file)), " is as it was built\n")
		}
		allowed["records"] = append(allowed["records"], store.ID(file)+".json", store.ID(file)+".mtree.gz")
	}
	for dir, names := range allowed {
		entries, err := os.ReadDir(filepath.Join(k.store, "debian", dir))
		require.NoError(t, err)
		for _, e := range entries {
			require.Contains(t, names, e.Name(), "what is left in debian/%s", dir)
		}
	}
}

// slowly lets a command run under strace(1), which delays each system call by which a command changes a store, so that a kill
// meets each state between two of them. The command stays the child of the test.
func slowly(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	const changes = "mkdirat,fchmodat,fchmod,ftruncate,pwrite64,fsync,symlinkat,renameat,unlinkat"
	program, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace: make deps")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd.Args = slices.Concat([]string{"strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=" + changes,
		"-e", "inject=" + changes + ":delay_enter=10000", self}, cmd.Args[1:])
	cmd.Path = program
}

// runOrKill runs a command to its end, or until it has run for some time; after 0 it is not killed.
func (k *killedSite) runOrKill(t *testing.T, slow bool, after time.Duration, command ...string) (killed bool) {
	t.Helper()
	cmd := k.command(command...)
	if slow {
		slowly(t, cmd)
	}
	said, err := os.CreateTemp(t.TempDir(), "") // no pipe: Wait would wait for all that have it
	require.NoError(t, err)
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	if after > 0 {
		time.Sleep(after) // any moment
		cmd.Process.Kill()
	}
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(said.Name())
		require.EqualError(t, err, "signal: killed", string(text))
		nstest.WaitUntilClosed(t, fmt.Sprintf("/run/gojail-edit-%d-*", cmd.Process.Pid)) // else the next command sweeps nothing of the edit
		return true
	}
	return false
}

// killAtAnyMoment runs a command to its end, and then kills it, each time later than before, until after the time that the whole one
// took. GOJAIL_KILLS asks for more rounds, as make test-all does.
func (k *killedSite) killAtAnyMoment(t *testing.T, rounds int, slow bool, command ...string) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("GOJAIL_KILLS")); err == nil {
		rounds = n
	}
	copyStore(t, k.store, k.before)
	defer k.restore(t)
	k.restore(t)
	before, begin := k.read(t), time.Now()
	require.False(t, k.runOrKill(t, slow, 0, command...))
	whole, after := time.Since(begin), k.read(t)
	require.NotEqual(t, before, after, "the command does something")
	killed, same := 0, 0
	for round := range rounds {
		k.restore(t)
		begin, idle := time.Now(), time.Duration(0)
		if slow {
			idle = whole * 3 / 8 // it starts, and reads
		}
		if k.runOrKill(t, slow, idle+(whole*9/8-idle)*time.Duration(round+1)/time.Duration(rounds), command...) {
			killed++
		} else {
			whole = min(whole, time.Since(begin)) // a busy machine is not always as busy
		}
		has := k.read(t)
		require.True(t, has.isBetween(before, after), "there is %v, before the command %v, after it %v", has, before, after)
		if assert.ObjectsAreEqual(before, has) {
			same++
		}
		nstest.WaitUntilClosed(t, k.store+"/debian/work/*/owner.json")
		k.requireClean(t, before, has)
	}
	require.Eventually(t, func() bool { return len(findOfEdit(k.store+"/debian/work")) == 0 }, time.Minute, 10*time.Millisecond, "processes and mounts")
	t.Logf("%d of %d were killed, within up to %v; %d changed nothing", killed, rounds, whole, same)
	require.NotZero(t, killed)
}

// TestJailCommandsAreKilledAtAnyMoment: afterwards each version is as before or as after the command, and so is the link to
// the current one. The next command removes what is half-made.
func TestJailCommandsAreKilledAtAnyMoment(t *testing.T) {
	k := newKilledSite(t)
	build := []string{"jail", "build", "debian", "--no-targets", "--from", "tar:" + k.source}
	var list []string
	for range 3 {
		k.must(t, build...)
		k.must(t, "jail", "switch", "debian")
		list, _ = k.versions(t)
	}
	k.must(t, "sweep")
	for _, test := range []struct {
		name    string
		rounds  int
		slow    bool
		command []string
	}{
		{"switch", 7, true, []string{"jail", "switch", "debian", list[0]}},
		{"rollback", 5, true, []string{"jail", "rollback", "debian"}},
		{"rm", 7, true, []string{"jail", "rm", "debian", list[0], "--force"}},
		{"gc", 8, true, []string{"jail", "gc", "debian", "--no-slurm", "--keep", "0"}},
		{"build", 8, false, build},
		{"build squashfs", 3, false, append(build, "--as", "squashfs")},
	} {
		t.Run(test.name, func(t *testing.T) { k.killAtAnyMoment(t, test.rounds, test.slow, test.command...) })
	}
}

// TestEditIsKilledAtAnyMoment is that for an edit, which takes longer. TestSweepAfterAKilledEdit kills it at certain moments.
func TestEditIsKilledAtAnyMoment(t *testing.T) {
	k := newKilledSite(t)
	k.buildBusybox(t)
	k.killAtAnyMoment(t, 2, false, "jail", "edit", "debian", "--", "sh", "-c", "touch /new")
}

// TestFirstBuildIsKilled kills the build that makes the directories of a store, with an umask that would keep users out of
// them. The next build has them as they must be.
func TestFirstBuildIsKilled(t *testing.T) {
	k := newKilledSite(t)
	copyStore(t, k.store, k.before)
	defer unix.Umask(unix.Umask(0o077))
	killed := 0
	for _, call := range []string{"mkdirat", "fchmodat"} {
		for n := 1; n <= 5; n++ {
			copyStore(t, k.before, k.store)
			cmd := k.command("jail", "build", "debian", "--no-targets", "--from", "tar:"+k.source)
			slowly(t, cmd)
			cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return a == "--seccomp-bpf" }) // with it, the signal comes late
			cmd.Args[slices.Index(cmd.Args, "-e")+3] = fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n)
			if cmd.Run() != nil { // another thread may make the call
				killed++
			}
			nstest.WaitUntilClosed(t, k.store+"/debian/work/*/owner.json")
			_, err := k.gojail("jail", "ls")
			require.NoError(t, err)
			k.must(t, "jail", "build", "debian", "--no-targets", "--from", "tar:"+k.source)
			k.must(t, "jail", "switch", "debian")
			k.requireClean(t, stored{}, k.read(t))
			for _, dir := range []string{"debian", "debian/versions", "debian/records", "debian/work", ".nodes"} {
				info, err := os.Stat(filepath.Join(k.store, dir))
				require.NoError(t, err)
				require.Equal(t, fs.ModeDir|0o755, info.Mode(), "%s, killed before %s %d", dir, call, n)
			}
		}
	}
	require.Greater(t, killed, 5)
}
