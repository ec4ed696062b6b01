// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

var requireOutput, requireRefused = harness.RequireOutput, harness.RequireRefused

// forEachTree runs a test for the tree that the nodes' root may write and for the other.
func forEachTree(t *testing.T, test func(t *testing.T, b *testBed, tree string)) {
	for _, tree := range trees {
		t.Run(tree, func(t *testing.T) { test(t, sharedBed(t), tree) })
	}
}

func (b *testBed) runStep(tree, node string, args ...string) harness.Result {
	return b.cluster.Run(harness.Alice, append([]string{"srun", "--jail=" + tree, "-w" + node}, args...)...)
}

func TestSteps(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		requireOutput(t, "alice "+tree+" /home/alice", b.runStep(tree, "n1", "sh", "-c", `echo $(whoami) $(cat /etc/gojail-jail) $(pwd)`))
		requireOutput(t, tree+"\n"+tree, b.cluster.Run(harness.Alice, "srun", "-N2", "--jail="+tree, "cat", "/etc/gojail-jail"))
		requireOutput(t, "/usr/share", b.runStep(tree, "n1", "--chdir=/usr/share", "pwd"))
		requireOutput(t, "mine", b.runStep(tree, "n2", "sh", "-c", "echo mine >private && chmod 600 private && cat private"))
		assert.Equal(t, "mine", b.readFile(tree, "jail/home/alice/private"))
	})
}

// runBatch submits a script of alice's and waits for its end; output is read beside the server.
func (b *testBed) runBatch(tree, node, script string, args ...string) harness.Job {
	return b.cluster.Batch(harness.Alice, script, append([]string{"--jail=" + tree, "-w" + node}, args...)...)
}

func TestBatchOutputIntoTheJail(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		closed := b.serverPath(tree, "jail/home/alice/closed")
		require.NoError(t, os.MkdirAll(closed, 0o700))
		require.NoError(t, os.Chown(closed, 5001, 5001))
		job := b.runBatch(tree, "n1", "pwd; srun cat /etc/gojail-jail", "--output=/home/alice/closed/out", "--chdir=/home/alice/closed")
		assert.Equal(t, "COMPLETED", job.State, job)
		assert.Equal(t, "/home/alice/closed\n"+tree, b.readFile(tree, "jail/home/alice/closed/out"))
		job = b.runBatch(tree, "n2", "echo default; exit 3")
		assert.Equal(t, "FAILED 3:0", job.State+" "+job.ExitCode, job)
		assert.Equal(t, "default", b.readFile(tree, "jail/home/alice/slurm-"+job.ID+".out"))
	})
}

func TestMountOfAClosedHome(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		home := "/nfs/" + tree + "/home/alice"
		step := []string{"srun", "-wn1", "--jail=" + tree, "--jail-mount=" + home + ":/mnt/data", "sh", "-c", "echo seen >/mnt/data/f; cat /mnt/data/f"}
		requireOutput(t, "seen", b.cluster.Run(harness.Alice, step...))
		assert.Equal(t, "seen", b.readFile(tree, "home/alice/f"))
		requireRefused(t, home, b.cluster.Run(harness.Bob, step...))
	})
}

func TestRootInTheJail(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		requireOutput(t, "root", b.runStep(tree, "n1", "--jail-root=self", "--chdir=/", "whoami"))
		b.configure(t, strings.ReplaceAll(config, `["self"]`, `["self", "range"]`))
		r := b.runStep(tree, "n1", "--jail-root=range", "--chdir=/", "whoami")
		requireRefused(t, "gojail: --jail-root=range: the file system of the jail's root cannot map ids", r)
	})
}

// TestAdministration runs the commands of an administrator on a node; init on a host that the export trusts.
func TestAdministration(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		requireOutput(t, tree, b.runStep(tree, "n1", "cat", "/etc/gojail-jail"))
		node := b.hosts["n1"]
		for _, command := range [][]string{{"check"}, {"ls"}, {"sweep"}, {"reload"}, {"check"}} {
			r := node.runGojail(command...)
			assert.Zero(t, r.Code, "gojail %v: %v", command, r)
		}
		assert.Zero(t, b.hosts["admin"].runGojailOf("n1", "init", tree).Code)
		requireOutput(t, tree, b.runStep(tree, "n1", "cat", "/etc/gojail-jail"))
		left := b.cluster.Find("gojail-holder")
		assert.Empty(t, left)
	})
}

