// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/nstest"
)

func TestADamagedRecordStillDrainsAndNeverUndrains(t *testing.T) {
	for _, text := range []string{"", "{", "{}", "\x00"} {
		s := newSite(t)
		s.set("state.d/drain.json", text)
		s.run("oo oo")
		assert.ErrorContains(t, s.outcome.Err, "is damaged")
		assert.Empty(t, s.calls())
		s.run("fo fo")
		s.is("IDLE+DRAIN", reasonA)
		s.set("state.d/drain.json", text)
		s.run("oo oo oo oo")
		assert.NotContains(t, s.calls(), "UNDRAIN")
	}
}

func TestASickNodeIsDrainedAlsoIfItsDiskIsFull(t *testing.T) {
	s := newSite(t)
	require.NoError(t, os.Mkdir(filepath.Join(s.reconciler.Store.State, "drain.json.new"), 0o700))
	s.run("fo fo")
	assert.ErrorContains(t, s.outcome.Err, "undrain by hand")
	text, err := os.ReadFile(filepath.Join(s.dir, "state"))
	require.NoError(t, err)
	assert.Equal(t, "IDLE+DRAIN\n", string(text))
}

// newWriter returns a writer of records with a deadline, as in a run.
func newWriter(t *testing.T) run.Writer { return run.NewWriter(t.TempDir(), "record", WriteFile) }

// The disk hangs while Slurm is queried: opening a FIFO without a writer blocks in the same
// way.
const hangs = "[ -p state.d/drain.json ] || mkfifo state.d/drain.json"

func TestASickNodeIsDrainedAlsoIfItsDiskHangs(t *testing.T) {
	s := newSite(t)
	s.reconciler.Store.Write = newWriter(t)
	s.reconciler.Slurm.Timeout = 5 * time.Second
	s.run("fo")
	s.set("before-show", hangs)
	s.run("fo")
	assert.ErrorContains(t, s.outcome.Err, "undrain by hand: the disk does not answer in time")
	assert.Contains(t, s.calls(), "State=DRAIN")

	// The remaining time is shared with Slurm.
	s = newSite(t)
	s.reconciler.Store.Write = newWriter(t)
	s.reconciler.Slurm.Timeout = time.Hour
	s.run("fo")
	s.set("before-show", hangs)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // half of it is for the disk
	defer cancel()
	s.reconciler.History.AddResults(results("fo"))
	s.outcome = s.reconciler.Reconcile(ctx, results("fo"))
	assert.ErrorContains(t, s.outcome.Err, "undrain by hand")
	assert.NoError(t, ctx.Err())
	assert.Contains(t, s.calls(), "State=DRAIN")
}

func TestScontrolIsCalledWithABareEnvironment(t *testing.T) {
	s := newSite(t)
	t.Setenv("SLURM_TIME_FORMAT", "relative")
	s.reconciler.Slurm.Conf = "/etc/other.conf"
	s.set("before-show", "env >env; echo no luck >&2; exit 1")
	_, err := s.reconciler.Slurm.showNode(context.Background())
	assert.EqualError(t, err, fmt.Sprintf("cannot show node n1: %s: exit status 1: no luck; see: %[1]s ping", s.reconciler.Slurm.Scontrol))
	text, err := os.ReadFile(filepath.Join(s.dir, "env"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "SLURM_CONF=/etc/other.conf\n")
	assert.NotContains(t, string(text), "SLURM_TIME_FORMAT")
}

func TestPrepareRefusesADirectoryOfOthers(t *testing.T) {
	nstest.NeedRoot(t)
	root, err := os.MkdirTemp("/root", "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	s := Store{Run: root + "/run/health", State: root + "/state"}
	require.NoError(t, s.Prepare())
	require.NoError(t, s.Prepare())
	require.NoError(t, os.Chmod(s.State, 0o777))
	assert.ErrorContains(t, s.Prepare(), "writable by others")
}
