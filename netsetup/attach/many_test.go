// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// TestOneJobAtATime checks that Attach waits for Attach, and that Sweep skips a job that is
// being attached.
func TestOneJobAtATime(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true})
	job := newJobSpace(t)
	begun, goOn := make(chan bool, 8), make(chan bool)
	n.site.stepHook = func(pci, step string, done bool) error {
		if step == "move" && !done {
			begun <- true
			<-goOn
		}
		return nil
	}
	var wait sync.WaitGroup
	var got [3]*Network
	var errs [3]error
	for i := range got {
		wait.Go(func() { got[i], errs[i] = n.attach(job) })
	}
	<-begun
	swept, err := Sweep(t.Context(), n.site, isNeverAlive)
	assert.NoError(t, err)
	assert.Equal(t, []Leftover{{Job: "4711", Why: "it is being attached or released now"}}, swept.Leftovers)
	close(goOn)
	wait.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	assert.Equal(t, got[0].Env, got[1].Env)
	assert.Equal(t, got[0].Env, got[2].Env)
	assert.LessOrEqual(t, len(begun), 1, "each rail once")
	n.release()
}

// TestACallerWithoutTime checks that finished steps are undone after the caller's deadline.
func TestACallerWithoutTime(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true, directory: true})
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	ctx, cancel := context.WithCancel(t.Context())
	n.site.stepHook = func(pci, step string, done bool) error {
		if step == "routes" && done {
			cancel()
		}
		return nil
	}
	_, err := Attach(ctx, n.site, Job{ID: "4711", Netns: job.FD()})
	require.ErrorIs(t, err, context.Canceled)
	requireSame(t, before, n.takeSnapshot())
	requireSame(t, empty, readSpace(t, job))
}

func TestManyJobs(t *testing.T) {
	n := newNode(t, setup{vfs: 50, control: true, directory: true})
	before := n.takeSnapshot()
	for range 2 {
		var wait sync.WaitGroup
		jobs, got, errs := make([]*link.Namespace, 50), make([]*Network, 50), make([]error, 50)
		for i := range jobs {
			jobs[i] = newJobSpace(t)
			wait.Go(func() {
				got[i], errs[i] = Attach(t.Context(), n.site, Job{ID: fmt.Sprint(i), Netns: jobs[i].FD()})
			})
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		addresses := map[netip.Addr]bool{}
		for _, g := range got {
			addresses[g.Control.Addresses[0]], addresses[g.Rails[0].Addresses[0].Addr()] = true, true
		}
		assert.Len(t, addresses, 100)
		held, err := ListHeld(n.site.State)
		require.NoError(t, err)
		assert.Len(t, held, 50)
		for i := range jobs {
			wait.Go(func() { errs[i] = Release(t.Context(), n.site, fmt.Sprint(i)) })
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		requireSame(t, before, n.takeSnapshot())
		for _, job := range jobs {
			job.Close()
		}
	}
}

// TestManyJobsInARow attaches GOJAIL_JOBS jobs; make test-all sets a thousand.
func TestManyJobsInARow(t *testing.T) {
	jobs := 120
	if n, err := strconv.Atoi(os.Getenv("GOJAIL_JOBS")); err == nil {
		jobs = n
	}
	n := newNode(t, setup{control: true, directory: true})
	before, files := n.takeSnapshot(), countDescriptors(t)
	job := newJobSpace(t)
	empty := readSpace(t, job)
	for i := range jobs {
		id := fmt.Sprint(i)
		_, err := Attach(t.Context(), n.site, Job{ID: id, Netns: job.FD()})
		require.NoError(t, err)
		require.NoError(t, Release(t.Context(), n.site, id))
	}
	requireSame(t, before, n.takeSnapshot())
	requireSame(t, empty, readSpace(t, job))
	assert.LessOrEqual(t, countDescriptors(t), files+10)
}

func countDescriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}
