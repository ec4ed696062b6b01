// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// A slurm.conf of the node's own comes before the copy that slurmd fetched, and that before the one that sackd did.
func TestWhereSlurmConfIs(t *testing.T) {
	var found []string
	require.NoError(t, nstest.Run(t, "slurmConf", t.TempDir(), &found))
	assert.Equal(t, []string{
		"/etc ", // nothing was fetched yet
		"/run/slurm/conf ",
		"/spool/conf-cache /spool/conf-cache",
		"/etc /spool/conf-cache",
	}, found)
}

func init() { nstest.Actions["slurmConf"] = slurmConfChild }

func slurmConfChild(input string) (any, error) {
	dir := strings.Trim(input, `"`)
	if err := nstest.MakePrivate(); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		return nil, err
	}
	var found []string
	for _, with := range []string{"", runConf, dir + "/spool/conf-cache", dir + "/etc"} {
		if with != "" {
			if err := both(os.MkdirAll(with, 0o755), os.WriteFile(with+"/slurm.conf", nil, 0o644)); err != nil {
				return nil, err
			}
		}
		s := Slurm{Conf: dir + "/etc", Spool: dir + "/spool"}
		s.look()
		found = append(found, strings.TrimPrefix(s.Conf, dir)+" "+strings.TrimPrefix(s.Cache, dir))
	}
	return found, nil
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
