// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/gojail/store"
)

// newStoreSite is a site with a store and a jail "stored" whose root is in it. tiny's root is what jails are built from.
func newStoreSite(t *testing.T) (s *testSite, store string) {
	t.Helper()
	s = newSite(t)
	t.Setenv("GOJAIL_TEST_COMMAND", "1") // for the processes that unpack
	store = filepath.Join(s.dir, "store")
	require.NoError(t, os.Mkdir(store, 0o755))
	path := filepath.Join(s.dir, "gojail.toml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	more := "store = \"" + store + "\"\n" + string(text) + "[jail.stored]\nroot = \"store:debian\"\nslurm = false\nhost = [\"/etc/passwd\"]\nlocal = [\"/var/local\"]\n"
	require.NoError(t, os.WriteFile(path, []byte(more), 0o644))
	return s, store
}

// must runs a command that must succeed, and returns what it printed.
func (s *testSite) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.gojail(args...)
	require.NoError(t, err, out)
	return out
}

// versions returns the versions of the only jail, the oldest first, and the current one.
func (s *testSite) versions(t *testing.T) (list []string, current string) {
	t.Helper()
	var all struct {
		Jails []struct {
			Current  string
			Versions []store.Record
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.must(t, "jail", "ls", "--json")), &all))
	require.Len(t, all.Jails, 1)
	for _, v := range all.Jails[0].Versions {
		list = append(list, v.Version)
	}
	return list, all.Jails[0].Current
}

// TestBuildOfATreeWithALock: what is in the place of the lock of gojail init does not keep an image from being a jail.
func TestBuildOfATreeWithALock(t *testing.T) {
	s, store := newStoreSite(t)
	require.NoError(t, os.MkdirAll(s.root+"/.gojail.lock/full", 0o755))
	archive := filepath.Join(s.dir, "tree.tar")
	require.NoError(t, exec.Command("tar", "-cf", archive, "-C", s.root, ".").Run())
	s.must(t, "jail", "build", "debian", "--from", "tar:"+archive)
	list, _ := s.versions(t)
	require.Len(t, list, 1)
	_, err := os.Lstat(filepath.Join(store, "debian/versions", list[0], ".gojail.lock"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestBuildNamesFilesThatNoJobSees: who builds an image reads at once that jobs have directories of their own in it.
func TestBuildNamesFilesThatNoJobSees(t *testing.T) {
	s, _ := newStoreSite(t)
	const hidden = "no job sees "
	assert.NotContains(t, s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root), hidden)
	for _, dir := range []string{"/tmp", "/run/site", "/dev/shm"} {
		require.NoError(t, os.MkdirAll(s.root+dir, 0o755))
		require.NoError(t, os.WriteFile(s.root+dir+"/left", []byte("text"), 0o644))
	}
	out := s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root)
	assert.Contains(t, out, hidden+"/tmp/left /run/site/left /dev/shm/left: each has its own directory there; move what programs need to another one\n")
}

func TestJailFromBuildToRemoval(t *testing.T) {
	s, store := newStoreSite(t)
	assert.Equal(t, "The store has no jail.\n", s.must(t, "jail", "ls"))
	_, err := s.gojail("jail", "switch", "debian")
	require.EqualError(t, err, store+" has no jail yet; build one with: gojail jail build debian --from SOURCE")
	out, _ := s.gojail("check")
	assert.Regexp(t, "; if its storage is mounted, make a version of it current: gojail --config=.* jail build debian --from SOURCE, then gojail .* jail switch debian\n", out)

	out = s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root)
	list, current := s.versions(t)
	require.Len(t, list, 1)
	assert.Empty(t, current)
	assert.Contains(t, out, "built version "+list[0]+" of jail debian: ")
	assert.Contains(t, out, "to use it: gojail jail switch debian "+list[0]+"\n")
	root := filepath.Join(store, "debian/versions", list[0])
	for _, target := range []string{"tmp", "var/local", "etc/passwd", ".gojail.version"} {
		_, err := os.Stat(filepath.Join(root, target))
		require.NoError(t, err, "the mount targets of jail stored")
	}
	assert.NoFileExists(t, filepath.Join(root, ".gojail.lock"))

	assert.Equal(t, "jail debian: version "+list[0]+" is current\n", s.must(t, "jail", "switch", "debian"))
	assert.Equal(t, "version "+list[0]+" of jail debian is current already\n", s.must(t, "jail", "switch", "debian"))
	assert.Equal(t, "nothing to create: jail stored has all its mount targets\n", s.must(t, "init", "--force", "stored"))
	assert.Equal(t, "version "+list[0]+" of jail debian is as it was built\n", s.must(t, "jail", "verify", "debian"))

	out, _ = s.gojail("check")
	assert.NotContains(t, strings.Join(strings.Fields(out), " "), "make a version of it current")
	leases, err := os.ReadDir(filepath.Join(store, ".nodes"))
	require.NoError(t, err)
	assert.Empty(t, leases, "check tells the store nothing")
	layout := sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, []string{"etc/", "etc/new=1"})})
	s.must(t, "jail", "build", "debian", "--from", "oci:"+layout)
	list, current = s.versions(t)
	require.Len(t, list, 2)
	assert.Equal(t, list[0], current)
	assert.Equal(t, "jail debian: version "+list[1]+" is current, it was "+list[0]+"\n", s.must(t, "jail", "switch", "debian", list[1]))
	assert.FileExists(t, filepath.Join(store, "debian/current/etc/new"))
	out = s.must(t, "jail", "ls", "debian")
	assert.Regexp(t, `(?m)^JAIL +VERSION +FORMAT +SIZE +NODES +JOBS +BUILT +BY +DIGEST +SOURCE$`, out)
	assert.Regexp(t, `(?m)^debian +\*`+list[1]+` +dir +1 B +0 +0 +\d{4}-\S+ \S+ +\S+@\S+ +sha256:[0-9a-f]{12} +oci:`+layout+`$`, out)

	assert.Equal(t, "jail debian: version "+list[0]+" is current, it was "+list[1]+"\n", s.must(t, "jail", "rollback", "debian"))
	_, err = s.gojail("jail", "rollback", "debian")
	require.EqualError(t, err, "jail debian has no previous version; choose one with: gojail jail switch debian VERSION")

	_, err = s.gojail("jail", "rm", "debian", list[0], "--force")
	require.EqualError(t, err, "version "+list[0]+" is the current one of jail debian; switch to another one first")
	_, err = s.gojail("jail", "rm", "debian", list[1], "--no-slurm")
	require.EqualError(t, err, "version "+list[1]+" is not removed: cannot determine whether it is in use: no node has ever written a lease; run gojail sweep on the nodes; --force removes it nevertheless")
	assert.Equal(t, "removed version "+list[1]+" of jail debian\n", s.must(t, "jail", "rm", "debian", list[1], "--force"))

	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("x"), 0o644))
	out, err = s.gojail("jail", "verify", "debian")
	require.Equal(t, cmdline.SilentExit(1), err)
	assert.Equal(t, "changed ./etc/passwd (size: 0, now 1; content)\n", out)
	out, err = s.gojail("jail", "verify", "debian", "--json")
	require.Equal(t, cmdline.SilentExit(1), err)
	assert.JSONEq(t, `{"version": "`+list[0]+`", "differences": [{"path": "./etc/passwd", "what": "changed", "keys": ["size: 0, now 1", "content"]}]}`, out)
}

