// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A slurm.conf of the node's own comes before the copy that slurmd fetched.
func TestWhereSlurmConfIs(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "spool/conf-cache")
	found := func() Slurm {
		s := Slurm{Conf: filepath.Join(dir, "etc"), Spool: filepath.Join(dir, "spool")}
		s.look()
		return Slurm{Conf: strings.TrimPrefix(s.Conf, dir), Cache: strings.TrimPrefix(s.Cache, dir)}
	}
	put := func(in string) {
		require.NoError(t, os.MkdirAll(in, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(in, "slurm.conf"), nil, 0o644))
	}
	require.NoError(t, os.MkdirAll(cache, 0o755))
	if exists(runConf + "/slurm.conf") {
		t.Skip("this machine's own Slurm is configless")
	}
	assert.Equal(t, Slurm{Conf: "/etc"}, found(), "nothing was fetched yet")
	put(cache)
	assert.Equal(t, Slurm{Conf: "/spool/conf-cache", Cache: "/spool/conf-cache"}, found())
	put(filepath.Join(dir, "etc"))
	assert.Equal(t, Slurm{Conf: "/etc", Cache: "/spool/conf-cache"}, found())
}

// The directory is shown where no spool directory covers it, under the names that it has on the node.
func TestPlanJailShowsTheFetchedConf(t *testing.T) {
	plan := func(change func(c *Config, j *Jail)) string {
		c, j := planned(t, planConfig)
		c.Slurm.Cache = c.Slurm.Spool + "/conf-cache"
		change(c, j)
		v, err := PlanJail(c, j, planFacts())
		require.NoError(t, err)
		return lines(v)
	}
	const shown = "/run/gojail/slurm bind /var/spool/slurmd/conf-cache rbind,ro,nosuid,nodev\n"
	const linked, known = "/var/spool/slurmd/conf-cache -> /run/gojail/slurm\n", "/run/slurm/conf -> /run/gojail/slurm\n"

	view := plan(func(c *Config, _ *Jail) { c.Slurm.Conf = c.Slurm.Cache })
	assert.Contains(t, view, shown)
	assert.Contains(t, view, linked+known)
	assert.NotContains(t, view, "/var/spool/slurmd/conf-cache bind")
	assert.NotContains(t, view, "/etc/slurm")

	view = plan(func(*Config, *Jail) {})
	assert.Contains(t, view, "/etc/slurm bind")
	assert.Contains(t, view, shown, "SLURM_CONF may lead there: slurmd --conf-server")

	view = plan(func(c *Config, _ *Jail) { c.Slurm.Host = []string{"/run/slurm"} })
	assert.Contains(t, view, shown)
	assert.Contains(t, view, linked)
	assert.NotContains(t, view, known, "the node's own symlink leads to the other")

	view = plan(func(_ *Config, j *Jail) { j.Slurm = false })
	assert.NotContains(t, view, "/run/gojail/slurm")
}
