// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// cluster is slurmctld in one container and slurmd in another.
type cluster struct {
	*host
	base  string // the root of this release of Slurm
	jail  string // the tree of the jails
	roots int    // how many containers had a root so far
}

// common is the cluster that all tests share. Each starts the node that it wants.
var common harness.Shared[*cluster]

func TestMain(m *testing.M) { os.Exit(common.Main(m)) }

// release returns the release of Slurm that the tests run.
func release() string { return cmp.Or(harness.Release(), "24.11") }

// skipWithout skips a test where containers cannot run.
func skipWithout(t *testing.T) {
	t.Helper()
	if release() == "22.05" {
		t.Skip("needs Slurm 24.11 or later: auth/slurm and dynamic nodes of several types")
	}
	for _, program := range []string{"podman", "runc", "conmon", "ip", "nsenter", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: make pod installs it", program)
		}
	}
	if text, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(text), "\toverlay\n") {
		t.Skip("needs a kernel with overlayfs")
	}
	if _, err := findUnified(); err != nil {
		t.Skip(err)
	}
}

// sharedCluster returns the cluster, whose node has not been started.
func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	skipWithout(t)
	c := common.Get(t, newCluster)
	t.Cleanup(func() { c.showLogs(t) })
	return c
}

func newCluster() (*cluster, error) {
	repo, err := harness.Repository()
	if err != nil {
		return nil, err
	}
	base, err := filepath.EvalSymlinks(filepath.Join(repo, "build/cache/slurm-"+release()))
	if err != nil {
		return nil, fmt.Errorf("no root of Slurm %s: make pod", release())
	}
	jail, err := filepath.EvalSymlinks(filepath.Join(repo, "build/cache/jail-"+release()))
	if err != nil {
		return nil, err
	}
	packages := filepath.Join(repo, "build/pod/packages-"+release())
	if _, err := os.Stat(packages); err != nil {
		return nil, fmt.Errorf("no packages of gojail for Slurm %s: make pod", release())
	}
	h, err := startHost(repo)
	c := &cluster{host: h, base: base, jail: jail}
	if h == nil {
		return nil, err
	}
	if err == nil {
		err = c.prepare(repo, packages)
	}
	if err == nil {
		err = c.startController()
	}
	return c, err
}

// Stop ends all containers and the host.
func (c *cluster) Stop() error { return c.stop() }

// prepare makes the image, the configuration, and the volume with the jail debian.
func (c *cluster) prepare(repo, packages string) error {
	layer := filepath.Join(c.dir, "image")
	if err := errors.Join(os.Mkdir(layer, 0o755), c.must(repo+"/tests/pod/image", c.base, packages, layer)); err != nil {
		return err
	}
	if isHybrid() {
		build := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", filepath.Join(c.dir, "unified.so"), "unified/unified.c")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("gcc: %w: %s", err, out)
		}
	}
	if err := c.writeConfiguration(); err != nil {
		return err
	}
	return c.mountJail("debian")
}

// mountJail mounts a jail on the volume, on the host: a copy of the tests' jail whose marker is its name.
func (c *cluster) mountJail(name string) error {
	upper, work := filepath.Join(c.dir, "jail-"+name), filepath.Join(c.dir, "jail-"+name+".work")
	root := filepath.Join(c.dir, "volume", name)
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755), os.MkdirAll(root, 0o755)); err != nil {
		return err
	}
	return errors.Join(
		c.must("mount", "-t", "overlay", "-o", "lowerdir="+c.jail+",upperdir="+upper+",workdir="+work, "overlay", root),
		c.must("sh", "-c", `echo "$1" >"$2"`, "sh", name, root+marker))
}

// marker is the file that tells a jail's name, and is in no container.
const marker = "/etc/gojail-jail"

// showLogs prints what the daemons said last, where a test has failed.
func (c *cluster) showLogs(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, name := range []string{"ctl", "n1"} {
		r := c.podman("logs", "--tail=25", name)
		t.Logf("---- %s ----\n%s%s", name, r.Stdout, r.Stderr)
	}
}

// requireOutput requires that a command succeeds with exactly this output, but for white space around it.
func requireOutput(t *testing.T, want string, r harness.Result) {
	t.Helper()
	require.Zero(t, r.Code, r)
	require.Equal(t, want, strings.TrimSpace(r.Stdout), r)
}
