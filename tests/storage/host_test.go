// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// host is a mount namespace of the cluster's machine and a client of the server's.
type host struct {
	name    string
	cluster *harness.Cluster
	client  *nfs.Client
	pid     int // of what holds the namespace, in the machine
}

// newHost makes a host with empty /nfs/open and /nfs/squash.
func (b *testBed) newHost(name string) (*host, error) {
	client, err := b.server.NewClient(name)
	if err != nil {
		return nil, err
	}
	h := &host{name: name, cluster: b.cluster, client: client}
	mark := "hold-" + name
	holder := b.cluster.Exec(context.Background(), harness.Command{Args: []string{"unshare", "--mount", "--propagation=private",
		"bash", "-c", "mkdir -p /nfs/open /nfs/squash /nfs/more && exec -a " + mark + " sleep infinity"}})
	if err := holder.Start(); err != nil {
		return nil, err
	}
	held := harness.Poll(harness.Timeout, func() bool {
		found := b.cluster.Find(mark + " infinity")
		if len(found) > 0 {
			h.pid = found[0].Pid
		}
		return len(found) > 0
	})
	if !held {
		return nil, fmt.Errorf("no mount namespace for %s", name)
	}
	return h, nil
}

// enterCommand is the command, for use in the machine, that runs another on the host.
func (h *host) enterCommand() []string {
	return []string{"/usr/bin/nsenter", "--mount=/proc/" + strconv.Itoa(h.pid) + "/ns/mnt", "--wd=/", "--"}
}

func (h *host) procPath(file string) string {
	return h.cluster.Path(fmt.Sprintf("/proc/%d/%s", h.pid, file))
}

// mountPath mounts a path of the server's.
func (h *host) mountPath(version, path, target string, options ...string) error {
	return h.client.Mount(h.procPath("ns/mnt"), version, path, target, options...)
}

// runAsRoot runs a command as root.
func (h *host) runAsRoot(args ...string) harness.Result {
	return h.cluster.Root(append(h.enterCommand(), args...)...)
}

// runGojail runs the gojail command of the host's own node.
func (h *host) runGojail(args ...string) harness.Result { return h.runGojailOf(h.name, args...) }

// runGojailOf runs the gojail command of a node on this host.
func (h *host) runGojailOf(node string, args ...string) harness.Result {
	return h.cluster.Root(h.gojailCommand(node, args...)...)
}

// runGojailToItsEnd is runGojail without the time limit of other commands.
func (h *host) runGojailToItsEnd(ctx context.Context, args ...string) harness.Result {
	return h.execToItsEnd(ctx, h.gojailCommand(h.name, args...))
}

// runToItsEnd is runAsRoot without that limit.
func (h *host) runToItsEnd(ctx context.Context, args ...string) harness.Result {
	return h.execToItsEnd(ctx, append(h.enterCommand(), args...))
}

func (h *host) execToItsEnd(ctx context.Context, args []string) harness.Result {
	cmd := h.cluster.Exec(ctx, harness.Command{Args: args})
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	r := harness.Result{}
	if err := cmd.Run(); err != nil {
		r.Code = max(cmd.ProcessState.ExitCode(), 1)
	}
	r.Stdout, r.Stderr = stdout.String(), stderr.String()
	return r
}

// gojailCommand is the command line, for use in the machine, of the gojail command of a node on this host.
func (h *host) gojailCommand(node string, args ...string) []string {
	return slices.Concat(h.enterCommand(), []string{"gojail", "--node=" + node, "--state=/run/gojail/%n"}, args)
}

// readCounts are the requests of the mount on a path so far.
func (h *host) readCounts(t testing.TB, path string) nfs.Counts {
	t.Helper()
	text, err := os.ReadFile(h.procPath("mountstats"))
	require.NoError(t, err)
	counts, err := nfs.ParseCounts(string(text), path)
	require.NoError(t, err)
	return counts
}
