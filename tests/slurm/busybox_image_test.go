// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/netsetup/netns"
	"github.com/gojail/gojail/tests/harness"
)

// busyboxConfig has a jail whose root is the current version of busybox in the store.
var busyboxConfig = "store = \"/srv/store\"\n" + harness.DefaultConfig + "\n[jail.stored]\nroot = \"store:busybox\"\nslurm = false\n" + taskPrograms

// busyboxImage returns an image with busybox in one layer, and in another a file and a whiteout.
func busyboxImage(t *testing.T, text string) v1.Image {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("needs busybox-static: make deps")
	}
	program, err := os.ReadFile(path)
	require.NoError(t, err)
	lower := []string{"bin/", "etc/", "etc/removed=by the upper layer", "bin/busybox=" + string(program)}
	for _, applet := range []string{"sh", "id", "cat", "ls", "sleep"} {
		lower = append(lower, "bin/"+applet+">busybox")
	}
	return sourcetest.Image(t, lower, []string{"etc/.wh.removed=", "etc/text=" + text})
}

// useBusybox configures jail stored, and begins the store.
func useBusybox(t *testing.T) *harness.Cluster {
	t.Helper()
	c := rootsCluster(t)
	configure(t, c, busyboxConfig)
	newStore(t, c)
	return c
}

// requireBusybox runs a step in the jail on a node, which must have the version with that text.
func requireBusybox(t *testing.T, c *harness.Cluster, node, text string) {
	t.Helper()
	var r harness.Result
	require.True(t, harness.Poll(harness.Timeout, func() bool { // a node sees a switch within a second
		r = c.Run(harness.Alice, "srun", "-Q", "-w"+node, "-n1", "--chdir=/tmp", "--jail=stored", "sh", "-c", "cat /etc/text; ls /etc/removed; id -u")
		return strings.HasPrefix(r.Stdout, text+"5001\n")
	}), r)
	assert.Contains(t, r.Stderr, "/etc/removed: No such file or directory")
}

// TestBusyboxImage: an OCI layout with busybox becomes a jail, and a job runs in it.
func TestBusyboxImage(t *testing.T) {
	c := useBusybox(t)
	layout := sourcetest.Layout(t, map[string]v1.Image{"1": busyboxImage(t, "from a layout\n")})
	require.NoError(t, os.CopyFS(c.Path("/srv/busybox-layout"), os.DirFS(layout)))
	t.Cleanup(func() { os.RemoveAll(c.Path("/srv/busybox-layout")) })
	jailCommand(t, c, "build", "busybox", "--from", "oci:/srv/busybox-layout:1")
	jailCommand(t, c, "switch", "busybox")
	requireBusybox(t, c, "n1", "from a layout\n")
	job := c.Batch(harness.Alice, "#!/bin/sh\ncat /etc/text >/tmp/out && cat /tmp/out\n", "-wn2", "--jail=stored", "--chdir=/tmp", "--output=/tmp/out.txt")
	assert.Equal(t, "COMPLETED", job.State, job)
}

// listenIn listens on loopback of the cluster, which has a network of its own.
func listenIn(t *testing.T, c *harness.Cluster) (l net.Listener) {
	t.Helper()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Pid))
	require.NoError(t, err)
	defer ns.Close()
	require.NoError(t, netns.RunInside(int(ns.Fd()), func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}))
	return l
}

