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

// TestUnderSanitizers runs gojail-session with AddressSanitizer and UndefinedBehaviorSanitizer, with valid and invalid calls.
func TestUnderSanitizers(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	const dir = "/srv/asan"
	require.NoError(t, os.MkdirAll(s.Path(dir), 0o755))
	t.Cleanup(func() { os.RemoveAll(s.Path(dir)) })
	path := dir + "/gojail-session"
	sources := []string{filepath.Join(t.TempDir(), "options.c")}
	// LeakSanitizer uses ptrace(2), which this program does not allow.
	require.NoError(t, os.WriteFile(sources[0], []byte("const char *__asan_default_options(void);\nconst char *__asan_default_options(void) { return \"detect_leaks=0\"; }\n"), 0o644))
	for _, folder := range []string{"common", "session"} {
		found, err := filepath.Glob("../../spank/" + folder + "/*.c")
		require.NoError(t, err)
		require.NotEmpty(t, found)
		sources = append(sources, found...)
	}
	out, err := exec.Command("gcc", append([]string{"-std=gnu11", "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-static-libasan", "-static-libubsan", "-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`, "-I../../include", "-I../../spank", "-o", s.Path(path)}, sources...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Chown(s.Path(path), 0, 0))
	require.Zero(t, s.Root("chmod", "4755", path).Code)
	long := strings.Repeat("x", 100000)
	for script, want := range map[string]string{
		"$P -c \"$W\"":                                                                    "debian\n",
		"SSH_ORIGINAL_COMMAND=\"$W\" $P":                                                  "debian\n",
		"SLURM_JOB_ID=" + long + " $P -c \"$W\"":                                          "",
		"TERM=" + long + " LANG=" + long + " $P -c $W":                                    "",
		"SSH_ORIGINAL_COMMAND='internal-sftp -l' $P </dev/null":                           "",
		"SSH_ORIGINAL_COMMAND=/x/sftp-server $P </dev/null":                               "",
		"for i in $(seq 100); do export LC_$i=$i; done; $P -c \"$W\"":                     "debian\n",
		"exec -a '' $P -c \"$W\"":                                                         "debian\n",
		"exec <&- ; $P -c \"$W\"":                                                         "debian\n",
		"ulimit -n 20; ulimit -f 1; $P -c \"$W\"":                                         "debian\n",
		"unshare -Ur $P -c \"$W\"":                                                        "",
		"$P -c 'kill -9 $$'":                                                              "",
		"SLURM_JOB_ID=1000000 $P -c \"$W\"":                                               "",
		"SLURM_JOB_ID= $P -c \"$W\"":                                                      "",
		"setpriv --no-new-privs $P -c \"$W\"":                                             "",
		"$P -c " + long[:50000] + " 2>&1 | grep -v xxx; true":                             "",
		"for i in $(seq 3000); do args+=(a b c); done; $P -c \"$W\" \"${args[@]}\"":       "debian\n",
		"script -qec \"$P\" /dev/null <<<'cat /etc/gojail-jail; exit 3' | grep -c debian": "1\n",
	} {
		r := s.Run(harness.Alice, "bash", "-c", "P="+path+"; W='"+where+"'; "+script)
		name := script[:min(len(script), 80)]
		assert.Equal(t, want, r.Stdout, "%s: %v", name, r.Stderr)
		assert.NotRegexp(t, "Sanitizer|runtime error", r.Stderr, name)
	}
}