// TestJailGC has one node that says what it uses, and Slurm's answer about two.
func TestJailGC(t *testing.T) {
	s, dir := newStoreSite(t)
	for range 3 {
		s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root)
		s.must(t, "jail", "switch", "debian")
	}
	list, current := s.versions(t)
	require.Len(t, list, 3, "one source, within a second")
	require.Equal(t, list[2], current, "the newest one")
	_, err := s.gojail("jail", "gc", "--keep", "-1")
	require.EqualError(t, err, "--keep -1: must not be negative")
	_, err = s.gojail("jail", "gc", "--expire", "5m")
	require.EqualError(t, err, "--expire 5m0s: must be at least 1h, within which each node writes its lease again")
	out, err := s.command("jail", "gc", "--expire", "5m", "--json").Output() // the standard output alone
	require.Error(t, err)
	assert.Empty(t, string(out))
	doubt := "cannot determine whether it is in use: no node has ever written a lease; run gojail sweep on the nodes\n"
	assert.Equal(t, "kept version "+list[0]+" of jail debian: "+doubt+"kept version "+list[1]+" of jail debian: kept for a rollback (--keep)\n",
		s.must(t, "jail", "gc", "debian", "--no-slurm", "--keep", "1"))

	time.Sleep(time.Second) // a lease counts if it is a second newer than the last switch
	s.must(t, "sweep")
	nodes, err := filepath.Glob(filepath.Join(dir, ".nodes", "*.json"))
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	text, err := os.ReadFile(nodes[0])
	require.NoError(t, err)
	used := strings.Replace(string(text), `"uses": []`, `"uses": [{"version": "`+list[0]+`", "by": "job 17"}]`, 1)
	require.NotEqual(t, string(text), used)
	require.NoError(t, os.WriteFile(nodes[0], []byte(used), 0o644))
	_, err = s.gojail("jail", "rm", "debian", list[0], "--no-slurm")
	require.ErrorContains(t, err, " is not removed: in use on ")
	assert.Regexp(t, `(?m)^debian +`+list[0]+` +dir +\S+ B +1 +1 `, s.must(t, "jail", "ls"))
	assert.Regexp(t, "^kept version "+list[0]+` of jail debian: in use on \S+ \(job 17\)\nkept version `, s.must(t, "jail", "gc", "--no-slurm", "--keep", "1"))

	require.NoError(t, os.WriteFile(nodes[0], text, 0o644))
	assert.JSONEq(t, `{"jails": [{"name": "debian", "removed": ["`+list[0]+`"], "kept": [{"version": "`+list[1]+`", "why": "kept for a rollback (--keep)"}]}]}`,
		s.must(t, "jail", "gc", "--no-slurm", "--keep", "1", "--json"))
	assert.Equal(t, "removed version "+list[1]+" of jail debian\n", s.must(t, "jail", "gc", "--no-slurm", "--keep", "0"))
}

