// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fabric"
	"github.com/gojail/gojail/netsetup/fake/fakeufm"
	"github.com/gojail/gojail/netsetup/link"
)

// fakeRDMA gives each VF an RDMA device. A file holds the namespace that it is in.
type fakeRDMA struct {
	n        *node
	dir      string
	ib       bool
	moves    []string
	asked    atomic.Int32 // for GIDs
	refuses  error        // the error of a move back
	exchange bool         // a move creates the interface again, under another name
}

func (n *node) withRDMA(ib bool) *fakeRDMA {
	f := &fakeRDMA{n: n, dir: n.t.TempDir(), ib: ib, exchange: ib}
	h := &n.site.hardware
	h.findRDMA = func(ns *link.Namespace, pci string) ([]string, error) {
		where, err := os.ReadFile(f.path(pci))
		if here, _ := readInode(ns.FD()); err == nil && string(where) != fmt.Sprint(here) {
			err = fmt.Errorf("find the RDMA device of %s: %w", pci, link.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		return []string{"mlx5_" + pci}, nil
	}
	h.listRDMAFiles = func(ns *link.Namespace, name string) ([]link.CharDevice, error) {
		return []link.CharDevice{{Path: "infiniband/uverbs-" + name, Major: 231, Minor: 192}, {Path: "infiniband/rdma_cm", Major: 10, Minor: 58}}, nil
	}
	h.findGID = func(*link.Namespace, string, netip.Addr) (int, error) {
		if f.asked.Add(1) < 5 {
			return -1, nil
		}
		return 3, nil
	}
	h.moveRDMA = f.move
	here, err := readInode(n.host.FD())
	require.NoError(n.t, err)
	for i := range n.cards {
		for v := range n.vfs {
			pci := newCard(i).VFAddress(v)
			require.NoError(n.t, os.WriteFile(f.path(pci), []byte(fmt.Sprint(here)), 0o600))
			n.tree.WriteFile(n.tree.DevicePath(pci)+"/infiniband/mlx5_"+pci+"/node_guid", "0000:0000:0000:0001")
		}
	}
	return f
}

func (f *fakeRDMA) path(pci string) string { return filepath.Join(f.dir, pci) }

func (f *fakeRDMA) move(from *link.Namespace, name string, to *link.Namespace) error {
	pci := strings.TrimPrefix(name, "mlx5_")
	there, err := readInode(to.FD())
	if err != nil {
		return err
	}
	home, _ := readInode(f.n.host.FD())
	if there == home && f.refuses != nil {
		return f.refuses
	}
	l, err := f.n.site.hardware.find(f.n.host, pci)
	f.moves = append(f.moves, fmt.Sprintf("%s, interface at home: %t", pci, err == nil))
	if f.exchange && err == nil {
		if err := f.n.host.Rename(l.Index, "ib"+pci[len(pci)-4:len(pci)-2]+pci[len(pci)-1:]); err != nil {
			return err
		}
	}
	return os.WriteFile(f.path(pci), []byte(fmt.Sprint(there)), 0o600)
}

func TestRDMAOfEthernet(t *testing.T) {
	n := newNode(t, setup{cards: 2, policy: "rdma = \"exclusive\""})
	rdma := n.withRDMA(false)
	job := newJobSpace(t)
	before := n.takeSnapshot()
	got, err := n.attach(job)
	require.NoError(t, err)
	assert.Contains(t, got.Env, "NCCL_IB_HCA==mlx5_0000:80:01.0,mlx5_0000:81:01.0")
	assert.Contains(t, got.Env, "UCX_NET_DEVICES=mlx5_0000:80:01.0:1,mlx5_0000:81:01.0:1")
	assert.Contains(t, got.Env, "GOJAIL_NET_RAIL1_RDMA=mlx5_0000:81:01.0")
	assert.Contains(t, got.Env, "NCCL_SOCKET_IFNAME==net1,net2")
	assert.Len(t, got.Files, 3, "rdma_cm once")
	for _, r := range got.Rails {
		assert.Equal(t, 3, *r.GID)
		assert.Contains(t, got.Env, "GOJAIL_NET_"+strings.ToUpper(r.Rail)+"_GID_INDEX=3")
	}
	assert.Contains(t, got.Env, "NCCL_IB_GID_INDEX=3")
	n.release()
	assert.ElementsMatch(t, []string{
		"0000:80:01.0, interface at home: false", "0000:81:01.0, interface at home: false", // the interface first
		"0000:80:01.0, interface at home: false", "0000:81:01.0, interface at home: false",
	}, rdma.moves)
	requireSame(t, before, n.takeSnapshot())

	rdma.refuses = errors.New("no")
	_, err = n.attach(job)
	require.NoError(t, err)
	assert.ErrorContains(t, Release(t.Context(), n.site, "4711"), "is in quarantine: undo \"rdma, after\": no")
	rdma.refuses = nil
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

func TestFindGID(t *testing.T) {
	sys := t.TempDir()
	port := filepath.Join(sys, "class/infiniband/mlx5_3/ports/1")
	for _, dir := range []string{"gids", "gid_attrs/types"} {
		require.NoError(t, os.MkdirAll(filepath.Join(port, dir), 0o755))
	}
	for i, e := range []struct{ gid, kind string }{
		{"fe80:0000:0000:0000:b8ce:f6ff:fe00:0010", "IB/RoCE v1"}, {"fe80:0000:0000:0000:b8ce:f6ff:fe00:0010", "RoCE v2"},
		{"0000:0000:0000:0000:0000:ffff:0a01:0001", "IB/RoCE v1"}, {"0000:0000:0000:0000:0000:ffff:0a01:0001", "RoCE v2"},
		{"0000:0000:0000:0000:0000:0000:0000:0000", ""},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(port, "gids", fmt.Sprint(i)), []byte(e.gid+"\n"), 0o644))
		if e.kind != "" {
			require.NoError(t, os.WriteFile(filepath.Join(port, "gid_attrs/types", fmt.Sprint(i)), []byte(e.kind+"\n"), 0o644))
		}
	}
	for text, want := range map[string]int{"10.1.0.1": 3, "10.1.0.2": -1, "fe80::b8ce:f6ff:fe00:10": 1} {
		index, err := findGID(sys, "mlx5_3", netip.MustParseAddr(text))
		require.NoError(t, err)
		assert.Equal(t, want, index, text)
	}
	_, err := findGID(sys, "mlx5_4", netip.MustParseAddr("10.1.0.1"))
	assert.ErrorContains(t, err, "read the GIDs of RDMA device mlx5_4")
}

func TestSharedRDMAStays(t *testing.T) {
	n := newNode(t, setup{policy: "rdma = \"shared\""})
	rdma := n.withRDMA(false)
	got, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	assert.Equal(t, "mlx5_0000:80:01.0", got.Rails[0].RDMA)
	n.release()
	assert.Empty(t, rdma.moves)
}

// newInfiniBandNode returns a node on a fabric whose partitions UFM manages.
func newInfiniBandNode(t *testing.T, required bool) (*node, *fakeufm.UFM, *fakeRDMA) {
	n := newNode(t, setup{infiniband: true, policy: "link = \"ib\"\nrdma = \"exclusive\"", rail: "pkey = 0x12"})
	u := fakeufm.Start("admin", "secret")
	t.Cleanup(u.Close)
	credentials, ca, err := u.WriteFiles(makeMemoryDir(t))
	require.NoError(t, err)
	n.site.Config.UFM = &config.UFM{URL: u.URL, Credentials: credentials, CA: ca, Required: required}
	for v := range n.vfs {
		guid := uint64(0xb8cef60300000010) + uint64(v)
		require.NoError(t, n.site.hardware.setVF(n.host, pfIndex(t, n, 0), v, link.VFKnobs{PortGUID: &guid, NodeGUID: &guid}))
	}
	return n, u, n.withRDMA(true)
}

func TestInfiniBand(t *testing.T) {
	n, u, rdma := newInfiniBandNode(t, true)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	_, err := n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, []string{"b8cef60300000010"}, u.Members(0x12))
	assert.Equal(t, []string{"0000:80:01.0, interface at home: true"}, rdma.moves, "the device first")
	n.release()
	assert.Empty(t, u.Members(0x12))
	assert.Equal(t, "0000:80:01.0, interface at home: true", rdma.moves[1], "the device last")
	requireSame(t, before, n.takeSnapshot())
	requireSame(t, empty, readSpace(t, job))
}

