// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/oneline"
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
	for _, with := range []string{"", RunConf, dir + "/spool/conf-cache", dir + "/etc"} {
		if with != "" {
			if err := oneline.Both(os.MkdirAll(with, 0o755), os.WriteFile(with+"/slurm.conf", nil, 0o644)); err != nil {
				return nil, err
			}
		}
		s := config.Slurm{Conf: dir + "/etc", Spool: dir + "/spool"}
		findSlurmConfCopy(&s)
		found = append(found, strings.TrimPrefix(s.Conf, dir)+" "+strings.TrimPrefix(s.Cache, dir))
	}
	return found, nil
}
