// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/nstest"
)

// silence is what TestSilentStore finds in a child, whose store does not answer.
type silence struct {
	Errors     map[string]int
	Longest    time.Duration
	Goroutines int           // that are left
	Processes  []string      // that did not end with success
	Plain      time.Duration // a template of a jail that is not in the store
	After      string        // the error when the store answers again
}

// silentPatience is the timeout of a refresh in the test.
const silentPatience = 100 * time.Millisecond

// silentNode is a node with a store and a jail of it, and one that is elsewhere.
func silentNode(dir string) (*state.State, *config.Config, error) {
	s, err := state.OpenState(filepath.Join(dir, "state"))
	plain := &config.Jail{Name: "plain", Root: "/srv/plain"}
	stored := &config.Jail{Name: "small", Root: filepath.Join(dir, "store/debian/current"), Versions: "debian"}
	return s, &config.Config{Node: "n1", Store: filepath.Join(dir, "store"), Jails: map[string]*config.Jail{"plain": plain, "small": stored}}, err
}

// refreshOnce is Refresh with a short timeout. It returns how long that took.
func refreshOnce(s *state.State, c *config.Config) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), silentPatience)
	defer cancel()
	start := time.Now()
	err := Refresh(ctx, s, c, true)
	return time.Since(start), err
}

func init() {
	nstest.Actions["refreshOnce"] = func(dir string) (any, error) {
		s, c, err := silentNode(dir)
		if err != nil {
			return nil, err
		}
		_, err = refreshOnce(s, c)
		return nil, err
	}
	nstest.Actions["silentStore"] = refreshSilentStore
}

func refreshSilentStore(dir string) (any, error) {
	if err := nstest.MakePrivate(); err != nil {
		return nil, err
	}
	s, c, err := silentNode(dir)
	if err != nil {
		return nil, err
	}
	stop, err := nstest.MountSilent(c.Store)
	if err != nil {
		return nil, err
	}
	found := silence{Errors: map[string]int{}}
	before := runtime.NumGoroutine()
	var wait sync.WaitGroup
	var lock sync.Mutex
	for range 20 {
		wait.Go(func() {
			for range 3 {
				took, err := refreshOnce(s, c)
				lock.Lock()
				found.Errors[fmt.Sprint(err)]++
				found.Longest = max(found.Longest, took)
				lock.Unlock()
			}
		})
	}
	wait.Wait()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // those that wait for the lock end with their context
		if found.Goroutines = runtime.NumGoroutine() - before; found.Goroutines <= 1 {
			break
		}
	}
	for range 3 { // as runs of the health check do
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestChild$") // in this mount namespace
		cmd.Env = append(os.Environ(), nstest.Variable+"=refreshOnce")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := runUntil(ctx, cmd); err != nil {
			found.Processes = append(found.Processes, err.Error())
		}
		cancel()
	}
	start := time.Now()
	_, err = Around(s, c, c.Jails["plain"], func() (int, error) { return 7, nil })
	found.Plain = time.Since(start)
	stop()
	if err == nil {
		err = Refresh(context.Background(), s, c, true)
	}
	found.After = fmt.Sprint(err)
	return found, nil
}

// runUntil runs a command, and does not wait longer than ctx for its end.
func runUntil(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		cmd.Process.Kill()
		return ctx.Err()
	}
}

// TestSilentStore: a store that does not answer costs each refresh its timeout, and the node one goroutine, however many
// refreshes there are. Processes that refresh end, jails elsewhere work, and the next refresh succeeds when the store answers.
func TestSilentStore(t *testing.T) {
	nstest.NeedFUSE(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "store"), 0o755))
	var found silence
	require.NoError(t, nstest.RunText(t, "silentStore", dir, &found))
	assert.Equal(t, map[string]int{"cannot write the lease of this node: the store " + dir + "/store does not answer in time": 60}, found.Errors)
	assert.Less(t, found.Longest, time.Minute)
	assert.LessOrEqual(t, found.Goroutines, 1, "the one that has the lock")
	assert.Empty(t, found.Processes)
	assert.Less(t, found.Plain, time.Minute)
	assert.Equal(t, "<nil>", found.After)
	assert.FileExists(t, filepath.Join(dir, "store/.nodes/n1.json"))
}
