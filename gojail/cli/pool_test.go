// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/pool"
)

// newPoolSite returns a site with a pool in which n2 and n3 have an address each, and n2 of another cluster has one. Its
// scontrol runs a script.
func newPoolSite(t *testing.T, scontrol string) *netSite {
	t.Helper()
	s := newNetSite(t, networkText)
	s.configure(t, "", "\n[slurm]\nconf = \""+s.dir+"/conf\"\nhost = [\""+s.dir+"/slurm\"]\n")
	require.NoError(t, os.Mkdir(s.dir+"/leases", 0o700))
	for path, text := range map[string]string{"/conf/slurm.conf": "ClusterName=prod\n", "/slurm/bin/scontrol": "#!/bin/sh\n" + scontrol + "\n"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(s.dir+path), 0o755))
		require.NoError(t, os.WriteFile(s.dir+path, []byte(text), 0o755))
	}
	cfg, err := config.Load(s.dir+"/network.toml", "n2")
	require.NoError(t, err)
	for _, o := range []pool.Owner{{Cluster: "prod", Job: "7", Node: "n2", Rail: "rail0"}, {Cluster: "test", Job: "8", Node: "n2", Rail: "rail0"}, {Cluster: "prod", Job: "9", Node: "n3", Rail: "rail0"}} {
		p, err := pool.Open(t.Context(), cfg.Pools[0], o.Node, s.dir+"/pool-"+o.Node)
		require.NoError(t, err)
		_, err = p.Acquire(t.Context(), pool.Claim{Owner: o, VF: "0000:86:01.0"})
		require.NoError(t, err)
	}
	return s
}

// listOwners returns cluster, node and job of what gojail pool ls lists.
func (s *netSite) listOwners(t *testing.T) (owners []string) {
	t.Helper()
	out, problems, err := s.gojail("pool", "ls", "--json")
	require.NoError(t, err, problems)
	var list map[string][]struct{ Cluster, Node, Job string }
	require.NoError(t, json.Unmarshal([]byte(out), &list), out)
	for _, r := range list["addresses"] {
		owners = append(owners, r.Cluster+" "+r.Node+" "+r.Job)
	}
	return owners
}

func TestPoolRelease(t *testing.T) {
	s := newPoolSite(t, `[ "$SLURM_CONF" = "${0%/slurm/bin/scontrol}/conf/slurm.conf" ] || exit 9; echo Node n2 not found; exit 1`)
	t.Setenv("SLURM_CONF", "/of/another/cluster")
	out, _, err := s.gojail("pool", "ls")
	require.NoError(t, err)
	assert.Regexp(t, `^POOL +ADDRESS +CLUSTER +NODE +JOB +RAIL +VF +SINCE +STATE\n`, out)
	assert.Regexp(t, `\nleft +10\.1\.0\.[0-9]+ +prod +n2 +7 +rail0 +0000:86:01\.0 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +leased\n`, out)

	out, _, err = s.gojail("pool", "release", "n2")
	require.NoError(t, err)
	assert.Regexp(t, `^released the address 10\.1\.0\.[0-9]+ of job 7 \(rail rail0\)\n$`, out)
	assert.ElementsMatch(t, []string{"test n2 8", "prod n3 9"}, s.listOwners(t))
	out, _, err = s.gojail("pool", "release", "n2")
	require.NoError(t, err)
	assert.Equal(t, "the node n2 has no address\n", out)
}

// TestPoolReleaseIsRefused: whatever is not the answer that the node is gone leaves the leases alone.
func TestPoolReleaseIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ scontrol, node, want string }{
		"node there":          {"echo NodeName=n2 State=DOWN", "n2", "cannot release the addresses of n2: it is in Slurm, and its jobs may have them; remove it first (scontrol delete nodename=n2), or run on it: gojail sweep"},
		"nothing printed":     {"exit 0", "n2", "it is in Slurm"},
		"slurmctld away":      {"echo slurm_load_node error: Unable to contact slurm controller >&2; exit 1", "n2", "Unable to contact slurm controller"},
		"another node":        {"echo Node n3 not found; exit 1", "n2", "cannot ask slurmctld for the node n2"},
		"a list":              {"echo 'Node n[2-3] not found'; exit 1", "n[2-3]", `cannot release the addresses of "n[2-3]": write the name of one node; to list the names: gojail pool ls`},
		"no name":             {"echo 'Node  not found'; exit 1", "", "write the name of one node"},
		"not a word of names": {"echo Node ../n2 not found; exit 1", "../n2", "the names may hold letters, digits and ._+- only"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPoolSite(t, c.scontrol)
			out, _, err := s.gojail("pool", "release", c.node)
			assert.ErrorContains(t, err, c.want)
			assert.Empty(t, out)
			assert.Len(t, s.listOwners(t), 3)
		})
	}
	s := newPoolSite(t, "echo Node n2 not found; exit 1")
	require.NoError(t, os.WriteFile(s.dir+"/conf/slurm.conf", nil, 0o644))
	_, _, err := s.gojail("pool", "release", "n2")
	assert.ErrorContains(t, err, "has no ClusterName; name the directory of slurm.conf in gojail.toml (slurm.conf)")
	_, _, err = s.gojail("pool", "release")
	assert.ErrorContains(t, err, "gojail pool release needs one argument: the name of a node that is no longer in Slurm")
}

// TestPoolListTellsOfStrangeFiles in addition to the leases.
func TestPoolListTellsOfStrangeFiles(t *testing.T) {
	s := newPoolSite(t, "exit 1")
	require.NoError(t, os.WriteFile(s.dir+"/leases/left/addresses/README", nil, 0o600))
	out, _, err := s.gojail("pool", "ls")
	assert.ErrorContains(t, err, "inspect and remove it")
	assert.Contains(t, out, " n3 ")
	flags := s.flags
	s.flags = []string{"__complete"}
	out, _, err = s.gojail(append(flags, "pool", "release", "")...)
	require.NoError(t, err)
	assert.Equal(t, "n2\nn3\n:4\n", out)
}
