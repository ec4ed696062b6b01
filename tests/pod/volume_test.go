// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConfigMapAsDirectory: Kubernetes gives the directory the mode 0777, which gojail refuses in one line.
func TestConfigMapAsDirectory(t *testing.T) {
	c := sharedCluster(t)
	c.startNode(t, node{gojail: c.dir + "/gojail:/etc/gojail:ro", bare: true})
	r := c.srun("cat", marker)
	assert.NotZero(t, r.Code, r)
	assert.Empty(t, r.Stdout)
	assert.Contains(t, r.Stderr, "the directory /etc/gojail of the configuration can be changed by others than root")
	assert.Contains(t, c.onNode("gojail", "check").Stdout, "FAIL  configuration: /etc/gojail: is writable by others (mode 0777)")
}

// TestEmptyDirs: Kubernetes gives an emptyDir the mode 0777, which gojail refuses in one line until an initContainer has
// corrected it.
func TestEmptyDirs(t *testing.T) {
	c := sharedCluster(t)
	for dir, what := range map[string]string{"/run/gojail": "state", "/var/lib/gojail": "scratch"} {
		t.Run(what, func(t *testing.T) {
			c.startNode(t, node{security: []string{"--privileged", "--mount=type=tmpfs,tmpfs-mode=0777,destination=" + dir}})
			c.requireStep(t, "the "+what+" directory "+dir+" can be changed by others than root")
			check := c.onNode("gojail", "check")
			assert.Contains(t, check.Stdout, "FAIL  "+what+": "+dir+": is writable by others (mode 0777); run: chmod go-w "+dir, check)
			require.Zero(t, c.onNode("chmod", "go-w", dir).Code)
			c.requireStep(t, "")
		})
	}
}

// TestLateMounts: what the host mounts on the volume while the container runs is there for the next job, with HostToContainer
// (rslave), and else is not.
func TestLateMounts(t *testing.T) {
	c := sharedCluster(t)
	config := c.dir + "/gojail-late/gojail.toml:/etc/gojail/gojail.toml:ro"
	below := c.dir + "/volume/debian/mnt/data"
	for _, propagation := range []string{"rprivate", "rslave"} {
		t.Run(propagation, func(t *testing.T) {
			c.startNode(t, node{gojail: config, propagation: propagation})
			requireOutput(t, "debian", c.srun("cat", marker))
			r := c.srun("--jail=late", "cat", marker)
			assert.NotZero(t, r.Code, r)
			require.NoError(t, c.mountJail("late"))
			require.NoError(t, c.must("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", below))
			require.NoError(t, c.must("touch", below+"/mounted"))
			t.Cleanup(func() {
				assert.NoError(t, c.must("umount", below))
				assert.NoError(t, c.must("umount", c.dir+"/volume/late"))
			})
			initialised := c.onNode("gojail", "init", "late")
			seen := c.onNode("ls", "/srv/jails/debian/mnt/data")
			if propagation == "rprivate" {
				assert.NotZero(t, initialised.Code, initialised)
				assert.Empty(t, seen.Stdout, seen)
				return
			}
			require.Zero(t, initialised.Code, initialised)
			requireOutput(t, "late", c.srun("--jail=late", "cat", marker))
			requireOutput(t, "mounted", seen)
			requireOutput(t, "", c.srun("ls", "/mnt/data")) // docs/operations.md, Remount storage below a jail's root
			require.Zero(t, c.onNode("gojail", "reload", "debian").Code)
			requireOutput(t, "mounted", c.srun("ls", "/mnt/data"))
		})
	}
}
