// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listOfScratch returns the findings of the scratch directory, and whether one of them may drain the node.
func (n *checkedNode) listOfScratch() (text string, drains bool) {
	Check(n.Node, func(f Finding) {
		if f.Subject == "scratch" {
			text += f.String() + "\n"
			drains = drains || f.Level == Fail && !f.Content
		}
	})
	return text, drains
}

// addJob adds the directories of a job that runs here.
func (n *checkedNode) addJob(t *testing.T, job string) {
	for _, dir := range []string{"scratch/jobs/" + job, "state/jobs/" + job} {
		require.NoError(t, os.MkdirAll(filepath.Join(n.dir, dir), 0o755))
	}
	require.NoError(t, os.Chmod(n.State, 0o700))
}

// addProcess adds a process of that user.
func (n *checkedNode) addProcess(t *testing.T, pid string, uid int) {
	require.NoError(t, os.MkdirAll(n.procIn+"/"+pid, 0o755))
	n.writeFile(t, "proc/"+pid+"/status", fmt.Sprintf("Name:\tsome name\nState:\tS\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\nGid:\t0\n", uid), 0o644)
}

// addTrash adds files of a job that ended so long ago.
func (n *checkedNode) addTrash(t *testing.T, ago time.Duration) {
	name := fmt.Sprintf("scratch/jobs/.trash/7.%d", time.Now().Add(-ago).UnixNano())
	require.NoError(t, os.MkdirAll(filepath.Join(n.dir, name), 0o700))
}

// TestFullScratch: a full scratch file system is a failure that drains the node only if no user can have caused it.
func TestFullScratch(t *testing.T) {
	const idle = "no job that runs here has filled it; remove what is there: gojail sweep; du -x "
	const jobs = "jobs that run here may have filled it: 12; it ends with them; tmp_size limits each job"
	for name, test := range map[string]struct {
		options string // of the tmpfs; 0: 64k that are used up
		spoil   func(t *testing.T, n *checkedNode)
		drains  bool
		want    string
	}{
		"space, idle":   {"", nil, true, "scratch is full (space): " + idle},
		"inodes, idle":  {"nr_inodes=90", nil, true, "scratch is full (inodes): " + idle},
		"a job":         {"", func(t *testing.T, n *checkedNode) { n.addJob(t, "12") }, false, jobs},
		"inodes, a job": {"nr_inodes=90", func(t *testing.T, n *checkedNode) { n.addJob(t, "12") }, false, jobs},
		"a job with another jail's /tmp": {"", func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.MkdirAll(n.State+"/jobs/12", 0o755))
			require.NoError(t, os.Chmod(n.State, 0o700))
		}, false, jobs},
		"a user's process": {"", func(t *testing.T, n *checkedNode) { n.addProcess(t, "77", 1000) }, false,
			"a user's process runs here, which may have open files there: some name, process 77; end it"},
		"a spare is no job": {"", func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.MkdirAll(n.dir+"/scratch/jobs/spare.1", 0o700))
		}, true, idle},
		"a job of before a boot": {"", func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.MkdirAll(n.dir+"/scratch/jobs/12", 0o700))
		}, true, idle},
		"a job whose end failed": {"", func(t *testing.T, n *checkedNode) {
			n.addJob(t, "12")
			require.NoError(t, os.MkdirAll(n.State+"/ended", 0o700))
			n.writeFile(t, "state/ended/12", "", 0o600)
		}, true, idle},
		"files that are being removed":   {"", func(t *testing.T, n *checkedNode) { n.addTrash(t, time.Minute) }, false, "the files of jobs that have ended are being removed; wait"},
		"files that are not removed yet": {"", func(t *testing.T, n *checkedNode) { n.addTrash(t, time.Hour) }, false, "the files of jobs that have ended are being removed; wait"},
		"files that are not removed":     {"", func(t *testing.T, n *checkedNode) { n.addTrash(t, 13*time.Hour) }, true, idle},
		"directories of local": {"", func(t *testing.T, n *checkedNode) { n.configure(t, "local = [\"/var/tmp\"]\n") }, false,
			"users may have filled the directories of local of jail a"},
		"a mount of the jail beside it": {"", func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.MkdirAll(n.dir+"/scratch/data", 0o755))
			n.configure(t, fmt.Sprintf("[[jail.a.mounts]]\nsource = %q\ndestination = \"/etc\"\n", n.dir+"/scratch/data"))
		}, false, "users may have filled " + "DIR/scratch/data, which is on the same file system; give scratch a file system of its own"},
		"not used": {"", func(t *testing.T, n *checkedNode) { n.configure(t, "tmp = \"tmpfs\"\n") }, false, "0 MiB are free"},
		"not full": {"size=2G,nr_inodes=1000", nil, false, "2048 MiB are free; one job can fill it: no tmp_size for a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			n.addProcess(t, "1", 0)
			n.addProcess(t, "2", 65534)
			n.addProcess(t, "3", 1234)
			n.writeFile(t, "passwd", "slurm:x:1234:1234::/nonexistent:/usr/sbin/nologin\n", 0o644)
			n.writeFile(t, "slurm/slurm.conf", n.readFile(t, "slurm/slurm.conf")+"SlurmUser=slurm\n", 0o644)
			options := test.options
			if options == "" {
				options = "size=64k"
			}
			n.mountTmpfs(t, "scratch", options)
			if test.spoil != nil {
				test.spoil(t, n)
			}
			if test.options == "" {
				require.Error(t, os.WriteFile(n.dir+"/scratch/full", make([]byte, 1<<20), 0o600))
			}
			text, drains := n.listOfScratch()
			assert.Contains(t, text, strings.ReplaceAll(test.want, "DIR", n.dir))
			assert.Equal(t, test.drains, drains, text)
			_, stuck := strings.CutPrefix(name, "files that are not removed")
			assert.Equal(t, stuck, strings.Contains(text, "WARN  scratch: files of ended jobs are not removed from"), text)
		})
	}
}

// TestFullScratchIsFullForAWhile: the health check says so until twice as much is free, and not again at once.
func TestFullScratchIsFullForAWhile(t *testing.T) {
	n := newGoodNode(t)
	n.mountTmpfs(t, "scratch", "size=8M,nr_inodes=1000")
	var memory Memory
	isFull := func(free int) (full bool) {
		n.writeFile(t, "scratch/file", strings.Repeat("x", 8<<20-free), 0o600)
		memory = Watch(n.Node, memory, time.Now(), time.Minute, func(f Finding) {
			full = full || f.Level == Fail && f.Subject == "scratch"
		})
		return full
	}
	const limit = 8 << 20 / 100
	assert.False(t, isFull(limit*3/2), "it was not full")
	assert.True(t, isFull(limit/2))
	assert.True(t, isFull(limit*3/2), "it was")
	assert.False(t, isFull(limit*5/2))
	assert.False(t, isFull(limit*3/2))
}
