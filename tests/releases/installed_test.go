// SPDX-License-Identifier: Apache-2.0

// Package releases_test tests the scripts that make the roots of the suite.
package releases_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Parts of a tree with the prefix /opt/slurm.
const (
	header   = "/opt/slurm/include/slurm/slurm_version.h"
	slurmd   = "/opt/slurm/sbin/slurmd"
	munge    = "/opt/slurm/lib/slurm/auth_munge.so"
	ownAuth  = "/opt/slurm/lib/slurm/auth_slurm.so"
	stepd    = "/opt/slurm/sbin/slurmstepd"
	libslurm = "/opt/slurm/lib/slurm/libslurmfull.so"
	version  = "#define SLURM_VERSION_NUMBER 0x190508\n"
)

// makeTree makes what tests/releases/installed looks at, with programs that are no Slurm's.
func makeTree(t *testing.T, dir string) {
	t.Helper()
	program, err := os.ReadFile("/usr/bin/true")
	require.NoError(t, err)
	for path, text := range map[string]string{header: version, slurmd: string(program), "/opt/slurm/sbin/slurmctld": string(program),
		"/opt/slurm/bin/srun": string(program), stepd: string(program), munge: "", ownAuth: "", libslurm: "\x00/etc/slurm/slurm.conf\x00"} {
		write(t, dir+path, text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

// TestTreesThatAreRefused: one line says what was asked, what is wrong and what to do, before anything is made.
func TestTreesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"no directory":       {func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }, "no such directory; name the DESTDIR"},
		"a file":             {func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)); write(t, dir, "") }, "no such directory; name the DESTDIR"},
		"no headers":         remove(header, "no include/slurm/slurm_version.h below it; name the DESTDIR"),
		"headers of two":     add("/usr/include/slurm/slurm_version.h", version, "headers in /opt/slurm/include/slurm /usr/include/slurm; name a directory with one Slurm"),
		"no version":         add(header, "#undef SLURM_VERSION_NUMBER\n", "has no SLURM_VERSION_NUMBER; install Slurm there anew"),
		"no slurmd":          remove(slurmd, "no /opt/slurm/sbin/slurmd; build Slurm with that program"),
		"no slurmstepd":      remove(stepd, "no slurmstepd below /opt/slurm; install Slurm there anew"),
		"no ELF":             add(slurmd, "#!/bin/sh\n", "/opt/slurm/sbin/slurmd is for no machine, and this is "),
		"another machine":    {changeMachine, "/opt/slurm/sbin/slurmd is for IBM S/390, and this is "},
		"plugins of two":     add("/usr/lib/slurm/auth_munge.so", "", "are in /opt/slurm/lib/slurm /usr/lib/slurm, not in one"),
		"plugins elsewhere":  {movePlugins, "plugins are in /srv/slurm, outside its prefix /opt/slurm; use one prefix for all"},
		"no slurm.conf":      add(libslurm, "/run/slurm/conf/slurm.conf\n", "names a place of slurm.conf; build it with --sysconfdir=/etc/slurm"),
		"slurm.conf in /etc": add(libslurm, "/etc/slurm.conf\n", "its slurm.conf is in /etc, among other files; build it with --sysconfdir=/etc/slurm"),
		"and in the prefix":  add(libslurm, "/opt/slurm.conf\n", "its slurm.conf is in /opt, among other files; build it with --sysconfdir=/etc/slurm"),
		"a prefix of users":  {movePrefix, "the prefix /home/slurm is not possible in the tests' machines; use /usr, /usr/local or /opt/slurm"},
		"neither auth": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir+munge))
			require.NoError(t, os.Remove(dir+ownAuth))
		}, "are in no directory, not in one; build Slurm with munge or JWT"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tree")
			makeTree(t, dir)
			c.change(t, dir)
			out, err := exec.Command("./installed", dir).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, 2, exit.ExitCode())
			assert.Equal(t, 1, strings.Count(string(out), "\n"), "%s", out)
			assert.Contains(t, string(out), "cannot test on the Slurm in "+dir+": ")
			assert.Contains(t, string(out), c.want)
		})
	}
}

type refusal = struct {
	change func(t *testing.T, dir string)
	want   string
}

func remove(path, want string) refusal {
	return refusal{func(t *testing.T, dir string) { require.NoError(t, os.Remove(dir+path)) }, want}
}

func add(path, text, want string) refusal {
	return refusal{func(t *testing.T, dir string) { write(t, dir+path, text) }, want}
}

// changeMachine makes slurmd a program of another machine (e_machine, elf(5)).
func changeMachine(t *testing.T, dir string) {
	program, err := os.ReadFile(dir + slurmd)
	require.NoError(t, err)
	binary.LittleEndian.PutUint16(program[18:], 22)
	write(t, dir+slurmd, string(program))
}

func movePlugins(t *testing.T, dir string) {
	require.NoError(t, os.Mkdir(dir+"/srv", 0o755))
	require.NoError(t, os.Rename(dir+"/opt/slurm/lib/slurm", dir+"/srv/slurm"))
}

func movePrefix(t *testing.T, dir string) {
	require.NoError(t, os.Rename(dir+"/opt", dir+"/home"))
}
