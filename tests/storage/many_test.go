// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// mostNodes are the nodes of the bench that begin at once.
const mostNodes = 32

// manyConfig is that of the nodes that begin at once: their processors are emulated, and two for all of them.
var manyConfig = strings.Replace(formatBenchConfig(), deadline.String(), "10m", 1)

// rounds are what each number of nodes does at once, each of them with an empty cache.
var rounds = []struct {
	what, root string
	options    string // of the mount, nfs(5)
	run        func(h *host, ctx context.Context, kind string) harness.Result
}{
	{"gojail run, no template", "directory", "ro", (*host).startSandbox},
	{"gojail run, attributes kept 10 min", "directory", "ro,actimeo=600", (*host).startSandbox},
	{"gojail run, no template", "squashfs", "ro", (*host).startSandbox},
	{"chroot ROOT true", "directory", "ro", (*host).startProgram},
	{"chroot ROOT true", "squashfs", "ro", (*host).startProgram},
}

// BenchmarkStorageOfManyNodes measures how the first start of a program grows with the number of nodes that begin at once. A
// node is a client of the server's with a network, mounts, caches and a state directory of its own; slurmd would be too
// heavy for two emulated processors, and asks nothing for a first step that gojail run does not. It prints a line for each
// measurement: make bench-storage.
func BenchmarkStorageOfManyNodes(bench *testing.B) {
	if why := nfs.FindMissing(); why != "" {
		bench.Skip(why)
	}
	b, err := startBed()
	require.NoError(bench, err)
	defer func() { assert.NoError(bench, b.Stop()) }()
	for i := range mostNodes {
		spool := filepath.Join("/var/spool/slurmd", formatNodeName(i))
		require.NoError(bench, errors.Join(os.MkdirAll(b.cluster.Path(spool), 0o755), os.MkdirAll(b.serverPath("open/jail", spool), 0o755)))
	}
	require.NoError(bench, b.makeImages())
	require.NoError(bench, b.cluster.WriteConfig(manyConfig))
	fmt.Printf("%-10s %-36s %5s %9s %9s %9s\n", "root", "what", "nodes", "wall s", "requests", "a node")
	var hosts []*host
	for _, n := range []int{1, 8, mostNodes} {
		hosts = append(hosts, b.addNodes(bench, len(hosts), n)...)
		for _, round := range rounds {
			forEachAtOnce(bench, 2, hosts, (*host).forgetTemplates)
			b.measureAtOnce(bench, round.root, round.what, round.options, hosts, round.run)
		}
	}
}

// addNodes makes the nodes from first up to end, and lets each make what its launches need of gojail.toml, as nodes have it from the
// first launch after a change on. This has a deadline of its own (GOJAIL_DEFAULT_DEADLINE_MS), which a busy emulator may miss.
func (b *testBed) addNodes(t testing.TB, first, end int) (hosts []*host) {
	for i := first; i < end; i++ {
		h, err := b.newHost(formatNodeName(i))
		require.NoError(t, err)
		b.hosts[h.name] = h // for its end
		require.NoError(t, h.client.Delay(roundTrip))
		require.NoError(t, h.mountPath("4.2", "/export/open", "/nfs/open", "ro"))
		hosts = append(hosts, h)
	}
	forEachAtOnce(t, 2, hosts, func(h *host) error {
		var r harness.Result
		for range 5 {
			if r = h.startSandbox(context.Background(), "directory"); r.Code == 0 {
				return nil
			}
		}
		return fmt.Errorf("%s: %v", h.name, r)
	})
	return hosts
}

func formatNodeName(i int) string { return fmt.Sprintf("many%d", i) }

// forgetTemplates ends the node's templates, and leaves what it has made of gojail.toml.
func (h *host) forgetTemplates() error {
	r := h.runAsRoot("sh", "-euc", "cd /run/gojail/"+h.name+"; cp -p site site.kept; gojail --node="+h.name+" --state=/run/gojail/%n reload; mv site.kept site")
	if r.Code != 0 {
		return fmt.Errorf("%s: %v", h.name, r)
	}
	return nil
}

// forEachAtOnce does something on each host, and on at most that many at once.
func forEachAtOnce(t testing.TB, most int, hosts []*host, do func(h *host) error) {
	var all sync.WaitGroup
	free := make(chan struct{}, most)
	for _, h := range hosts {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if err := do(h); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// measureAtOnce lets nodes that have nothing of the storage in their caches do something at once. It prints the time until
// the last has done it, the requests of all, and whose they were.
func (b *testBed) measureAtOnce(t testing.TB, kind, what, options string, hosts []*host, run func(h *host, ctx context.Context, kind string) harness.Result) {
	forEachAtOnce(t, 2, hosts, func(h *host) error {
		h.runAsRoot("umount", "-l", "/nfs/open")
		return h.mountPath("4.2", "/export/open", "/nfs/open", strings.Split(options, ",")...)
	})
	asked := nfs.Counts{}
	for _, h := range hosts {
		addCounts(asked, h.readCounts(t, "/nfs/open").Since(nil), -1)
	}
	trace, err := nfs.StartTrace()
	require.NoError(t, err)
	start := time.Now()
	forEachAtOnce(t, len(hosts), hosts, func(h *host) error {
		if r := run(h, context.Background(), kind); r.Code != 0 {
			return fmt.Errorf("%s: %v", h.name, r)
		}
		return nil
	})
	took := time.Since(start)
	for _, h := range hosts {
		addCounts(asked, h.readCounts(t, "/nfs/open").Since(nil), 1)
	}
	by, err := trace.Stop()
	require.NoError(t, err)
	n := float64(len(hosts))
	fmt.Printf("%-10s %-36s %5d %9.1f %9d %9.1f\n", kind, what, len(hosts), took.Seconds(), asked.Sum(), float64(asked.Sum())/n)
	fmt.Printf("           a node: %s\n", formatMeans(asked, n))
	for _, program := range slices.Sorted(maps.Keys(by)) {
		fmt.Printf("           %s: %s\n", program, formatMeans(by[program], n))
	}
}

// addCounts adds counts, sign times.
func addCounts(sum, more nfs.Counts, sign int) {
	for name, n := range more {
		sum[name] += sign * n
	}
}

// formatMeans returns counts divided by n.
func formatMeans(counts nfs.Counts, n float64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] != 0 {
			words = append(words, fmt.Sprintf("%s %.1f", name, float64(counts[name])/n))
		}
	}
	return strings.Join(words, ", ")
}

// startProgram runs a program in a root by chroot(1): in the tree, or in an image that is mounted for it.
func (h *host) startProgram(ctx context.Context, kind string) harness.Result {
	for _, k := range kinds {
		if k.name == kind && filepath.Ext(k.root) == "" {
			return h.runToItsEnd(ctx, "chroot", k.root, "/usr/bin/true")
		}
		if k.name == kind {
			return h.runToItsEnd(ctx, "sh", "-c", "mount -o loop,ro "+k.root+" /mnt && chroot /mnt /usr/bin/true; code=$?; umount /mnt; exit $code")
		}
	}
	return harness.Result{Code: -1, Stderr: "no such root: " + kind}
}

// startSandbox runs a program in a jail.
func (h *host) startSandbox(ctx context.Context, jail string) harness.Result {
	return h.runGojailToItsEnd(ctx, "run", jail, "--", "true")
}
