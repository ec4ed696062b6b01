// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const alice = "alice"

// runDir is where podman keeps its run-time state: in the host's own /run, since podman refuses a path of more than 50 characters
// (containers/storage, "runroot is longer"), which that of a clone may exceed.
const runDir = "/run/podman"

// podman runs podman on the host, with containers of its own.
func (c *cluster) podman(args ...string) harness.Result { return c.podmanWith("", args...) }

func (c *cluster) podmanWith(stdin string, args ...string) harness.Result {
	return c.run(stdin, append([]string{"podman", "--log-level=warn", "--root=" + c.dir + "/storage", "--runroot=" + runDir + "/run", "--tmpdir=" + runDir + "/tmp"}, args...)...)
}

// newRoot mounts a new root of a container, on the host.
func (c *cluster) newRoot() (string, error) {
	c.roots++
	dir := filepath.Join(c.dir, fmt.Sprintf("root-%d", c.roots))
	var err error
	for _, part := range []string{"files", "work", "root"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, part), 0o755))
	}
	root := dir + "/root"
	return root, errors.Join(err, c.must("mount", "-t", "overlay", "-o",
		fmt.Sprintf("lowerdir=%[1]s/image/files:%[2]s,upperdir=%[3]s/files,workdir=%[3]s/work", c.dir, c.base, dir), "overlay", root))
}

// startContainer starts a container of that name, in a pod's cgroup of the same name.
func (c *cluster) startContainer(name string, options, command []string) error {
	root, err := c.newRoot()
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"run", "--detach", "--name=" + name, "--hostname=" + name, "--add-host=ctl:192.0.2.1", "--add-host=n1:192.0.2.2",
		"--cgroup-parent=/kubepods/" + name, "--pids-limit=0"}, options, []string{"--rootfs", root}, command)
	if r := c.podman(args...); r.Code != 0 {
		return fmt.Errorf("podman %s: %s", strings.Join(args, " "), r)
	}
	return nil
}

// startController starts slurmctld's container, which has no privilege.
func (c *cluster) startController() error {
	// The key must be slurmctld's: Kubernetes has fsGroup for that.
	const start = "install -d /etc/slurm && cp -L /secret/* /etc/slurm/ && chown slurm /etc/slurm/slurm.key && chmod 600 /etc/slurm/slurm.key && exec slurmctld -D"
	return c.startContainer("ctl", []string{"--network=host", "--volume=" + c.dir + "/secret-ctl:/secret:ro"}, []string{"sh", "-c", start})
}

// node is how slurmd's container is started.
type node struct {
	security    []string // options of podman; default: privileged
	cgroupns    string   // default: private
	gojail      string   // what is mounted; default: the file with subPath
	propagation string   // of the volume; default: rslave
	bare        bool     // without gojail init
	down        bool     // slurmd does not come up
}

// startNode starts slurmd's container, waits until the node is idle, and initialises the jail debian. The container ends with
// the test.
func (c *cluster) startNode(t *testing.T, n node) {
	t.Helper()
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	options := []string{"--network=ns:/run/netns/n1", "--cgroupns=" + or(n.cgroupns, "private"),
		"--volume=" + c.dir + "/secret-n1:/etc/slurm:ro",
		"--volume=" + c.dir + "/volume:/srv/jails:" + or(n.propagation, "rslave"),
		"--volume=" + or(n.gojail, c.dir+"/gojail/gojail.toml:/etc/gojail/gojail.toml:ro")}
	if n.security == nil {
		n.security = []string{"--privileged"}
	}
	preload := ""
	if isHybrid() {
		options = append(options, "--volume="+c.dir+"/unified.so:/usr/lib/unified.so:ro")
		preload = "LD_PRELOAD=/usr/lib/unified.so "
	}
	// The shell adopts what slurmstepd leaves, and ends with slurmd, as supervisord of Slinky's image.
	start := "[ -e " + gpu + " ] || mknod -m 666 " + gpu + " c 1 7; trap 'kill $!' TERM; " + preload + "/usr/sbin/slurmd -D -Z --conf-server ctl:6817 --conf 'CPUs=4 RealMemory=500 Gres=gpu:1 Features=pods,gojail,jail-debian' & wait"
	if n.down {
		start += "; exec sleep infinity"
	}
	require.NoError(t, c.startContainer("n1", append(options, n.security...), []string{"bash", "-c", start}))
	t.Cleanup(func() { c.removeNode(t) })
	if n.down {
		return
	}
	require.True(t, harness.Poll(harness.Timeout*harness.Slow, c.isIdle), "%s", c.ctl("", "sh", "-c", "sinfo -N -o '%N %T %E'"))
	if !n.bare {
		r := c.onNode("gojail", "init", "debian")
		require.Zero(t, r.Code, r)
	}
}

// isIdle reports whether the node waits for jobs.
func (c *cluster) isIdle() bool {
	return strings.TrimSpace(c.ctl("", "sinfo", "-hNo", "%N %T").Stdout) == "n1 idle"
}

// removeNode ends slurmd's container at once, and lets slurmctld forget the node.
func (c *cluster) removeNode(t *testing.T) {
	if t.Failed() {
		c.showLogs(t)
	}
	r := c.podman("rm", "--force", "--time=0", "n1")
	require.Zero(t, r.Code, r)
	// As kubelet does at the end of a pod; of a cgroup that has a process it fails.
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return c.run("", "find", "/sys/fs/cgroup/kubepods/n1", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Code == 0
	}), c.run("", "find", "/sys/fs/cgroup/kubepods", "-name", "cgroup.procs", "-exec", "grep", ".", "{}", "+"))
	c.ctl("", "scancel", "--state=RUNNING,PENDING", "--me")
	c.ctl("", "scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=removed")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return c.ctl("", "scontrol", "delete", "NodeName=n1").Code == 0 || c.ctl("", "sinfo", "-hN").Stdout == ""
	}))
}

// ctl runs a command in slurmctld's container, as root where no user is given.
func (c *cluster) ctl(user string, args ...string) harness.Result {
	return c.ctlWith(user, "", args...)
}

func (c *cluster) ctlWith(user, stdin string, args ...string) harness.Result {
	exec := []string{"exec", "--interactive", "--workdir=/"}
	if user != "" {
		exec = append(exec, "--user="+user, "--workdir=/home/"+user, "--env=HOME=/home/"+user)
	}
	return c.podmanWith(stdin, slices.Concat(exec, []string{"ctl"}, args)...)
}

// onNode runs a command as root in slurmd's container.
func (c *cluster) onNode(args ...string) harness.Result {
	return c.podman(append([]string{"exec", "n1"}, args...)...)
}

// srun runs a step of alice's.
func (c *cluster) srun(args ...string) harness.Result {
	return c.ctl(alice, append([]string{"timeout", "45", "srun", "-Q"}, args...)...)
}