// TestSwitchToAnImageFile: what the switch prints is the name that other commands take.
func TestSwitchToAnImageFile(t *testing.T) {
	s, _ := newStoreSite(t)
	if _, err := exec.LookPath("mksquashfs"); err != nil {
		t.Skip("needs mksquashfs: make deps")
	}
	for range 2 {
		s.must(t, "jail", "build", "debian", "--no-targets", "--as", "squashfs", "--from", "dir:"+s.root)
	}
	list, _ := s.versions(t)
	assert.Equal(t, "jail debian: version "+list[0]+" is current\n", s.must(t, "jail", "switch", "debian", list[0]))
	assert.Equal(t, "jail debian: version "+list[1]+" is current, it was "+list[0]+"\n", s.must(t, "jail", "switch", "debian"))
	assert.Equal(t, "version "+list[1]+" of jail debian is current already\n", s.must(t, "jail", "switch", "debian"))
	_, err := s.gojail("jail", "rm", "debian", "2020")
	require.ErrorContains(t, err, `jail debian has no version "2020"; it has: `)
}

func TestJailEdit(t *testing.T) {
	s, store := newStoreSite(t)
	for path, target := range map[string]string{"../../build/lib/gojail/gojail-launcher": "make", "../../build/cache/jail/bin/sh": "make rootfs"} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("needs %s: run %s first", path, target)
		}
	}
	tree, err := filepath.EvalSymlinks("../../build/cache/jail")
	require.NoError(t, err)
	archive := filepath.Join(s.dir, "debian.tar")
	// What the commands below do not need is left out: each version is read several times. tar fails where a cluster makes links to files meanwhile.
	exec.Command("tar", "-cf", archive, "-C", tree, "--exclude=./usr/share", "--exclude=*python3*", "--exclude=*perl*", ".").Run()
	s.must(t, "jail", "build", "debian", "--from", "tar:"+archive)
	s.must(t, "jail", "switch", "debian")
	list, _ := s.versions(t)

	out, err := s.command("jail", "edit", "debian", "--", "sh", "-c", "touch /lost; exit 3").CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, "gojail: the command ended with 3: there is no new version of jail debian\n", string(out))
	out, err = s.command("jail", "edit", "debian", "--", "sh", "-c", "id -u >/etc/edited; rm /etc/hostname; chown 7 /etc/edited; ls "+store).CombinedOutput()
	require.Error(t, err, "the sandbox does not have the store")
	assert.Contains(t, string(out), "No such file or directory")
	edit := s.command("jail", "edit", "debian", "--", "sh", "-c", "id -u >/etc/edited; rm -f /etc/hostname; chown 7 /etc/edited")
	out, err = edit.CombinedOutput()
	require.NoError(t, err, string(out))
	after, current := s.versions(t)
	require.Len(t, after, 2)
	assert.Equal(t, list[0], current)
	assert.Contains(t, string(out), "built version "+after[1]+" of jail debian: ")
	root := filepath.Join(store, "debian/versions", after[1])
	text, err := os.ReadFile(filepath.Join(root, "etc/edited"))
	require.NoError(t, err)
	assert.Equal(t, "0\n", string(text))
	assert.NoFileExists(t, filepath.Join(root, "etc/hostname"))
	assert.NoFileExists(t, filepath.Join(root, "lost"))
	assert.Contains(t, s.must(t, "jail", "verify", "debian"), " is as it was built\n")
	assert.Contains(t, s.must(t, "jail", "verify", "debian", after[1]), " is as it was built\n")
	left, err := filepath.Glob(fmt.Sprintf("/run/gojail-edit-%d-*", edit.Process.Pid))
	require.NoError(t, err)
	assert.Empty(t, left)
	work, err := os.ReadDir(filepath.Join(store, "debian/work"))
	require.NoError(t, err)
	assert.Empty(t, work)
}

