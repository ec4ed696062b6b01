// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const (
	pamSource  = "int siteword(void);\nint pam_sm_open_session(void *h, int f, int c, const char **v) { (void)h; (void)f; (void)c; (void)v; return siteword(); }\n"
	pamService = "/etc/pam.d/slurm"
	pamModule  = "/opt/site/pam_site.so" // of root
)

// compileLibrary compiles C source to a shared library.
func compileLibrary(t *testing.T, source string, options ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	from, object := filepath.Join(dir, "x.c"), filepath.Join(dir, "x.so")
	require.NoError(t, os.WriteFile(from, []byte(source), 0o644))
	out, err := exec.Command("gcc", append([]string{"-shared", "-fPIC", "-o", object, from}, options...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(object)
	require.NoError(t, err)
	return text
}

// compileSiteLibrary returns a libsite.so.1, which prints its owner when it is loaded.
func compileSiteLibrary(t *testing.T, whose string) []byte {
	return compileLibrary(t, strings.Replace(librarySource, "uid %d euid", whose+"'s: uid %d euid", 1)+"int siteword(void) { return 0; }\n", "-Wl,-soname,libsite.so.1")
}

// writeOnNode writes a file of the node for the rest of the test.
func (s *site) writeOnNode(t *testing.T, path string, text []byte) {
	t.Helper()
	before, err := os.ReadFile(s.Path(path))
	there := err == nil
	require.NoError(t, os.MkdirAll(filepath.Dir(s.Path(path)), 0o755))
	require.NoError(t, os.WriteFile(s.Path(path), text, 0o755))
	t.Cleanup(func() {
		if there {
			require.NoError(t, os.WriteFile(s.Path(path), before, 0o644))
		} else {
			require.NoError(t, os.Remove(s.Path(path)))
		}
	})
}

// TestPlantedInALibraryDirectory has a directory in the node's ld.so.conf that is data in the jail, and a PAM module
// that needs a library of it. Root must load the node's library or none, whoever owns that path in the jail.
func TestPlantedInALibraryDirectory(t *testing.T) {
	s := sharedSite(t)
	t.Cleanup(func() {
		for _, path := range []string{"/data/trace", "/data/lib", "/data/alice/lib", owned + "/data/trace", owned + "/data/lib", owned + "/data/other"} {
			os.RemoveAll(s.Path(path))
		}
		s.reloadJail(t)
	})
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libsite.so"), compileSiteLibrary(t, "node"), 0o755))
	s.writeOnNode(t, "/data/lib/libsite.so.1", compileSiteLibrary(t, "node"))
	t.Cleanup(func() { require.Zero(t, s.Root("ldconfig").Code) })
	s.writeOnNode(t, "/etc/ld.so.conf.d/site.conf", []byte("/data/lib\n"))
	require.Zero(t, s.Root("ldconfig").Code)
	s.writeOnNode(t, pamModule, compileLibrary(t, pamSource, "-L"+dir, "-lsite"))
	service, err := os.ReadFile(s.Path(pamService))
	require.NoError(t, err)
	s.writeOnNode(t, pamService, append(service, "session optional "+pamModule+"\n"...))
	s.plantFile(t, "/data/lib/libsite.so.1", compileSiteLibrary(t, "jail"))
	s.plantFile(t, "/data/other/libsite.so.1", compileSiteLibrary(t, "jail"))
	s.writeOnNode(t, "/data/alice/lib/libsite.so.1", compileSiteLibrary(t, "mount"))
	// loads returns the traces of what root loaded in a step.
	loads := func(args ...string) string {
		r := s.Run(harness.Alice, append(append([]string{"srun", "-wn1"}, args...), "true")...)
		require.Zero(t, r.Code, r)
		var text string
		for _, path := range []string{"/data/trace", owned + "/data/trace"} {
			trace, _ := os.ReadFile(s.Path(path))
			text += string(trace)
			os.Remove(s.Path(path))
		}
		return text
	}
	s.giveRootToAlice(t)
	s.reloadJail(t)
	require.Contains(t, loads("--jail=none"), "node's: uid 0", "control: the PAM module is asked")
	trace := loads("--jail=owned")
	assert.Contains(t, trace, "node's: uid 0", "the node's own is there too")
	assert.NotContains(t, trace, "jail's: uid 0")
	assert.NotContains(t, loads("--jail=owned", "--jail-mount=/data/alice/lib:/data/lib"), "mount's: uid 0")
	s.swapForTest(t, "/data/lib", "/data/other")
	assert.NotContains(t, loads("--jail=owned"), "jail's: uid 0", "the directory got another name")
}

// TestPlantedMountTarget mounts a directory of the node in the jail's data. The owner of the data replaces the
// target by a symlink to a path that root reads, at which nothing of the users' may appear.
func TestPlantedMountTarget(t *testing.T) {
	s := sharedSite(t)
	s.giveRootToAlice(t)
	target := s.Path(owned + "/mnt/data")
	require.NoError(t, os.Rename(target, target+".was"))
	t.Cleanup(func() {
		os.Remove(target)
		require.NoError(t, os.Rename(target+".was", target))
		s.reloadJail(t)
	})
	require.NoError(t, os.Symlink("/etc/pam.d", target))
	s.writeOnNode(t, "/var/lib/gojail/n1/local/owned/mnt/data/slurm", []byte("auth required pam_permit.so\naccount required pam_permit.so\n"+
		"session required pam_exec.so /usr/bin/touch /data/ran\n"))
	t.Cleanup(func() { os.Remove(s.Path(owned + "/data/ran")) })
	s.reloadJail(t)
	r := s.Run(harness.Alice, "srun", "-wn1", "--jail=owned", "true")
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "mount target /mnt/data in /srv/jails/owned is a symlink that leads out", r)
	assert.NoFileExists(t, s.Path(owned+"/data/ran"), "root did what a user has written")
}
