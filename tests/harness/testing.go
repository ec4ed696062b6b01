// SPDX-License-Identifier: Apache-2.0

// Package harness runs a private Slurm on this machine: munged, slurmctld and
// two slurmd (n1, n2), from the distribution's own packages.
//
// Each cluster is a machine of its own: one process, the keeper, is pid 1 of a
// new mount, PID, network, UTS and IPC namespace and pivots into a root that
// shares /usr and /dev with this machine and has everything else (/etc, /run,
// /var, /home, /tmp, /srv) to itself. So Slurm runs with the paths, the users
// and the ports of a real site, any number of clusters run side by side, no
// file of this machine is touched, and the end is certain: with the keeper the
// kernel ends every process of the cluster and drops every mount. What the
// cluster keeps on disk is one directory, build/cluster/NAME.
//
// slurm.conf and plugstack.conf are the repository's slurm.conf.example and
// plugstack.conf.example with the lines of their site section replaced.
//
// Needs root, Linux 5.12 and the packages that tests/deps.sh installs.
package harness

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Missing returns the reason why no cluster can run here, or "".
func Missing() string {
	if os.Geteuid() != 0 || testing.Testing() && testing.Short() {
		return "needs root: a private cluster makes namespaces and mounts"
	}
	for _, program := range []string{"slurmctld", "slurmd", "srun", "munged", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			return "needs " + program + ": make deps installs it"
		}
	}
	return ""
}

// Start starts a cluster for one test and ends it with the test.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	if why := Missing(); why != "" {
		t.Skip(why)
	}
	for _, value := range options.SlurmConf {
		if len(Nodes) == 1 && secondNode.MatchString(value) {
			t.Skip(oneNode)
		}
	}
	c, err := Up(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	c.ShowLogs(t)
	return c
}

// ShowLogs prints what the daemons logged during the test if it fails.
func (c *Cluster) ShowLogs(t testing.TB) {
	c.test = t
	begin := map[string]int{}
	for _, of := range append([]string{"slurmctld"}, Nodes...) {
		begin[of] = len(c.Log(of))
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for of, offset := range begin {
			log := c.Log(of)
			t.Logf("---- log of %s ----\n%s", of, log[max(min(offset, len(log)), len(log)-8000):])
		}
	})
}

// RequireOutput requires that a command succeeds and prints exactly want, but for white space around it.
func RequireOutput(t testing.TB, want string, r Result) {
	t.Helper()
	require.Zero(t, r.Code, r)
	assert.Equal(t, want, strings.TrimSpace(r.Stdout), r)
}

// RequireRefused requires that a command fails and says why in the only line that is gojail's.
func RequireRefused(t testing.TB, why string, r Result) {
	t.Helper()
	assert.NotZero(t, r.Code, r)
	if lines := FindGojailLines(r.Stderr); assert.Len(t, lines, 1, r) {
		assert.Contains(t, lines[0], why, r)
	}
}

// FindGojailLines returns the lines of gojail among those of Slurm.
func FindGojailLines(stderr string) (found []string) {
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "gojail: ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// ReadNumber returns the number in a variable of the environment, or another one.
func ReadNumber(t testing.TB, name string, other uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return other
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// UpHead starts a cluster without nodes: munged and slurmctld. The caller names
// the nodes in options.SlurmConf and starts each slurmd itself.
func UpHead(options Options) (*Cluster, error) {
	c, err := newCluster(options)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{c.makeRoot, c.startKeeper, c.initJails, c.startHead} {
		if err := step(); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}