// TestBusyboxFromARegistryWithTLSAndPassword builds a jail with the command, as root with the credentials of docker login.
func TestBusyboxFromARegistryWithTLSAndPassword(t *testing.T) {
	c := useBusybox(t)
	image := busyboxImage(t, "from a registry\n")
	address, authority := sourcetest.Registry{TLS: true, Password: "secret", Listener: listenIn(t, c)}.Start(t, image)
	dir := c.Path("/srv/registry")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Dir(authority))))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "auth.json"), []byte(sourcetest.Credentials(address, "hpc", "secret")), 0o600))
	build := func(file string, args ...string) harness.Result {
		words := append([]string{"env", "REGISTRY_AUTH_FILE=/srv/registry/" + file, "DOCKER_CONFIG=/nowhere", "gojail", "--node=n1", "--state=/run/gojail/%n", "jail", "build", "busybox", "--from", "docker://" + address + "/hpc/debian:13"}, args...)
		return c.Root(words...)
	}
	r := build("auth.json")
	assert.NotZero(t, r.Code)
	assert.Contains(t, r.Stderr, "certificate")
	r = build("none.json", "--ca", "/srv/registry/ca.pem")
	assert.NotZero(t, r.Code)
	assert.Contains(t, r.Stderr, "UNAUTHORIZED")
	assert.NotContains(t, r.Stderr, "secret")
	r = build("auth.json", "--ca", "/srv/registry/ca.pem", "--json")
	require.Zero(t, r.Code, r)
	var record struct{ Digest string }
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &record), r)
	digest, err := image.Digest()
	require.NoError(t, err)
	assert.Equal(t, digest.String(), record.Digest)
	jailCommand(t, c, "switch", "busybox")
	requireBusybox(t, c, "n1", "from a registry\n")
}

// TestNodesWithDifferentVersions: n2 gets no job after a switch. Its health check has a metric at once, and a warning
// after an hour; n1 has the new version.
func TestNodesWithDifferentVersions(t *testing.T) {
	c := useBusybox(t)
	build := func(text string) string {
		layout := sourcetest.Layout(t, map[string]v1.Image{"": busyboxImage(t, text)})
		at := "/srv/busybox-" + strings.TrimSpace(text)
		require.NoError(t, os.CopyFS(c.Path(at), os.DirFS(layout)))
		t.Cleanup(func() { os.RemoveAll(c.Path(at)) })
		var record struct{ Version string }
		require.NoError(t, json.Unmarshal([]byte(jailCommand(t, c, "build", "busybox", "--json", "--from", "oci:"+at)), &record))
		return record.Version
	}
	first := build("first\n")
	jailCommand(t, c, "switch", "busybox")
	for _, node := range harness.Nodes {
		requireBusybox(t, c, node, "first\n")
	}
	second := build("second\n")
	jailCommand(t, c, "switch", "busybox", second)
	requireBusybox(t, c, "n1", "second\n")

	config := "run = \"/run/health-%n\"\nstate = \"/var/lib/health-%n\"\nmetrics = \"/run/health-%n.prom\"\nsyslog = false\n"
	replaceFile(t, c.Path("/etc/gojail/health.toml"), config+turnOffChecksBut(c, "jail"))
	look := func(node string) (said, metrics string) {
		r := c.Root("gojail-healthcheck", "--node="+node)
		return r.Stdout + r.Stderr, readFile(c, "/run/health-"+node+".prom")
	}
	_, metrics := look("n1")
	assert.Contains(t, metrics, `gojail_health_jail_template_current{jail="stored",node="n1",version="`+second+`"} 1`)
	behind := "jail stored: its template has version " + first + ", and version " + second + " is current"
	said, metrics := look("n2")
	assert.Contains(t, metrics, `gojail_health_jail_template_current{jail="stored",node="n2",version="`+first+`"} 0`)
	assert.NotContains(t, said, behind, "the next job gets the new version")

	long := unix.NsecToTimeval(time.Now().Add(-2 * time.Hour).UnixNano())
	require.NoError(t, unix.Lutimes(c.Path("/srv/store/busybox/current"), []unix.Timeval{long, long}))
	said, metrics = look("n2")
	assert.Contains(t, said, behind)
	assert.Contains(t, metrics, `gojail_health_jail_template_current{jail="stored",node="n2",version="`+first+`"} 0`)
	assert.Contains(t, c.Gojail("n2", "check").Stdout, "WARN  "+behind)
	assert.NotContains(t, c.Gojail("n1", "check").Stdout, "WARN  jail stored: its template")
	requireBusybox(t, c, "n2", "second\n")
	said, metrics = look("n2")
	assert.NotContains(t, said, behind)
	assert.Contains(t, metrics, `gojail_health_jail_template_current{jail="stored",node="n2",version="`+second+`"} 1`)
}