// TestStorageThatCheckDescribes: the line of gojail check says what each export does with root, and what jobs cannot have on NFS.
func TestStorageThatCheckDescribes(t *testing.T) {
	for tree, squashed := range map[string]string{"open": "root is not squashed", "squash": "root is squashed"} {
		t.Run(tree, func(t *testing.T) {
			r := sharedBed(t).hosts["n1"].runGojail("check")
			assert.Zero(t, r.Code, r)
			assert.Regexp(t, `(?m)^OK    jail `+tree+`: storage 198\.18\.0\.1:/export/`+tree+` \(nfs4\) on /nfs/`+tree+
				`, nosuid, nodev, hard, vers=4\.2, proto=tcp[^;]*; `+squashed+`; cannot map ids \(no --jail-root=range\); `+
				`no file capabilities \(ping\); user xattrs; d_type; \d+ lstat in [^;]*$`, r.Stdout)
		})
	}
}

// TestCommandsOfRootOnASquashedExport: run and enter work; init creates nothing and says where to run it.
func TestCommandsOfRootOnASquashedExport(t *testing.T) {
	b := sharedBed(t)
	n1 := b.hosts["n1"]
	r := n1.runGojail("run", "squash", "--", "sh", "-c", "id -un; pwd; cat /etc/gojail-jail")
	requireOutput(t, "root\n/\nsquash", r)
	assert.Empty(t, r.Stderr, r)
	requireOutput(t, "nobody\n/", n1.runGojail("run", "squash", "-u", "nobody", "--", "sh", "-c", "id -un; pwd"))
	requireOutput(t, "nothing to create: jail squash has all its mount targets", n1.runGojail("init", "squash"))
	target := b.serverPath("squash/jail/lacking")
	b.configure(t, config+"[[jail.squash.mounts]]\ntype = \"tmpfs\"\ndestination = \"/lacking\"\n")
	r = n1.runGojail("init", "squash")
	requireRefused(t, "Run it on a node that the export trusts (no_root_squash, exports(5)), or on the server", r)
	assert.NoFileExists(t, target)
	t.Cleanup(func() { os.Remove(target) })
	require.Zero(t, b.hosts["admin"].runGojailOf("n1", "init", "squash").Code)
	assert.DirExists(t, target)
	requireOutput(t, "nothing to create: jail squash has all its mount targets", n1.runGojail("init", "squash"))
}

// TestEnterOnEachExport: gojail enter shows the user, and root of the sandbox, what the job's tasks see.
func TestEnterOnEachExport(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		step := b.startStep(t, tree)
		id := strings.TrimSpace(b.cluster.Root("squeue", "-h", "-o", "%i").Stdout)
		step.tell("echo seen >/tmp/file; echo written")
		step.waitForLine(t, "written")
		n1 := b.hosts["n1"]
		for user, name := range map[string]string{"": harness.Alice, harness.Alice: harness.Alice, "root": "root"} {
			requireOutput(t, name+"\n/home/alice\n"+tree+"\nseen", n1.runGojail("enter", id, "-u", user, "--", "sh", "-c", "id -un; pwd; cat /etc/gojail-jail /tmp/file"))
		}
	})
}

// TestVersion3 is a jail over NFSv3 on the second node.
func TestVersion3(t *testing.T) {
	b := sharedBed(t)
	h := b.hosts["n2"]
	require.NoError(t, b.server.Export("/export/open", h.client.Address, "rw,no_root_squash", 1))
	require.NoError(t, h.mountPath("3", "/export/open", "/nfs/open"))
	t.Cleanup(func() { assert.Zero(t, h.runAsRoot("umount", "-l", "/nfs/open").Code) })
	require.Zero(t, h.runGojail("reload").Code)
	requireOutput(t, "nfs", h.runAsRoot("stat", "-f", "-c", "%T", "/nfs/open"))
	before := h.readCounts(t, "/nfs/open")
	requireOutput(t, "open", b.runStep("open", "n2", "cat", "/etc/gojail-jail"))
	assert.NotZero(t, h.readCounts(t, "/nfs/open").Since(before).Sum())
	r := h.runGojail("check")
	assert.Zero(t, r.Code, r)
}