func TestJailBuildWithoutAConfiguration(t *testing.T) {
	s, store := newStoreSite(t)
	config := filepath.Join(s.dir, "gojail.toml")
	require.NoError(t, os.WriteFile(config, []byte("tebian = 1\n"), 0o644))
	_, err := s.gojail("jail", "build", "debian", "--store", store, "--from", "dir:"+s.root)
	require.ErrorContains(t, err, "; to create no mount targets, give --no-targets")
	require.NoError(t, os.Remove(config))
	for _, command := range []string{"ls", "jail build debian --no-targets --store " + store + " --from dir:" + s.root} {
		_, err = s.gojail(strings.Fields(command)...)
		require.ErrorContains(t, err, config+": cannot read the configuration: no such file or directory; copy gojail.toml.example there, or name another file with --config", command)
	}
	s.flags = slices.DeleteFunc(s.flags, func(flag string) bool { return flag == "--config="+config })
	out := s.must(t, "jail", "build", "debian", "--store", store, "--no-targets", "--json", "--from", "dir:"+s.root)
	var record map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &record))
	assert.Equal(t, "dir", record["format"])
	assert.NoDirExists(t, filepath.Join(store, "debian/versions", record["version"].(string), "tmp"))
}

func TestJailBuildForNoConfiguredJail(t *testing.T) {
	s, store := newStoreSite(t)
	s.must(t, "jail", "build", "other", "--from", "dir:"+s.root)
	list, _ := s.versions(t)
	assert.DirExists(t, filepath.Join(store, "other/versions", list[0], "tmp"), "the mount targets of a jail with the defaults")
}

func TestJailCommandsRefuse(t *testing.T) {
	s, store := newStoreSite(t)
	for command, want := range map[string]string{
		"jail build":   "gojail jail build needs one argument, the name of a jail; see: gojail jail build --help",
		"jail build a": "gojail jail build needs --from SOURCE; see: gojail jail build --help",
		"jail build a --from dir:/x -- --variant=apt":     "arguments after -- are for mmdebstrap, and the source is dir:/x",
		"jail build ../a --from dir:/x":                   `invalid name "../a" of a jail`,
		"jail build a --from dir:/x --max-size 1GB":       `--max-size: "1GB": write a size`,
		"jail build a --devices yes --from dir:" + s.root: `jail a is not built: device nodes: "yes": write drop, refuse or make`,
		"jail build a --from dir:/missing":                "jail a is not built: cannot open /missing: no such file or directory",
		"jail switch a b --store " + store + "/none":      "none does not exist; is its storage mounted?",
		"jail rollback": "gojail jail rollback needs one argument: the name of a jail",
		"jail verify":   "gojail jail verify needs the name of a jail, and takes a version; see: gojail jail verify --help",
		"jail rm a":     "gojail jail rm needs two arguments, the name of a jail and a version; see: gojail jail rm --help",
	} {
		_, err := s.gojail(strings.Fields(command)...)
		require.ErrorContains(t, err, want, command)
	}
	out, err := s.command("jail", "unpack-child", `{"target": "/"}`).CombinedOutput()
	require.Error(t, err, string(out))
}

func TestStoredNamesComplete(t *testing.T) {
	s, _ := newStoreSite(t)
	s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root, "--no-targets")
	list, _ := s.versions(t)
	for words, want := range map[string]string{"jail switch": "debian", "jail switch debian": list[0]} {
		var out bytes.Buffer
		cmd := newCommand(&localNode{})
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"__complete"}, append(s.flags, append(strings.Fields(words), "")...)...))
		require.NoError(t, cmd.Execute())
		assert.True(t, strings.HasPrefix(out.String(), want+"\n"), out.String())
	}
}
