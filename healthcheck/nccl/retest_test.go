// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/nstest"
)

// An earlier start was killed after it had reserved a node; then a person took over the node.
func TestANodeThatIsLeftOutIsNotReservedAnyMore(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: the directories must be root's")
	}
	for name, there := range map[string]string{
		"reserved":     "",
		"not reserved": "exit 1",
	} {
		dir, err := os.MkdirTemp("/root", "gojail-test-")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		s := fake(t, map[string]string{"scontrol": `echo "$*" >>` + dir + `/calls
case "$*" in
"show node n1") echo "NodeName=n1 Arch=x86_64 "; echo "   State=IDLE+DRAIN ThreadsPerCore=1 "; echo "   Reason=mine [alice@2026-11-21T18:00:00]" ;;
delete*) ` + there + ` ;;
"--oneliner show reservation") echo "No reservations in the system" ;;
*) exit 1 ;;
esac`})
		c := config.Defaults()
		c.Slurm, c.NCCL = s.Slurm, *s.NCCL
		r := &Runner{Config: c, Slurm: s, Store: Store{State: dir + "/state", Run: dir + "/run"}, Now: time.Now, Say: t.Logf}
		round := &testRound{ID: "a", Began: time.Now(), Nodes: []string{"n1", "n2"}, Retest: []string{"n1"}}
		lock, err := r.Store.Prepare()
		require.NoError(t, err)
		defer lock.Close()
		require.NoError(t, r.takeNode(context.Background(), round, "n1"), name)
		assert.Empty(t, round.Retest, name)
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		require.NoError(t, err)
		assert.Contains(t, string(calls), "delete reservationname=gojail-nccl-n1\n", name)
	}
}

// A file that cannot be renamed into place is not left behind.
func TestWhatCannotBeWrittenIsNotLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "round.json")
	require.NoError(t, writeState(path, "a"))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	assert.Error(t, writeState(path, "b"))
	assert.NoFileExists(t, path+".new")
}

// A command with endless output uses bounded memory.
func TestTheOutputOfACommandIsBounded(t *testing.T) {
	s := fake(t, map[string]string{"sinfo": "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2"})
	out, err := s.runCommand(context.Background(), nil, "", "sinfo")
	require.NoError(t, err)
	assert.Len(t, out, command.OutputMost)
}
