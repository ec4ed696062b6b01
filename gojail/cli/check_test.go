// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/internal/nstest"
)

// TestChild is where a child of nstest begins its work.
func TestChild(*testing.T) { nstest.Child() }

func init() {
	// The input is a jail's root, and the command line.
	nstest.Actions["onSilentRoot"] = func(input string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		words := strings.Fields(input)
		stop, err := nstest.MountSilent(words[0])
		if err != nil {
			return nil, err
		}
		defer stop()
		cmd := exec.Command("/proc/self/exe", words[1:]...)
		cmd.Env = append(os.Environ(), "GOJAIL_TEST_COMMAND=1", nstest.Variable+"=")
		out, _ := cmd.CombinedOutput()
		return string(out), nil
	}
}

// The command ends although a process of it waits for the storage of a jail.
func TestCheckOnSilentStorage(t *testing.T) {
	nstest.NeedFUSE(t)
	s := newSite(t)
	t.Setenv("GOJAIL_TEST_COMMAND", "")
	var out string
	require.NoError(t, nstest.RunText(t, "onSilentRoot", strings.Join(append(append([]string{s.root}, s.flags...), "check", "--quiet"), " "), &out))
	assert.Contains(t, out, "FAIL  jail tiny: "+s.root+": its storage silent (fuse.silent) does not answer; check the server and the network to it\n")
}

func TestCheckExitCode(t *testing.T) {
	s := newSite(t)
	out, err := s.gojail("check")
	assert.Equal(t, cmdline.SilentExit(1), err)
	assert.Contains(t, out, "FAIL  jail tiny: mount targets are missing in "+s.root)
	assert.Regexp(t, `(?m)^OK    jail tiny: storage \S+ \(\w+\) on /.*; 1000 lstat in \S+, median \S+$`, out)
	_, err = s.gojail("init", "tiny")
	require.NoError(t, err)
	out, err = s.gojail("check", "--quiet")
	assert.NotContains(t, out, "FAIL  jail tiny")
	assert.NotContains(t, out, "OK ")
	assert.Equal(t, strings.Contains(out, "FAIL"), err != nil)
}
