// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
)

// The directory is shown where no spool directory covers it, under the names that it has on the node.
func TestPlanJailShowsTheFetchedConf(t *testing.T) {
	plan := func(change func(c *config.Config, j *config.Jail)) string {
		c, j := planned(t, planConfig)
		c.Slurm.Cache = c.Slurm.Spool + "/conf-cache"
		change(c, j)
		v, err := Jail(c, j, planFacts())
		require.NoError(t, err)
		return lines(v)
	}
	const shown = "/run/gojail/slurm bind /var/spool/slurmd/conf-cache rbind,ro,nosuid,nodev\n"
	const linked, known = "/var/spool/slurmd/conf-cache -> /run/gojail/slurm\n", "/run/slurm/conf -> /run/gojail/slurm\n"

	view := plan(func(c *config.Config, _ *config.Jail) { c.Slurm.Conf = c.Slurm.Cache })
	assert.Contains(t, view, shown)
	assert.Contains(t, view, linked+known)
	assert.NotContains(t, view, "/var/spool/slurmd/conf-cache bind")
	assert.NotContains(t, view, "/etc/slurm")

	view = plan(func(*config.Config, *config.Jail) {})
	assert.Contains(t, view, "/etc/slurm bind")
	assert.Contains(t, view, shown, "SLURM_CONF may lead there: slurmd --conf-server")

	view = plan(func(c *config.Config, _ *config.Jail) { c.Slurm.Host = []string{"/run/slurm"} })
	assert.Contains(t, view, shown)
	assert.Contains(t, view, linked)
	assert.NotContains(t, view, known, "the node's own symlink leads to the other")

	view = plan(func(_ *config.Config, j *config.Jail) { j.Slurm = false })
	assert.NotContains(t, view, "/run/gojail/slurm")
}
