// SPDX-License-Identifier: Apache-2.0

package nfs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mountstats = `device tmpfs mounted on /run with fstype tmpfs
device 198.18.0.1:/export/open mounted on /nfs/open with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2
	per-op statistics
	        NULL: 0 0 0 0 0 0 0 0 0
	      ACCESS: 9 9 0 1 1 1 1 1 0
device 198.18.0.1:/export/open mounted on /nfs/open with fstype nfs statvers=1.1
	per-op statistics
	     GETATTR: 5 5 0 1 1 1 1 1 0
	      ACCESS: 7 7 0 1 1 1 1 1 0
	    SEQUENCE: 3 3 0 1 1 1 1 1 0

device 198.18.0.1:/export/squash mounted on /nfs/squash with fstype nfs4 statvers=1.1
	per-op statistics
	      LOOKUP: 1 1 0 1 1 1 1 1 0
`

func TestCounts(t *testing.T) {
	counts, err := ParseCounts(mountstats, "/nfs/open")
	require.NoError(t, err)
	assert.Equal(t, Counts{"GETATTR": 5, "ACCESS": 7, "SEQUENCE": 3}, counts, "of the topmost mount")
	added := counts.Since(Counts{"ACCESS": 7, "GETATTR": 2, "SEQUENCE": 1})
	assert.Equal(t, Counts{"GETATTR": 3}, added)
	assert.Equal(t, 12, Counts{"GETATTR": 5, "ACCESS": 7}.Sum())
	assert.Equal(t, "ACCESS 7, GETATTR 5", Counts{"GETATTR": 5, "ACCESS": 7}.String())
	_, err = ParseCounts(mountstats, "/run")
	assert.ErrorContains(t, err, "no NFS on /run")
}

func TestParseTrace(t *testing.T) {
	by := parseTrace(`# tracer: nop
      slurmstepd-101     [000] .....    12.345678: rpc_request: task:00000002@00000005 nfsv4 ACCESS (sync)
      slurmstepd-102     [000] .....    12.345678: rpc_request: task:00000003@00000005 nfsv4 LOOKUP (sync)
            true-102     [001] .....    12.345678: rpc_request: task:00000004@00000005 nfsv4 ACCESS (sync)
    kworker/u8:0-12      [001] .....    12.345678: rpc_request: task:00000005@00000005 nfsv4 READ_PLUS (async)
 gojail-launcher-103     [001] .....    12.345678: rpc_request: task:00000006@00000005 nfsv3 GETATTR (sync)
    kworker/u8:0-12      [001] .....    12.345678: rpc_request: task:00000005@00000005 nfsv4 SEQUENCE (async)
`)
	assert.Equal(t, map[string]Counts{
		"slurmstepd": {"ACCESS": 1}, "true": {"LOOKUP": 1, "ACCESS": 1}, "kworker/u8:0": {"READ_PLUS": 1}, "gojail-launcher": {"GETATTR": 1},
	}, by)
}
