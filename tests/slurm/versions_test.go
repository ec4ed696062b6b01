// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/imagefile/imagefiletest"
	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/tests/harness"
)

// versionedConfig has a jail whose root is the current version of debian in the store.
var versionedConfig = "store = \"/srv/store\"\n" + harness.DefaultConfig + "\n[jail.stored]\nroot = \"store:debian\"\n"

// jailCommand runs gojail jail on a node, which must succeed.
func jailCommand(t *testing.T, c *harness.Cluster, args ...string) string {
	t.Helper()
	r := c.Gojail("n1", append([]string{"jail"}, args...)...)
	require.Zero(t, r.Code, r)
	return r.Stdout
}

// buildVersion builds a version of debian and returns its name.
func buildVersion(t *testing.T, c *harness.Cluster, source string, args ...string) string {
	t.Helper()
	var record struct{ Version string }
	out := jailCommand(t, c, append([]string{"build", "debian", "--json", "--from", source}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &record), out)
	return record.Version
}

// debianImage writes an OCI layout into the cluster, with the tree of jail debian and a layer that changes its marker.
func debianImage(t *testing.T, c *harness.Cluster, text string) string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "base.tar")
	// It fails where another cluster makes links to the files meanwhile, and has read them all the same.
	exec.Command("tar", "--numeric-owner", "-cf", base, "-C", c.Path("/srv/jails/debian"), ".").Run()
	change := filepath.Join(t.TempDir(), "change.tar")
	require.NoError(t, os.WriteFile(change, sourcetest.Tar(t, strings.TrimPrefix(marker, "/")+"="+text), 0o644))
	image := v1.Image(empty.Image)
	for _, path := range []string{base, change} {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return os.Open(path) }, tarball.WithCompressionLevel(gzip.BestSpeed))
		require.NoError(t, err)
		image, err = mutate.AppendLayers(image, layer)
		require.NoError(t, err)
	}
	layout := sourcetest.Layout(t, map[string]v1.Image{"new": sourcetest.For(t, image, runtime.GOARCH)})
	at := "/srv/layout-" + strings.TrimSpace(text)
	require.NoError(t, os.CopyFS(c.Path(at), os.DirFS(layout)))
	t.Cleanup(func() { os.RemoveAll(c.Path(at)) })
	return "oci:" + at + ":new"
}

// newStore makes the store for the rest of the test.
func newStore(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.NoError(t, os.Mkdir(c.Path("/srv/store"), 0o755))
	t.Cleanup(func() {
		c.Gojail("n1", "reload", "stored")
		require.NoError(t, os.RemoveAll(c.Path("/srv/store")))
	})
}

// sees waits until a new job has the version with that marker: a node notices a switch within a second.
func sees(t *testing.T, c *harness.Cluster, want string) {
	t.Helper()
	var r harness.Result
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		r = c.Run(harness.Alice, "srun", "-wn1", "--jail=stored", "cat", marker)
		return r.Stdout == want
	}), "%q: %s", want, r)
}

// TestVersionsOfAJail: build, switch while a job runs, both see their own, roll back, remove.
func TestVersionsOfAJail(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, versionedConfig)
	newStore(t, c)
	first := buildVersion(t, c, debianImage(t, c, "first\n"))
	assert.Equal(t, "jail debian: version "+first+" is current\n", jailCommand(t, c, "switch", "debian"))
	sees(t, c, "first\n") // the build made the mount targets

	job := submitScript(t, c, "echo begun; until [ -e switched ]; do sleep 0.1; done; cat "+marker+"; srun cat "+marker+"; echo done\n", "--jail=stored", "-wn1")
	output := filepath.Join("/srv/store/debian/versions", first, "home/alice/slurm-"+job+".out")
	wrote := func(want string) {
		t.Helper()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return readFile(c, output) == want }), "%q: %q", want, readFile(c, output))
	}
	wrote("begun\n")
	second := buildVersion(t, c, debianImage(t, c, "second\n"))
	sees(t, c, "first\n") // a version that was built is not in use
	assert.Regexp(t, "^jail debian: version "+second+" is current, it was "+first+"\nstill has "+first+`: n1 \(job `+job+`, (job \d+, )*template of jail stored\), as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n$`,
		jailCommand(t, c, "switch", "debian", second), "the running job, and what the next one would get")
	sees(t, c, "second\n")
	assert.Contains(t, writeMetrics(t, c, "n1"), `gojail_job_info{jail="stored",job_id="`+job+`",node="n1",user="alice",version="`+first+`"} 1`)
	assert.Contains(t, writeMetrics(t, c, "n1"), `version="`+second+`"} 1`, "of the template")
	require.NoError(t, os.WriteFile(c.Path(filepath.Join(filepath.Dir(output), "switched")), nil, 0o644))
	wrote("begun\nfirst\nfirst\ndone\n")

	assert.Equal(t, "version "+second+" of jail debian is as it was built\n", jailCommand(t, c, "verify", "debian"))
	jailCommand(t, c, "rollback", "debian")
	sees(t, c, "first\n")
	assert.Equal(t, "removed version "+second+" of jail debian\n", jailCommand(t, c, "rm", "debian", second, "--force"))
	sees(t, c, "first\n")
}

// TestVersionAsAnImageFile: the next versions of a directory are image files, which new jobs get while a job goes on in the
// directory.
func TestVersionAsAnImageFile(t *testing.T) {
	c := sharedCluster(t)
	imagefiletest.Need(t)
	configure(t, c, versionedConfig)
	newStore(t, c)
	buildVersion(t, c, debianImage(t, c, "dir\n"))
	jailCommand(t, c, "switch", "debian")
	sees(t, c, "dir\n")
	_, job := allocate(t, c)
	step := func() harness.Result {
		return c.Run(harness.Alice, "srun", "--jobid="+job, "--jail=stored", "cat", marker, "/.gojail.version")
	}
	before := step()
	require.Zero(t, before.Code, before)
	versions := map[string]string{}
	for _, format := range []string{"squashfs", "erofs"} {
		id := buildVersion(t, c, debianImage(t, c, format+"\n"), "--as", format)
		versions[format] = id
		jailCommand(t, c, "switch", "debian", id)
		sees(t, c, format+"\n")
		requireOutput(t, id+"\n"+format, c.Run(harness.Alice, "srun", "-wn1", "--jail=stored", "sh", "-c",
			`cat /.gojail.version; awk '$2 == "/" {print $3}' /proc/self/mounts`))
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=stored", "touch", "/new")
		assert.Contains(t, r.Stderr, "Read-only file system", r)
		assert.Equal(t, "version "+id+" of jail debian is as it was built\n", jailCommand(t, c, "verify", "debian"))
		assert.Contains(t, jailCommand(t, c, "ls"), "*"+id)
		assert.Contains(t, c.Gojail("n1", "check").Stdout, "its template has version "+id+", the current one")
		assert.Equal(t, before.Stdout, step().Stdout, "the job that runs")
	}
	jailCommand(t, c, "rollback", "debian")
	sees(t, c, "squashfs\n")
	jailCommand(t, c, "rm", "debian", versions["erofs"], "--force")
	jailCommand(t, c, "rollback", "debian")
	sees(t, c, "dir\n")
}
