// SPDX-License-Identifier: Apache-2.0

package session_test

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

// trapSource is a library that adds a line to /data/trace of the root in which it is loaded.
const trapSource = `
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	int fd = open("/data/trace", O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd >= 0) {
		fchmod(fd, 0666);
		dprintf(fd, "uid %d euid %d\n", getuid(), geteuid());
	}
}
`

// plantTraps makes every configuration file of the jail "other" name the attacker's library, which root must never load, for the rest of the test.
func (s *site) plantTraps(t *testing.T, node string) {
	t.Helper()
	dir := t.TempDir()
	source, object := filepath.Join(dir, "trap.c"), filepath.Join(dir, "trap.so")
	require.NoError(t, os.WriteFile(source, []byte(trapSource), 0o644))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", object, source).CombinedOutput()
	require.NoError(t, err, string(out))
	library, err := os.ReadFile(object)
	require.NoError(t, err)
	lib := harness.LibraryDir
	for path, text := range map[string]string{
		lib + "/libtrap.so": string(library), lib + "/libnss_trap.so.2": string(library), lib + "/security/pam_trap.so": string(library),
		lib + "/gconv/TRAP.so": string(library), lib + "/gconv/gconv-modules": "module INTERNAL TRAP// TRAP 1\n",
		"/etc/ld.so.preload": lib + "/libtrap.so\n", "/etc/nsswitch.conf": "passwd: trap files\ngroup: trap files\ninitgroups: trap files\n",
		"/etc/pam.d/sshd": "session required pam_trap.so\n", "/etc/pam.d/su-l": "session required pam_trap.so\n", "/etc/profile.d/trap.sh": "id -u >>/data/trace.profile\n",
		"/home/alice/.bashrc": "id -u >>/data/trace.bashrc\n", "/home/alice/.bash_profile": "id -u >>/data/trace.bashrc\n",
		"/home/alice/.ssh/rc": "id -u >>/data/trace.rc\n", "/home/alice/.ssh/environment": "LD_PRELOAD=" + lib + "/libtrap.so\n",
		"/etc/gojail/session.conf": "node=n2\n", "/etc/gojail/gojail.toml": "default = \"none\"\n",
	} {
		s.plantFile(t, path, text)
	}
	t.Cleanup(func() { s.Root("sh", "-c", "rm -f /srv/jails/other/data/trace*") })
	require.Zero(t, s.Gojail(node, "reload", "other").Code)
}

// requireNotTrapped requires that alice has loaded the library, and that root has not.
func (s *site) requireNotTrapped(t *testing.T) {
	t.Helper()
	trace, err := os.ReadFile(s.Path("/srv/jails/other/data/trace"))
	require.NoError(t, err)
	assert.Contains(t, string(trace), "uid 5001 euid 5001\n", "control: the user's own programs load it")
	assert.NotRegexp(t, `uid 0\b`, string(trace), "root loaded a library of the jail's")
	found, _ := filepath.Glob(s.Path("/data/trace*"))
	assert.Empty(t, found, "something of the jail's ran on the node")
	profiles, _ := os.ReadFile(s.Path("/srv/jails/other/data/trace.profile"))
	assert.Equal(t, "", strings.ReplaceAll(string(profiles), "5001\n", ""), "root read a start-up file of the jail's")
}

// TestPlantedFiles covers a session in a job.
func TestPlantedFiles(t *testing.T) {
	s := sharedSite(t)
	s.plantTraps(t, "n1")
	s.startJob(t, harness.Alice, "--jail=other")
	for _, port := range []string{forced, shells} {
		requireOutput(t, "alice", s.runSSH(harness.Alice, "none", port, "id -un"))
		r := s.Do(harness.Command{User: harness.Alice, Stdin: "exit\n", Args: append(listSSHArguments("ssh", port), "-tt", "127.0.0.1")})
		assert.Zero(t, r.Code, r)
	}
	s.requireNotTrapped(t)
}

// TestPlantedFilesOnALoginNode covers sessions there, of which the first has the sandbox built and the last has it removed.
func TestPlantedFilesOnALoginNode(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, `"debian"`, `"other"`, 1))
	s.plantTraps(t, "login1")
	for _, port := range []string{forced, shells} {
		requireOutput(t, "alice", s.runSSH(harness.Alice, "none", port, "id -un"))
	}
	requireOutput(t, "alice", s.Root("su", "-", "alice", "-c", "id -un"))
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.listLogins() == "" }), s.listLogins())
	s.requireNotTrapped(t)
}

// plantFile puts a file into the jail "other" for the rest of the test.
func (s *site) plantFile(t *testing.T, path, text string) {
	t.Helper()
	s.PlantFile(t, "/srv/jails/other"+path, []byte(text))
}
