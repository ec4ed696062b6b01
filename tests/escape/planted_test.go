// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const owned = "/srv/jails/owned"

// giveRootToAlice gives the directories of the jail "owned" to alice, and restores what she changes at its
// top.
func (s *site) giveRootToAlice(t *testing.T) {
	t.Helper()
	top := s.Path(owned)
	before, err := os.ReadDir(top)
	require.NoError(t, err)
	require.NoError(t, os.Chown(top, 5001, 5001))
	t.Cleanup(func() {
		require.NoError(t, os.Chown(top, 0, 0))
		var names []string
		for _, entry := range before {
			names = append(names, entry.Name())
		}
		after, err := os.ReadDir(top)
		require.NoError(t, err)
		for _, entry := range after {
			assert.Contains(t, names, entry.Name(), "what a test plants it takes away")
		}
		s.reloadJail(t)
	})
}

// reloadJail assembles the jail "owned" again.
func (s *site) reloadJail(t *testing.T) {
	t.Helper()
	r := s.Gojail("n1", "reload", "owned")
	require.Zero(t, r.Code, r)
}

// swapForTest exchanges two names in the jail "owned" for the rest of the test.
func (s *site) swapForTest(t *testing.T, path, other string) {
	t.Helper()
	swap := func() {
		for _, step := range [][2]string{{path, path + ".was"}, {other, path}, {path + ".was", other}} {
			require.NoError(t, os.Rename(s.Path(owned+step[0]), s.Path(owned+step[1])))
		}
	}
	swap()
	t.Cleanup(swap)
}

// plantFalseProc creates a directory that looks like a /proc in which every process is one of the node's.
func (s *site) plantFalseProc(t *testing.T, path string, pid int) {
	t.Helper()
	dir := s.Path(owned + path)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"sys", "bus", "fs", "irq", "acpi", "asound", "scsi", fmt.Sprintf("%d/ns", pid), fmt.Sprintf("%d/fd", pid)} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for _, file := range []string{"keys", "kcore", "timer_list", "timer_stats", "sched_debug", "latency_stats", "sysrq-trigger"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o644))
	}
	for _, file := range []string{"stat", "status", "cgroup"} {
		text, err := os.ReadFile(s.Path(fmt.Sprintf("/proc/%d/%s", pid, file)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(pid), file), text, 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(pid), "mountinfo"), nil, 0o644))
	for _, name := range []string{"self", "thread-self"} {
		require.NoError(t, os.Symlink(fmt.Sprint(pid), filepath.Join(dir, name)))
	}
}

// TestPlantedProc replaces the jail's /proc, as the owner of its contents, after the
// template was made, by one in which the holder of a sandbox is a process of the node.
// No task may run on the node for that, and nobody may kill that process.
func TestPlantedProc(t *testing.T) {
	s := sharedSite(t)
	s.giveRootToAlice(t)
	s.startVictim(t, "node", onNode)
	pid := s.findVictim(t, "node")
	s.reloadJail(t)
	r := s.runStep("owned", "run", "view") // assembled from here on
	require.Contains(t, r.Stdout, held, r)
	s.plantFalseProc(t, "/false", pid)
	s.swapForTest(t, "/proc", "/false")
	r = s.Root("chroot", owned, "readlink", "/proc/self")
	require.Equal(t, fmt.Sprint(pid), strings.TrimSpace(r.Stdout), "control: root in a bare chroot believes it: %s", r)
	look := attackPath + " run view"
	job := s.Batch(harness.Alice, look+"; srun "+look+"; srun --overlap "+look, "--jail=owned", "-wn1")
	assert.NotContains(t, job.Output, escaped, "%v", job)
	assert.Regexp(t, held+"|/proc of the jail is not what was mounted there", job.Output, "%v", job)
	assert.True(t, s.WaitIdle(), s.Drained())
	assert.Equal(t, pid, s.findVictim(t, "node"), "the end of the job ended a process of the node's")
}

// librarySource is a library that adds a line to /data/trace of the root in which it is loaded.
const librarySource = `
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	int fd = open("/data/trace", O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd < 0)
		return;
	char name[200] = "";
	if (readlink("/proc/self/exe", name, sizeof name - 1) < 0)
		name[0] = 0;
	fchmod(fd, 0666);
	dprintf(fd, "uid %d euid %d %s\n", getuid(), geteuid(), name);
	close(fd);
}
`

