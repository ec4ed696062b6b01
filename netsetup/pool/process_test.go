// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/killtest"
)

// order is the task of a child process, which is this test binary.
type order struct {
	Pool        *config.Pool
	Node, State string
	Do          string // acquire, release, conflict, expire, gone
	Jobs        int
	MountSmall  bool // a file system with few inodes is mounted over the pool's directory
}

const orderVariable = "GOJAIL_TEST_ORDER"

func TestMain(m *testing.M) {
	if text := os.Getenv(orderVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func (o order) newCommand(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text), "GOMAXPROCS=1")
	return cmd
}

func runChild(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.MountSmall {
		if err := unix.Mount("tmpfs", o.Pool.Directory, "tmpfs", 0, "mode=700,nr_inodes=24"); err != nil {
			return err
		}
	}
	ctx := context.Background()
	p, err := Open(ctx, o.Pool, o.Node, o.State)
	if err != nil {
		return err
	}
	if o.MountSmall {
		return fillAndEmpty(ctx, p, o.Node)
	}
	for i := range o.Jobs {
		c := newClaim(fmt.Sprint(i), o.Node, "rail0")
		switch o.Do {
		case "acquire":
			a, err := p.Acquire(ctx, c)
			if err != nil {
				return err
			}
			fmt.Println(a)
		case "release":
			err = p.Release(ctx, c.Owner)
		case "conflict":
			var had []Lease
			if had, err = p.(*shared).readRecords(c.Owner); err == nil && len(had) == 1 {
				_, err = p.ReportConflict(ctx, c, had[0].Addr, net.HardwareAddr{2, 0, 0, 0, 0, 5})
			}
		case "expire":
			endQuarantines(p.(*shared))
			_, err = p.Sweep(ctx, func(Owner) bool { return true })
		case "gone":
			_, err = ReleaseNode(ctx, o.Pool, "prod", o.Node, "n2")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestManyProcessesAtOnce leases 300 addresses on each of 32 nodes, from a pool with exactly
// enough addresses.
func TestManyProcessesAtOnce(t *testing.T) {
	site := newSite(t, "10.1.0.0/16")
	site.pool.Ranges = []config.Range{newRange("10.1.0.1", "10.1.37.128")} // 9600
	require.Equal(t, uint64(9600), site.pool.CountAddresses())
	var outputs [32]bytes.Buffer
	var failed [32]error
	var group sync.WaitGroup
	for i := range outputs {
		node := fmt.Sprintf("n%d", i)
		cmd := order{Pool: site.pool, Node: node, State: filepath.Join(site.state, node), Do: "acquire", Jobs: 300}.newCommand(t)
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		group.Go(func() { failed[i] = cmd.Run() })
	}
	group.Wait()
	seen := map[string]int{}
	for i := range outputs {
		require.NoError(t, failed[i])
		for lines := bufio.NewScanner(&outputs[i]); lines.Scan(); {
			before, twice := seen[lines.Text()]
			require.False(t, twice, "n%d and n%d both have %s", i, before, lines.Text())
			seen[lines.Text()] = i
		}
	}
	require.Len(t, seen, 9600)
	s := site.open(t, "n0")
	require.Len(t, listAll(t, s).leases, 9600)
	_, err := s.Acquire(t.Context(), newClaim("late", "n0", "rail0"))
	require.ErrorIs(t, err, errFull)
	for i := range outputs {
		freed, err := ReleaseNode(t.Context(), site.pool, "prod", fmt.Sprintf("n%d", i), "head")
		require.NoError(t, err)
		require.Len(t, freed, 300)
	}
	requireClean(t, s)
}

// TestSameNodeManyProcesses leases with the same owners in several processes of one node.
func TestSameNodeManyProcesses(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	var outputs [8]bytes.Buffer
	var failed [8]error
	var group sync.WaitGroup
	for i := range outputs {
		cmd := order{Pool: site.pool, Node: "n1", State: filepath.Join(site.state, "n1"), Do: "acquire", Jobs: 20}.newCommand(t)
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		group.Go(func() { failed[i] = cmd.Run() })
	}
	group.Wait()
	for i := range outputs {
		require.NoError(t, failed[i])
		require.Equal(t, outputs[0].String(), outputs[i].String())
	}
	require.Len(t, strings.Fields(outputs[0].String()), 20)
}

// TestKilledAnywhere kills each operation before each of its changes. The sweep must restore
// a valid state, and so must a repeated operation.
func TestKilledAnywhere(t *testing.T) {
	for _, do := range []string{"acquire", "release", "conflict", "expire", "gone"} {
		t.Run(do, func(t *testing.T) {
			calls := 0
			for n := 0; ; n++ {
				site := newSite(t, "10.1.0.0/24")
				s := site.open(t, "n1")
				c, before := newClaim("0", "n1", "rail0"), netip.Addr{}
				if do != "acquire" {
					before = mustAcquire(t, s, c)
				}
				if do == "expire" {
					_, err := s.ReportConflict(t.Context(), c, before, net.HardwareAddr{2, 0, 0, 0, 0, 5})
					require.NoError(t, err)
				}
				cmd := order{Pool: site.pool, Node: "n1", State: filepath.Join(site.state, "state-n1"), Do: do, Jobs: 1}.newCommand(t)
				call, err := killtest.Run(cmd, n)
				require.NoError(t, err)
				atMostOneOwner(t, s)
				if do == "conflict" {
					names, err := listNames(s.addressPath(before))
					require.NoError(t, err)
					require.NotEmpty(t, names, "the address is free before %s", call)
				}
				other := mustAcquire(t, s, newClaim("other", "n1", "rail0")) // another job meanwhile
				require.Len(t, listOwners(t, s, other), 1)
				if n%2 == 0 { // once more, as the next try of the job does
					a := mustAcquire(t, s, c)
					require.Equal(t, a, mustAcquire(t, s, c))
				}
				_, err = s.Sweep(t.Context(), func(Owner) bool { return false })
				require.NoError(t, err)
				endQuarantines(s)
				_, err = s.Sweep(t.Context(), func(Owner) bool { return false })
				require.NoError(t, err)
				requireClean(t, s)
				if call == "" {
					break
				}
				calls++
			}
			t.Logf("killed at %d places", calls)
			require.Greater(t, calls, 2)
		})
	}
}

func listOwners(t *testing.T, s *shared, addr netip.Addr) []Lease {
	t.Helper()
	leases, err := s.readLeasesOf(addr)
	require.NoError(t, err)
	return leases
}

func atMostOneOwner(t *testing.T, s *shared) {
	t.Helper()
	seen := map[netip.Addr]bool{}
	for _, l := range listAll(t, s).leases {
		require.False(t, seen[l.Addr])
		seen[l.Addr] = true
	}
}

// TestFileSystemFull leases until no inode is left, in a mount namespace of the child.
func TestFileSystemFull(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	cmd := order{Pool: site.pool, Node: "n1", State: filepath.Join(site.state, "n1"), MountSmall: true}.newCommand(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func fillAndEmpty(ctx context.Context, p Pool, node string) error {
	got := map[netip.Addr]bool{}
	for i := 0; ; i++ {
		c := newClaim(fmt.Sprint(i), node, "rail0")
		a, err := p.Acquire(ctx, c)
		if err == nil {
			got[a] = true
			continue
		}
		if !strings.Contains(err.Error(), "no space left on device; free space in the file system") {
			return fmt.Errorf("not the right error: %w", err)
		}
		all, err := p.(*shared).readAll(ctx)
		if err != nil || len(all.leases) != len(got) || len(got) < 2 {
			return fmt.Errorf("%d leases, %d given: %w", len(all.leases), len(got), err)
		}
		break
	}
	if _, err := p.Sweep(ctx, func(Owner) bool { return false }); err != nil {
		return err
	}
	for i := range len(got) {
		if _, err := p.Acquire(ctx, newClaim(fmt.Sprint(i), node, "rail0")); err != nil {
			return fmt.Errorf("after the sweep: %w", err)
		}
	}
	return nil
}
