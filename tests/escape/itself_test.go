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

// itselfSource is loaded into every program of the jail. In gojail's own it takes hold of the program's
// file, and hands it to one that waits until it can be written.
const itselfSource = `
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	char name[200] = "";
	if (readlink("/proc/self/exe", name, sizeof name - 1) < 0 || (strcmp(name, "/") && access(name, F_OK) == 0))
		return; /* it is of the jail */
	if (dup2(open("/proc/self/exe", O_RDONLY), 9) == 9 && fork() == 0) {
		setsid();
		execl("/opt/waits", "/opt/waits", NULL);
	}
	_exit(0);
}
`

const waitsSource = `
#include <fcntl.h>
#include <unistd.h>
int main(void)
{
	if (fcntl(9, F_GETFD) == 0)
		close(creat("/home/alice/has-it", 0644));
	for (int tries = 0; tries < 100; tries++, usleep(10000)) {
		int fd = open("/proc/self/fd/9", O_WRONLY);
		if (fd >= 0)
			return write(fd, "written by an attack", 20) != 20;
	}
	return 1;
}
`

// TestGojailIsNotWritten: in a jail whose content is the attacker's, the program that root runs there is a link to
// the process itself, which is gojail-launcher at that moment. The attacker gets no hold of the node's program by that: of a copy
// that no zygote runs, which could not be written anyway, and that is the attacker's, so that no mode of the file protects it.
func TestGojailIsNotWritten(t *testing.T) {
	s := sharedSite(t)
	compile := func(source string, args ...string) []byte {
		from, to := filepath.Join(t.TempDir(), "a.c"), filepath.Join(t.TempDir(), "a")
		require.NoError(t, os.WriteFile(from, []byte(source), 0o644))
		out, err := exec.Command("gcc", append(args, "-o", to, from)...).CombinedOutput()
		require.NoError(t, err, string(out))
		text, err := os.ReadFile(to)
		require.NoError(t, err)
		return text
	}
	const library = "/opt/itself.so"
	s.plantFile(t, library, compile(itselfSource, "-shared", "-fPIC"))
	s.plantFile(t, "/opt/waits", compile(waitsSource, "-static"))
	s.plantFile(t, "/etc/ld.so.preload", []byte(library+"\n"))
	itself := s.Path(owned + "/opt/itself")
	require.NoError(t, os.Symlink("/proc/self/exe", itself))
	t.Cleanup(func() { os.Remove(itself) })
	s.startVictim(t, "job-of-alice", jailPlace("", harness.Alice, "owned"))
	id := strings.TrimSpace(s.Root("squeue", "-h", "-t", "R", "-o", "%i").Stdout)
	require.NotEmpty(t, id)

	const installed, copied = harness.Prefix + "/lib/gojail", harness.Prefix + "/lib/itself"
	before, err := os.ReadFile(s.Path(installed + "/gojail-launcher"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(s.Path(copied), 0o755))
	t.Cleanup(func() { os.RemoveAll(s.Path(copied)) })
	program := s.Path(copied + "/gojail-launcher")
	require.NoError(t, os.WriteFile(program, before, 0o755))
	require.NoError(t, os.Chown(program, 5001, 5001))
	r := s.Gojail("n1", "enter", "--libdir="+copied, id, "--", "/opt/itself")
	mark := s.Path(owned + "/home/alice/has-it")
	t.Cleanup(func() { os.Remove(mark) })
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(mark); return err == nil }), "control: %s", r)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("/opt/waits")) == 0 }))
	after, err := os.ReadFile(program)
	require.NoError(t, err)
	assert.Equal(t, string(before[:20]), string(after[:20]), r)
}