// plantFile puts a file into the jail "owned" for the rest of the test.
func (s *site) plantFile(t *testing.T, path string, text []byte) {
	t.Helper()
	s.PlantFile(t, owned+path, text)
}

// TestPlantedLibraries has a jail in which every configuration file names the attacker's
// library, which root must never load; tests/slurm covers PAM and NSS.
func TestPlantedLibraries(t *testing.T) {
	s := sharedSite(t)
	dir := t.TempDir()
	source, object := filepath.Join(dir, "trap.c"), filepath.Join(dir, "trap.so")
	require.NoError(t, os.WriteFile(source, []byte(librarySource), 0o644))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", object, source).CombinedOutput()
	require.NoError(t, err, string(out))
	library, err := os.ReadFile(object)
	require.NoError(t, err)
	lib := harness.LibraryDir
	for _, path := range []string{lib + "/libtrap.so", lib + "/libnss_trap.so.2", lib + "/gconv/TRAP.so", lib + "/security/pam_trap.so",
		lib + "/slurm-wlm/spank_trap.so", lib + "/slurm/spank_trap.so", lib + "/hwloc/hwloc_trap.so", "/opt/gojail/lib/gojail/libgojail.so"} {
		s.plantFile(t, path, library)
	}
	for path, text := range map[string]string{
		"/etc/ld.so.preload":            lib + "/libtrap.so\n",
		"/etc/nsswitch.conf":            "passwd: trap files\ngroup: trap files\nshadow: trap files\ninitgroups: trap files\nhosts: trap files\n",
		"/etc/pam.d/slurm":              "session required pam_trap.so\nauth required pam_trap.so\naccount required pam_trap.so\n",
		"/etc/slurm/plugstack.conf":     "required " + lib + "/slurm/spank_trap.so\n",
		"/etc/gojail/gojail.toml":       "default = \"none\"\n",
		lib + "/gconv/gconv-modules":    "module INTERNAL TRAP// TRAP 1\n",
		"/etc/slurm/task_prolog":        "#!/bin/sh\ntouch /data/prolog.$(id -u)\n",
		"/etc/ld.so.conf.d/trap.conf":   lib + "\n",
		"/home/alice/task_epilog":       "#!/bin/sh\n/usr/bin/id -un\n",
		"/etc/security/pam_env.conf":    "LD_PRELOAD DEFAULT=" + lib + "/libtrap.so\n",
		"/etc/environment":              "LD_PRELOAD=" + lib + "/libtrap.so\n",
		"/etc/slurm/plugstack.conf.d/x": "required " + lib + "/slurm/spank_trap.so\n",
	} {
		s.plantFile(t, path, []byte(text))
	}
	t.Cleanup(func() { os.Remove(s.Path(owned + "/data/trace")) })
	s.reloadJail(t)
	t.Cleanup(func() { s.reloadJail(t) })
	for _, args := range [][]string{{}, {"--pty"}, {"--task-epilog=/home/alice/task_epilog", "--task-prolog=/home/alice/task_epilog"}} {
		r := s.Run(harness.Alice, append(append([]string{"srun", "-wn1", "--jail=owned"}, args...), "getent", "passwd", "alice")...)
		require.Zero(t, r.Code, r)
	}
	job := s.Batch(harness.Alice, "srun id -un; getent passwd bob", "--jail=owned", "-wn1", "--output=/home/alice/planted.out")
	assert.Equal(t, "COMPLETED", job.State, job)
	os.Remove(s.Path(owned + "/home/alice/planted.out"))
	trace, _ := os.ReadFile(s.Path(owned + "/data/trace"))
	assert.Contains(t, string(trace), "uid 5001 euid 5001", "control: the user's own programs load it")
	assert.NotContains(t, string(trace), "uid 0", "root loaded a library of the jail's")
	assert.NoFileExists(t, s.Path("/data/trace"), "it was loaded on the node")
	assert.NoFileExists(t, s.Path("/data/prolog.0"))
}
