// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// formats are those of image files, and how the server makes one of a tree.
var formats = map[string]func(b *testBed, tree, image string) error{
	"squashfs": func(b *testBed, tree, image string) error {
		_, err := b.server.Run("/usr/bin/mksquashfs", tree, image, "-quiet", "-no-progress", "-noappend")
		return err
	},
	"erofs": func(b *testBed, tree, image string) error {
		_, err := b.server.Run("/usr/bin/mkfs.erofs", "--quiet", image, tree)
		return err
	},
}

// newImageName returns a name in the tree open that no client remembers.
func newImageName(format string) string {
	return fmt.Sprintf("image-%d.%s", time.Now().UnixNano(), format)
}

// makeImage makes an image file of a small jail with a version, in one step as others see it, and configures it as jail small.
func (b *testBed) makeImage(t *testing.T, format, image, version string) {
	t.Helper()
	staging := b.makeStaging(t, version)
	b.addJail(t, "staging", "/nfs/open/"+staging, "")
	b.initializeJail(t, "staging")
	require.NoError(t, formats[format](b, "/export/open/"+staging, "/export/open/new.image"))
	require.NoError(t, os.Rename(b.serverPath("open/new.image"), b.serverPath("open", image)))
	t.Cleanup(func() { os.Remove(b.serverPath("open", image)) })
	b.addJail(t, "small", "/nfs/open/"+image, `jail_root = ["self", "range"]`)
}

// TestImageOnNFS: the root is an image file. It is replaced under a job that runs.
func TestImageOnNFS(t *testing.T) {
	for format := range formats {
		t.Run(format, func(t *testing.T) {
			b := sharedBed(t)
			image := newImageName(format)
			b.makeImage(t, format, image, "one")
			for _, node := range harness.Nodes {
				requireOutput(t, "one", b.catVersion("small", node)())
			}
			requireOutput(t, "0", b.cluster.Run(harness.Alice, "srun", "-wn1", "--jail=small", "--jail-root=range", "--chdir=/", "id", "-u"))
			before := b.hosts["n1"].readCounts(t, "/nfs/open")
			requireOutput(t, "one", b.catVersion("small", "n1")())
			assert.LessOrEqual(t, b.hosts["n1"].readCounts(t, "/nfs/open").Since(before).Sum(), 2*probeBound, "a later job asks the server nothing but whether it is there")
			old := b.startStep(t, "small")
			b.makeImage(t, format, image, "two")
			for _, node := range harness.Nodes {
				waitForOutput(t, "two", b.catVersion("small", node))
			}
			old.tell("cat /etc/gojail-jail")
			old.waitForLine(t, "one")
		})
	}
}

// TestImageThatIsNone: a file that ends too early, or is no image, is refused in one line.
func TestImageThatIsNone(t *testing.T) {
	b := sharedBed(t)
	image := newImageName("squashfs")
	b.makeImage(t, "squashfs", image, "one")
	info, err := os.Stat(b.serverPath("open", image))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(b.serverPath("open", image), info.Size()/2))
	requireRefused(t, image, b.catVersion("small", "n1")())
	require.NoError(t, os.WriteFile(b.serverPath("open", image), []byte(strings.Repeat("no image\n", 10000)), 0o644))
	requireRefused(t, image, b.catVersion("small", "n2")())
	requireUndisturbed(t, b)
}