// TestUFMIsAway checks that a job fails or continues as the site demands, and that Sweep
// sends the calls that UFM has missed.
func TestUFMIsAway(t *testing.T) {
	n, u, _ := newInfiniBandNode(t, true)
	n.site.limits.ufm = time.Second // no longer than the first pause: it is asked once
	job := newJobSpace(t)
	u.Answer(http.StatusServiceUnavailable, "")
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.ErrorIs(t, err, fabric.ErrUnreachable)
	assert.ErrorContains(t, err, "rail rail0 (VF 0 of pf0, 0000:80:01.0): step \"partition\"")
	requireSame(t, before, n.takeSnapshot())

	n.site.Config.UFM.Required = false
	_, err = n.attach(job)
	require.NoError(t, err)
	n.release()
	requireSame(t, before, n.takeSnapshot())
	n.site.Config.Rails[0].PKey = 0x13
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "it may still be in partition 0x0012 of another job")
	u.ClearFault()
	n.site.limits.ufm = time.Minute
	swept, err := Sweep(t.Context(), n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	_, err = n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, []string{"b8cef60300000010"}, u.Members(0x13))
	n.release()
}

// TestUFMRemembersAnotherPartition resets the node before it could call UFM.
func TestUFMRemembersAnotherPartition(t *testing.T) {
	n, u, _ := newInfiniBandNode(t, true)
	job := newJobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	entry, err := os.ReadFile(store(n.site.State).vfPath(newCard(0).VFAddress(0)))
	require.NoError(t, err)
	n.release()
	queue, client, err := n.site.openUFM()
	require.NoError(t, err)
	require.NoError(t, queue.Do(t.Context(), client, fabric.Add, 0x77, 0xb8cef60300000010))
	for _, pkey := range []uint16{0x12, 0} {
		n.site.Config.Rails[0].PKey = pkey
		_, err = n.attach(job)
		require.NoError(t, err)
		assert.Empty(t, u.Members(0x77))
		n.release()
		require.NoError(t, queue.Do(t.Context(), client, fabric.Add, 0x77, 0xb8cef60300000010))
	}
	var e map[string]any
	require.NoError(t, json.Unmarshal(entry, &e))
	assert.Equal(t, float64(0x12), e["pkey"])
}
