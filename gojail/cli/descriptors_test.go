// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestDescriptorsOfACommand: pipes and files of root's are copied, with what programs expect of them.
func TestDescriptorsOfACommand(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	big := strings.Repeat("0123456789abcdef", 1<<18) // more than any pipe
	for _, row := range []struct {
		name, script, stdin, stdout, stderr string
		code                                int
	}{
		{name: "input", script: "cat; echo end", stdin: big, stdout: big + "end\n"},
		{name: "input that is not read", script: "echo end; exit 3", stdin: big, stdout: "end\n", code: 3},
		{name: "input that is closed", script: "exec <&-; sleep 0.1; echo end", stdin: big, stdout: "end\n"},
		{name: "no input", script: "wc -c", stdout: "0\n"},
		{name: "both outputs", script: "echo one; echo two >&2; echo three", stdout: "one\nthree\n", stderr: "two\n"},
		{name: "outputs by path", script: "echo one >/dev/stdout; echo two >/dev/stderr; cat /dev/stdin", stdin: "three", stdout: "one\nthree", stderr: "two\n"},
		{name: "a signal", script: "echo one; kill -KILL $$", stdout: "one\n", code: 137},
		{name: "what a background process writes is not waited for", script: "(sleep 609; echo late) & echo one", stdout: "one\n"},
	} {
		for _, user := range []string{"root", "nobody"} {
			cmd := s.command("run", "tiny", "-u", user, "--", "sh", "-c", row.script)
			var out, errs bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(row.stdin), &out, &errs
			begin := time.Now()
			cmd.Run()
			assert.Equal(t, row.code, cmd.ProcessState.ExitCode(), "%s: %s", row.name, &errs)
			assert.True(t, row.stdout == out.String(), "%s: %.100q", row.name, out.String())
			assert.Equal(t, row.stderr, errs.String(), row.name)
			assert.Less(t, time.Since(begin), time.Minute, row.name)
		}
	}
}

// TestOrderOfOutputs: with 2>&1 both outputs come in the order in which they were written.
func TestOrderOfOutputs(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	out, err := s.command("run", "tiny", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo -$i >&2; done").CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "1\n-1\n2\n-2\n3\n-3\n4\n-4\n5\n-5\n6\n-6\n7\n-7\n8\n-8\n9\n-9\n", string(out))
}

// TestOutputThatIsNotRead: a command whose reader has gone gets SIGPIPE, one whose disk is full an error; the sandbox is removed.
func TestOutputThatIsNotRead(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := s.command("run", "tiny", "--", "yes")
	cmd.Stdout = write
	require.NoError(t, cmd.Start())
	write.Close()
	_, err = io.ReadFull(read, make([]byte, 10))
	require.NoError(t, err)
	read.Close()
	cmd.Wait()
	assert.Equal(t, 128+int(unix.SIGPIPE), cmd.ProcessState.ExitCode())

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	var errs bytes.Buffer
	cmd = s.command("run", "tiny", "--", "yes")
	cmd.Stdout, cmd.Stderr = full, &errs
	cmd.Run()
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
	assert.Contains(t, errs.String(), "gojail: cannot copy the command's output: write /dev/stdout: no space left on device\n")
	list, err := s.gojail("ls")
	require.NoError(t, err)
	assert.Contains(t, list, "No job has a sandbox")
}

// TestReaderThatStops: the command ends by a signal, and this process by the next one, though the output is not read.
func TestReaderThatStops(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	cmd := s.command("run", "tiny", "--", "yes", "up")
	cmd.Stdout = write
	require.NoError(t, cmd.Start())
	write.Close()
	_, err = io.ReadFull(read, make([]byte, 10))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for until := time.Now().Add(time.Minute); len(ended) == 0 && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		cmd.Process.Signal(unix.SIGTERM)
	}
	require.Error(t, <-ended)
	entries, err := os.ReadDir(filepath.Join(s.dir, "state-n1/jobs"))
	require.NoError(t, err)
	assert.Empty(t, entries)
}
