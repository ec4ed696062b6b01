// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// trapSource is a library that writes the process which loads it into /data/trace.
const trapSource = `
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	int fd = open("/data/trace", O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd >= 0) {
		fchmod(fd, 0666);
		dprintf(fd, "uid %d euid %d\n", getuid(), geteuid());
		close(fd);
	}
}
`

// buildTrap puts a shared object into the jail where PAM and NSS look for modules, with an nsswitch.conf and
// a PAM service that name it.
func buildTrap(t *testing.T, jail string) {
	t.Helper()
	dir := t.TempDir()
	source, object := filepath.Join(dir, "trap.c"), filepath.Join(dir, "trap.so")
	require.NoError(t, os.WriteFile(source, []byte("#include <sys/stat.h>\n"+trapSource), 0o644))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", object, source).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(object)
	require.NoError(t, err)
	lib := harness.LibraryDir + "/"
	for _, path := range []string{lib + "libnss_trap.so.2", lib + "security/pam_trap.so", lib + "security/pam_permit.so"} {
		replaceFile(t, filepath.Join(jail, path), string(text))
	}
	replaceFile(t, filepath.Join(jail, "etc/nsswitch.conf"), "passwd: trap files\ngroup: trap files\nshadow: trap files\n")
	replaceFile(t, filepath.Join(jail, "etc/pam.d/slurm"), "session required pam_trap.so\nauth required pam_trap.so\naccount required pam_trap.so\n")
}

// replaceFile creates a new file: the jail's old files are hard links into the cache.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	os.Remove(path)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}
