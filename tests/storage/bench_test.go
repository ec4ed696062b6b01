// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
	"github.com/gojail/gojail/tests/vm"
)

// roundTrip is what the network of the bench adds to each request.
const roundTrip = 500 * time.Microsecond

// kinds are the forms of the root that are compared, and the path of each.
var kinds = []struct{ name, root string }{
	{"directory", "/nfs/open/jail"}, {"squashfs", "/nfs/open/jail.squashfs"}, {"erofs", "/nfs/open/jail.erofs"},
}

// BenchmarkStorage compares a directory on NFS with image files there. It prints a
// line for each measurement: make bench-storage.
func BenchmarkStorage(bench *testing.B) {
	if why := nfs.FindMissing(); why != "" {
		bench.Skip(why)
	}
	b, err := startBed()
	require.NoError(bench, err)
	defer func() { assert.NoError(bench, b.Stop()) }()
	require.NoError(bench, makeModules(b.serverPath("open/jail")))
	require.NoError(bench, b.makeImages())
	require.NoError(bench, b.cluster.WriteConfig(formatBenchConfig()))
	for _, h := range b.hosts {
		require.NoError(bench, h.client.Delay(roundTrip))
	}
	fmt.Printf("%-10s %-34s %9s %9s\n", "root", "what", "wall s", "requests")
	for _, kind := range kinds {
		b.measureKind(bench, kind.name)
	}
	b.measureUnpacking(bench)
}

// formatBenchConfig has a jail of each kind.
func formatBenchConfig() string {
	text := config
	for _, kind := range kinds {
		text += fmt.Sprintf("\n[jail.%s]\nroot = %q\n", kind.name, kind.root)
	}
	return text
}

// makeModules makes a hundred modules for python3, and main.py that imports them all.
func makeModules(jail string) error {
	dir := filepath.Join(jail, "opt/modules")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var all strings.Builder
	for i := range 100 {
		name := fmt.Sprintf("module_%03d", i)
		fmt.Fprintf(&all, "import %s\n", name)
		text := strings.Repeat(fmt.Sprintf("def function_%d(x): return x + %d\n", i, i), 20)
		if err := os.WriteFile(filepath.Join(dir, name+".py"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "main.py"), []byte(all.String()), 0o644)
}

// makeImages makes an image file of the jail in each format, once its mount targets are there.
func (b *testBed) makeImages() error {
	_, first := b.server.Run("/usr/bin/mksquashfs", "/export/open/jail", "/export/open/jail.squashfs", "-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "1")
	_, second := b.server.Run("/usr/bin/mkfs.erofs", "--quiet", "/export/open/jail.erofs", "/export/open/jail")
	return errors.Join(first, second)
}

// measure prints the time of an action and what n1 asks the server for it.
func (b *testBed) measure(t testing.TB, kind, what string, action func() error) {
	n1 := b.hosts["n1"]
	before := n1.readCounts(t, "/nfs/open")
	start := time.Now()
	err := action()
	took := time.Since(start)
	require.NoError(t, err, "%s: %s", kind, what)
	fmt.Printf("%-10s %-34s %9.2f %9d\n", kind, what, took.Seconds(), n1.readCounts(t, "/nfs/open").Since(before).Sum())
}

// dropCaches forgets every file that nobody has open.
func dropCaches(t testing.TB) {
	require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
}

// measureKind measures what a job of each sort costs in a jail.
func (b *testBed) measureKind(t testing.TB, jail string) {
	srun := func(args ...string) func() error {
		return func() error {
			r := b.cluster.Run(harness.Alice, append([]string{"srun", "-wn1", "--jail=" + jail, "--chdir=/"}, args...)...)
			if r.Code != 0 {
				return fmt.Errorf("%v", r)
			}
			return nil
		}
	}
	require.Zero(t, b.hosts["n1"].runGojail("reload").Code)
	dropCaches(t)
	b.measure(t, jail, "first job, cold node", srun("true"))
	b.measure(t, jail, "second job", srun("true"))
	b.measure(t, jail, "third job", srun("true"))
	python := []string{"env", "PYTHONPATH=/opt/modules", "PYTHONDONTWRITEBYTECODE=1", "python3", "/opt/modules/main.py"}
	b.measure(t, jail, "python3, 100 modules, first", srun(python...))
	b.measure(t, jail, "python3, 100 modules, again", srun(python...))
	b.measure(t, jail, "find / -xdev, first", srun("sh", "-c", "find / -xdev 2>/dev/null | wc -l"))
	b.measure(t, jail, "find / -xdev, again", srun("sh", "-c", "find / -xdev 2>/dev/null | wc -l"))
}

// measureUnpacking measures what a job pays where each unpacks its image to the node's disk.
func (b *testBed) measureUnpacking(t testing.TB) {
	n1, to := b.hosts["n1"], b.hosts["n1"].procPath("root/var/tmp/unpacked")
	tool := func(name string) string { return filepath.Join(vm.Storage, "usr", name) }
	dropCaches(t)
	for _, what := range []string{"unsquashfs, first job", "unsquashfs, a later job"} {
		b.measure(t, "unpacked", what, func() error {
			out, err := exec.Command(tool("lib64/ld-linux-x86-64.so.2"), "--library-path", tool("lib/x86_64-linux-gnu"), tool("bin/unsquashfs"),
				"-quiet", "-no-progress", "-dest", to, n1.procPath("root/nfs/open/jail.squashfs")).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
		require.NoError(t, os.RemoveAll(to))
	}
}
