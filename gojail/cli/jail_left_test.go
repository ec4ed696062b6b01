// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/store"
)

// TestBuiltThoughSomethingIsLeft: a mount in the work item hinders its removal. The version is printed nevertheless.
func TestBuiltThoughSomethingIsLeft(t *testing.T) {
	k := newKilledSite(t)
	fifo := filepath.Join(k.dir, "fifo") // the build waits for its source while it has a work item
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	var out string
	ended := make(chan error, 1)
	go func() {
		var err error
		out, err = k.gojail("jail", "build", "debian", "--no-targets", "--json", "--from", "tar:"+fifo)
		ended <- err
	}()
	work := filepath.Join(k.store, "debian/work/build-*")
	require.Eventually(t, exists(work+"/tree"), time.Minute, time.Millisecond)
	found, err := filepath.Glob(work)
	require.NoError(t, err)
	stuck := filepath.Join(found[0], "stuck")
	require.NoError(t, os.Mkdir(stuck, 0o700))
	require.NoError(t, unix.Mount("none", stuck, "tmpfs", 0, "size=4k"))
	t.Cleanup(func() { unix.Unmount(stuck, unix.MNT_DETACH) })
	said, err := exec.Command("dd", "if="+k.source, "of="+fifo, "status=none").CombinedOutput()
	require.NoError(t, err, string(said))

	err = <-ended
	list, _ := k.versions(t)
	require.Len(t, list, 1)
	require.ErrorContains(t, err, "version "+list[0]+" is built, but its work directory cannot be removed: ")
	assert.NotContains(t, err.Error(), "is not built")
	var record store.Record
	require.NoError(t, json.Unmarshal([]byte(out), &record), out)
	assert.Equal(t, list[0], record.Version)
}

// TestSecondSignalEndsACommand: the command waits in open(2) of a FIFO, as for storage that does not answer.
func TestSecondSignalEndsACommand(t *testing.T) {
	k := newKilledSite(t)
	fifo := filepath.Join(k.dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	cmd := k.command("jail", "build", "debian", "--no-targets", "--from", "tar:"+fifo)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	require.Eventually(t, exists(filepath.Join(k.store, "debian/work/build-*/tree")), time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	select {
	case err := <-ended:
		require.Fail(t, "the first signal ended it", "%v", err)
	case <-time.After(100 * time.Millisecond): // it goes on
	}
	require.Eventually(t, func() bool {
		cmd.Process.Signal(os.Interrupt)
		return len(ended) > 0
	}, time.Minute, 50*time.Millisecond)
	assert.EqualError(t, <-ended, "signal: interrupt")
}
