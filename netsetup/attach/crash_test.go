// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

func TestMain(m *testing.M) {
	if text := os.Getenv("ATTACH_CHILD"); text != "" {
		os.Exit(runChild(text))
	}
	os.Exit(m.Run())
}

// order is the task of a child process, with the point at which it kills itself: "" for
// none.
type order struct {
	State, Queue string
	Roots        inventory.Roots
	Network      string // network.toml
	Knobs        string
	Job          string
	Release      bool
	PCI          string
	Step         string
	Done         bool
}

// runChild executes an order; descriptors 3 and 4 are the node's namespace and the job's.
func runChild(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	cfg, err := config.Parse(o.Network, "node1")
	if err != nil {
		panic(err)
	}
	site := Site{Config: cfg, Cluster: "prod", State: o.State, Queue: o.Queue, Roots: o.Roots, Host: 3, hardware: newStandIns(o.Knobs)}
	site.stepHook = func(pci, step string, done bool) error {
		if step == o.Step && done == o.Done && (pci == o.PCI || pci == "") {
			unix.Kill(unix.Getpid(), unix.SIGKILL)
			select {}
		}
		return nil
	}
	if o.Release {
		err = Release(context.Background(), site, o.Job)
	} else {
		_, err = Attach(context.Background(), site, Job{ID: o.Job, Netns: 4})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newCommand returns a child process that executes an order.
func (n *node) newCommand(job *link.Namespace, o order) *exec.Cmd {
	o.Network, o.Knobs, o.Job = n.text, n.knobs, "4711"
	o.State, o.Queue, o.Roots = n.site.State, n.site.Queue, n.site.Roots
	text, err := json.Marshal(o)
	require.NoError(n.t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "ATTACH_CHILD="+string(text))
	cmd.Stderr = os.Stderr
	for _, ns := range []*link.Namespace{n.host, job} {
		fd, err := unix.FcntlInt(uintptr(ns.FD()), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(n.t, err)
		file := os.NewFile(uintptr(fd), "netns")
		n.t.Cleanup(func() { file.Close() })
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
	}
	return cmd
}

func closeFiles(cmd *exec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
}

// runUntilKilled runs a child process that kills itself.
func (n *node) runUntilKilled(job *link.Namespace, o order) {
	n.t.Helper()
	cmd := n.newCommand(job, o)
	defer closeFiles(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(n.t, err, &exit)
	require.Equal(n.t, unix.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "%+v: %v", o, err)
}

func isNeverAlive(string) bool { return false }

type point struct {
	step string
	done bool
}

// listPoints returns the points before and after each step that a stand-in goes through.
func listPoints() (all []point) {
	for _, s := range steps {
		if s.do != nil && s.applies(new(entry)) {
			all = append(all, point{s.name, false}, point{s.name, true})
		}
	}
	return append(all, point{"reserve", true})
}

func listUndoPoints() (all []point) {
	for _, s := range steps {
		if s.undo != nil && s.applies(new(entry)) {
			all = append(all, point{"undo " + s.name, true})
		}
	}
	return all
}

var errTest = errors.New("a test")

func newDefaultNode(t testing.TB) *node {
	return newNode(t, setup{cards: 2, control: true, directory: true, policy: "trust = true\nmtu = 1400\nvlan = 7", probe: "conflict = false\ngateway = false"})
}

func TestFailureAtEachStep(t *testing.T) {
	n := newDefaultNode(t)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	for _, p := range listPoints() {
		n.site.stepHook = func(pci, step string, done bool) error {
			if (pci == newCard(1).VFAddress(0) || pci == "") && step == p.step && done == p.done {
				return errTest
			}
			return nil
		}
		_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
		require.ErrorIs(t, err, errTest, "%+v", p)
		if p.step != "reserve" {
			assert.ErrorContains(t, err, "job 4711: rail rail1 (VF 0 of pf1, 0000:81:01.0): step \""+p.step)
		}
		requireSame(t, before, n.takeSnapshot(), "%+v", p)
		requireSame(t, empty, readSpace(t, job), "%+v", p)
	}
}

func TestKilledAtEachStepAndSwept(t *testing.T) {
	n := newDefaultNode(t)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	for _, p := range listPoints() {
		n.runUntilKilled(job, order{PCI: newCard(1).VFAddress(0), Step: p.step, Done: p.done})
		swept, err := Sweep(t.Context(), n.site, isNeverAlive)
		require.NoError(t, err)
		assert.Equal(t, []string{"4711"}, swept.Released, "%+v", p)
		assert.Empty(t, swept.Problems)
		assert.Empty(t, swept.Leftovers)
		requireSame(t, before, n.takeSnapshot(), "%+v", p)
		requireSame(t, empty, readSpace(t, job), "%+v", p)
	}
}

// TestKilledAndAttachedAgain checks that the job's next step finds what the killed one left.
func TestKilledAndAttachedAgain(t *testing.T) {
	n := newDefaultNode(t)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	for _, p := range listPoints() {
		n.runUntilKilled(job, order{PCI: newCard(0).VFAddress(0), Step: p.step, Done: p.done})
		_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
		require.NoError(t, err, "%+v", p)
		require.NoError(t, Release(t.Context(), n.site, "4711"))
		requireSame(t, before, n.takeSnapshot(), "%+v", p)
		requireSame(t, empty, readSpace(t, job), "%+v", p)
	}
}

func TestKilledInRelease(t *testing.T) {
	n := newDefaultNode(t)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	for _, p := range listUndoPoints() {
		_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
		require.NoError(t, err)
		n.runUntilKilled(job, order{Release: true, PCI: newCard(0).VFAddress(0), Step: p.step, Done: true})
		require.NoError(t, Release(t.Context(), n.site, "4711"), "%+v", p)
		requireSame(t, before, n.takeSnapshot(), "%+v", p)
		requireSame(t, empty, readSpace(t, job), "%+v", p)
	}
}

// TestHolderKilledAtEachStep ends the job's namespace, so that the kernel returns the VFs
// under the names of the job.
func TestHolderKilledAtEachStep(t *testing.T) {
	n := newDefaultNode(t)
	before := n.takeSnapshot()
	for _, p := range listPoints() {
		job := newJobSpace(t)
		n.runUntilKilled(job, order{PCI: newCard(1).VFAddress(0), Step: p.step, Done: p.done})
		job.Close()
		n.waitForNamespaces()
		n.returnVFs()
		swept, err := Sweep(t.Context(), n.site, isNeverAlive)
		require.NoError(t, err)
		assert.Empty(t, swept.Problems, "%+v", p)
		requireSame(t, before, n.takeSnapshot(), "%+v", p)
	}
}
