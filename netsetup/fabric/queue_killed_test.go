// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/fake/killtest"
)

const orderVariable = "GOJAIL_TEST_ORDER"

// order is the task of a child process, which is this test binary.
type order struct {
	Config Config
	Queue  string
	Full   bool // the queue's file system is full after a few calls
}

func runChild(text string) int {
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.do()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o order) do() error {
	if o.Full {
		return fillDisk(o.Queue)
	}
	c, err := Open(o.Config)
	if err != nil {
		return err
	}
	q, err := OpenQueue(o.Queue)
	if err != nil {
		return err
	}
	if err := q.Do(context.Background(), c, Add, 0x11, 0xfe); err != nil {
		return err
	}
	return q.Do(context.Background(), c, Remove, 0x11, 0xfe)
}

// TestFileSystemFull stores calls until the file system is full, in a mount namespace of the
// child.
func TestFileSystemFull(t *testing.T) {
	startUFM(t) // for root
	text, err := json.Marshal(order{Queue: t.TempDir(), Full: true})
	require.NoError(t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func fillDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size=32k"); err != nil {
		return err
	}
	q, err := OpenQueue(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for g := GUID(1); ; g++ {
		err := q.Put(ctx, Add, 0x11, g)
		if err == nil {
			continue
		}
		entries, listErr := q.ListEntries(ctx)
		if !errors.Is(err, unix.ENOSPC) || listErr != nil || len(entries) != int(g)-1 || g < 3 {
			return fmt.Errorf("%d of %d calls: %w, %v", len(entries), g-1, err, listErr)
		}
		return nil // all before are whole, the last is not there
	}
}

// TestKilledAnywhere kills an add and a remove before each change of a file. UFM must end up
// with what the last stored call says.
func TestKilledAnywhere(t *testing.T) {
	u, c, config := startUFM(t)
	places := 0
	for n := 0; ; n++ {
		q := openQueue(t)
		before := len(u.Calls())
		text, err := json.Marshal(order{Config: config, Queue: q.dir})
		require.NoError(t, err)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), orderVariable+"="+string(text), "GOMAXPROCS=1")
		cmd.Stderr = os.Stderr
		call, err := killtest.Run(cmd, n)
		require.NoError(t, err)
		removed := strings.Contains(strings.Join(u.Calls()[before:], "\n"), "remove_guids")
		last := listQueue(t, q)
		_, err = q.Replay(t.Context(), c)
		require.NoError(t, err)
		require.Empty(t, listQueue(t, q))
		switch {
		case len(last) > 0 && strings.HasPrefix(last[0], "add"):
			require.False(t, removed)
			require.Equal(t, []string{"00000000000000fe"}, u.Members(0x11))
		case len(last) > 0 || removed:
			require.Empty(t, u.Members(0x11))
		}
		require.NoError(t, q.Do(t.Context(), c, Remove, 0x11, 0xfe))
		if call == "" {
			break
		}
		places++
	}
	t.Logf("killed at %d places", places)
	require.Greater(t, places, 8)
}

func FuzzEntry(f *testing.F) {
	f.Add(Entry{Add, 0x11, 0xfe, 7, time.Unix(1790000000, 0)}.marshal())
	f.Add([]byte(`{"op":"remove","pkey":"0x0011","guid":"","seq":1,"time":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if e, err := parseEntry(text); err == nil {
			require.Equal(t, string(text), string(e.marshal()))
			require.Less(t, len(text), entryMax)
			require.Equal(t, e.fileName(), filepath.Base(e.fileName()))
		}
	})
}
