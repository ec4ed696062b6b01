// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

const (
	notShown    = "which is the node's; name a file in your home"
	siteSecret  = "a secret of the site"
	nodeOnly    = "/opt/site/"          // a directory of the node that all users can write to, as are the next two
	crashDir    = "/var/crash/"         //
	lockDir     = "/run/lock/"          //
	queueDir    = nodeOnly + "queue/"   // the node's message queues, as in /dev/mqueue
	dataLink    = "/home/alice/link"    // to nodeOnly + "secret0"
	outwardLink = "/home/alice/outward" // to lockDir + "linked"
)

// makeOpenDirs creates directories of the node that a user of the node could write to, files in them, and links to them in all homes.
func (s *site) makeOpenDirs(t *testing.T) {
	t.Helper()
	for _, dir := range []string{nodeOnly, crashDir, lockDir} {
		before, err := os.Stat(s.Path(dir))
		require.NoError(t, os.MkdirAll(s.Path(dir), 0o755))
		require.NoError(t, os.Chmod(s.Path(dir), 0o1777))
		t.Cleanup(func() {
			if err != nil {
				os.RemoveAll(s.Path(dir))
			} else {
				require.NoError(t, os.Chmod(s.Path(dir), before.Mode()))
			}
		})
	}
	s.writeOnNode(t, nodeOnly+"secret0", []byte(siteSecret+"\n"))
	mount := s.Root("sh", "-c", "mkdir "+queueDir+" && mount -t mqueue mqueue "+queueDir+" && chmod 1777 "+queueDir)
	require.Zero(t, mount.Code, mount)
	t.Cleanup(func() { require.Zero(t, s.Root("umount", queueDir).Code) })
	r := s.Gojail("n1", "reload", "closed") // whose stage has the mounts that the node had
	require.Zero(t, r.Code, r)
	for _, root := range []string{"", "/srv/jails/closed"} {
		for link, to := range map[string]string{dataLink + "0": nodeOnly + "secret0", outwardLink + "0": lockDir + "linked"} {
			path := s.Path(root + link)
			require.NoError(t, os.Symlink(to, path))
			t.Cleanup(func() { os.Remove(path) })
		}
	}
}

// removeSeen removes what a row has left, on the node and in the jail.
func (s *site) removeSeen(path string) {
	for _, root := range []string{"", "/srv/jails/closed"} {
		os.Remove(s.Path(root + path))
	}
}

// TestStdinOfTheNode has slurmstepd open files of the node, which its user may read there, as a task's stdin.
func TestStdinOfTheNode(t *testing.T) {
	s := sharedSite(t)
	s.makeOpenDirs(t)
	s.writeOnNode(t, "/srv/jails/closed/home/alice/mine0", []byte("mine\n"))
	s.writeOnNode(t, "/srv/jails/closed/var/tmp/kept0", []byte("kept\n"))
	for _, row := range []struct{ path, want string }{
		{nodeOnly + "secret", notShown},
		{outside, notShown},
		{dataLink, notShown},
		{"/proc/self/root" + nodeOnly + "secret", notShown},
		{"/home/alice/mine", "mine"},
		{"/var/tmp/kept", "kept"},
		{"/dev/null", ""},
	} {
		t.Run(row.path, func(t *testing.T) {
			path := row.path
			if _, err := os.Stat(s.Path(path)); err != nil {
				path += "0"
				r := s.runStepWithFiles("closed", "--input="+row.path+"%t", "cat")
				s.checkInput(t, r.Code == 0, r.Stdout+r.Stderr, row.want)
			}
			job := s.Batch(harness.Alice, "cat", "-wn1", "--jail=closed", "--input="+path, "--output=/home/alice/read")
			os.Remove(s.Path("/srv/jails/closed/home/alice/read"))
			s.checkInput(t, job.State == "COMPLETED", job.Output, row.want)
		})
	}
	r := s.runStepWithFiles("none", "--input="+nodeOnly+"secret%t", "cat")
	assert.Contains(t, r.Stdout, siteSecret, "control: without a jail: %s", r)
}

func (s *site) checkInput(t *testing.T, ran bool, said, want string) {
	t.Helper()
	assert.Equal(t, want != notShown, ran, said)
	assert.Contains(t, said, want)
	assert.NotContains(t, said, siteSecret)
}

// TestOutputOnTheNode has slurmstepd open files for the output of tasks, where their user may write on the node. A step of a jail must
// not write there: it would be past all quotas, and in the IPC namespace of the node.
func TestOutputOnTheNode(t *testing.T) {
	s := sharedSite(t)
	s.makeOpenDirs(t)
	for _, row := range []struct {
		path string // without the number of the task
		at   string // where it is read in the end
		runs bool
	}{
		{nodeOnly + "out", nodeOnly + "out0", false},
		{crashDir + "out", crashDir + "out0", false},
		{lockDir + "out", lockDir + "out0", false},
		{outwardLink, lockDir + "linked", false},
		{queueDir + "gojail-test", queueDir + "gojail-test0", false},
		{"/home/alice/out", "/srv/jails/closed/home/alice/out0", true},
		{"/var/tmp/out", "/srv/jails/closed/var/tmp/out0", true},
	} {
		for _, way := range []struct {
			name string
			args []string
		}{
			{"output", []string{"--output=" + row.path + "%t"}},
			{"error", []string{"--error=" + row.path + "%t"}},
			{"labelled output", []string{"-l", "--output=" + row.path + "%t"}},
			{"labelled error", []string{"-l", "--error=" + row.path + "%t"}},
			{"append", []string{"--open-mode=append", "--output=" + row.path + "%t"}},
			{"batch", nil},
		} {
			if strings.HasPrefix(row.path, queueDir) && strings.HasPrefix(way.name, "labelled") {
				continue // slurmstepd writes itself then, which a queue refuses (write(2), EINVAL), and the task has a pipe
			}
			t.Run(row.path+" "+way.name, func(t *testing.T) {
				defer s.removeSeen(row.at)
				defer os.Remove(s.Path(row.at))
				const script = "echo ran by $SLURM_JOB_ID; echo ran by $SLURM_JOB_ID >&2"
				completed, said := false, ""
				if way.args != nil {
					r := s.runStepWithFiles("closed", append(way.args, "sh", "-c", script)...)
					completed, said = r.Code == 0 && !strings.Contains(r.Stderr, "launch failed"), r.Stdout+r.Stderr // 22.05: 0 where a file cannot be opened
				} else {
					job := s.Batch(harness.Alice, script, "-wn1", "--jail=closed", "--output="+row.path+"0")
					completed = job.State == "COMPLETED"
				}
				text, _ := os.ReadFile(s.Path(row.at))
				assert.Equal(t, row.runs, completed, "%s %s", said, text)
				if row.runs {
					assert.Contains(t, string(text), "ran by", said)
					assert.NoFileExists(t, s.Path(row.path+"0"))
					return
				}
				assert.NotContains(t, string(text), "ran by", "it was written on the node")
				if !strings.HasPrefix(row.path, queueDir) { // which takes no text
					assert.Contains(t, said+string(text), notShown)
				}
			})
		}
	}
}

// TestWorkingDirectoryOfTheNode: slurmstepd changes to --chdir in the stage, each task in its jail.
func TestWorkingDirectoryOfTheNode(t *testing.T) {
	s := sharedSite(t)
	s.makeOpenDirs(t)
	for _, dir := range []string{nodeOnly, "/etc", "/run/lock", "/proc/self/root" + nodeOnly, "/proc/self/cwd"} {
		r := s.runStepWithFiles("closed", "--chdir="+dir, "sh", "-c", "cat secret0 gojail-outside; ls "+nodeOnly+"; pwd -P")
		assert.NotContains(t, r.Stdout, siteSecret, r)
		assert.NotContains(t, r.Stdout, "a file of the node", r)
		r = s.runStepWithFiles("closed", "--chdir="+dir, "--output=chosen%t", "echo", "ran")
		text, _ := os.ReadFile(s.Path(filepath.Join(dir, "chosen0")))
		assert.NotContains(t, string(text), "ran", r)
		s.removeSeen(filepath.Join(dir, "chosen0"))
	}
	job := s.Batch(harness.Alice, "echo ran", "-wn1", "--jail=closed", "--chdir="+nodeOnly)
	text, _ := os.ReadFile(s.Path(fmt.Sprintf("%sslurm-%s.out", nodeOnly, job.ID)))
	os.Remove(s.Path(fmt.Sprintf("%sslurm-%s.out", nodeOnly, job.ID)))
	assert.Equal(t, "FAILED", job.State, job)
	assert.Contains(t, string(text), notShown)
}

// TestFilesThatTheJailShows: a file of the node is permitted if the jail shows the same file at the same path, unless it is mounted read-only
// there and the user could write to it by the descriptor.
func TestFilesThatTheJailShows(t *testing.T) {
	s := sharedSite(t)
	for _, dir := range []string{"/opt/shared", "/opt/fixed"} {
		for _, root := range []string{"", "/srv/jails/closed"} {
			require.NoError(t, os.MkdirAll(s.Path(root+dir), 0o755))
			t.Cleanup(func() { os.RemoveAll(s.Path(root + dir)) })
		}
		require.NoError(t, os.Chmod(s.Path(dir), 0o1777))
		s.writeOnNode(t, dir+"/roots0", []byte("shown\n"))
		s.writeOnNode(t, dir+"/alices0", []byte("shown\n"))
		require.NoError(t, os.Chown(s.Path(dir+"/alices0"), 5001, 5001))
	}
	s.configure(t, `root = "/srv/jails/closed"`, `root = "/srv/jails/closed"
mounts = [{source = "/opt/shared", destination = "/opt/shared"}, {source = "/opt/fixed", destination = "/opt/fixed", options = ["ro"]}]`)
	for _, row := range []struct {
		option string
		shown  bool
	}{
		{"--input=/opt/shared/roots%t", true},
		{"--input=/opt/shared/alices%t", true},
		{"--output=/opt/shared/out%t", true},
		{"--output=/opt/shared/alices%t", true},
		{"--input=/opt/fixed/roots%t", true},
		{"--input=/opt/fixed/alices%t", false},
		{"--output=/opt/fixed/out%t", false},
	} {
		for _, label := range []string{"--unbuffered", "--label"} {
			r := s.runStepWithFiles("closed", label, row.option, "echo", "ran")
			_, path, _ := strings.Cut(strings.TrimSuffix(row.option, "%t"), "=")
			text, _ := os.ReadFile(s.Path(path + "0"))
			assert.Equal(t, row.shown, r.Code == 0, "%s: %s", row.option, r)
			assert.Equal(t, row.shown, strings.Contains(r.Stdout+string(text), "ran"), "%s: %s %s", row.option, r, text)
		}
	}
}

// TestOutputToAFIFOOfTheNode: a FIFO of the node gets the output of no task, neither from the task nor from slurmstepd.
func TestOutputToAFIFOOfTheNode(t *testing.T) {
	s := sharedSite(t)
	s.makeOpenDirs(t)
	r := s.Root("sh", "-c", "mkfifo -m 622 "+nodeOnly+"fifo0 && chmod 622 "+nodeOnly+"fifo0")
	require.Zero(t, r.Code, r)
	// Both ends: opening it does not wait then.
	reader, err := os.OpenFile(s.Path(nodeOnly+"fifo0"), os.O_RDWR|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer reader.Close()
	for _, label := range []string{"--unbuffered", "--label"} {
		for _, option := range []string{"--output=", "--error="} {
			r := s.runStepWithFiles("closed", label, option+nodeOnly+"fifo%t", "sh", "-c", "echo ran; echo ran >&2")
			require.NoError(t, reader.SetReadDeadline(time.Now().Add(100*time.Millisecond))) // the step has ended
			text, _ := io.ReadAll(reader)
			assert.NotContains(t, string(text), "ran\n", "%s %s: %s", label, option, r)
			assert.Contains(t, r.Stderr+string(text), notShown, "%s %s", label, option)
		}
	}
}

// TestOutputThroughAThread: the threads of slurmstepd that are not in the stage have the node's root, and each thread may follow the root of
// the others, whatever user it acts as. The number of a thread is guessed, until several guesses were right: how many numbers ahead it is
// differs from step to step.
func TestOutputThroughAThread(t *testing.T) {
	s := sharedSite(t)
	s.makeOpenDirs(t)
	link, out := s.Path("/srv/jails/closed/home/alice/thread0"), s.Path(crashDir+"thread")
	defer os.Remove(link)
	opened := 0
	for guess := 0; guess < 500 && opened < 4; guess++ {
		ahead := 1 + guess%100
		pid, err := strconv.Atoi(strings.TrimSpace(s.Run(harness.Alice, "sh", "-c", "echo $$").Stdout))
		require.NoError(t, err)
		os.Remove(link)
		require.NoError(t, os.Symlink(fmt.Sprintf("/proc/self/task/%d/root%sthread", pid+ahead, crashDir), link))
		r := s.runStepWithFiles("closed", "--label", "--output=/home/alice/thread%t", "echo", "ran")
		text, err := os.ReadFile(out)
		if err == nil {
			opened++
			assert.NotContains(t, string(text), ": ran", "it was written on the node: %s", r)
			require.NoError(t, os.Remove(out))
		}
	}
	assert.Greater(t, opened, 1, "of no other thread than the main one was the number guessed")
}

// TestOutputInAReadonlyRoot: a task gets no descriptor to write with to a root that is read-only for it.
func TestOutputInAReadonlyRoot(t *testing.T) {
	s := sharedSite(t)
	const name = "/home/alice/readonly"
	defer s.removeSeen(name + "0")
	write := func(label string) string {
		s.runStepWithFiles("closed", label, "--output="+name+"%t", "echo", "ran")
		text, _ := os.ReadFile(s.Path("/srv/jails/closed" + name + "0"))
		s.removeSeen(name + "0")
		return string(text)
	}
	for _, label := range []string{"--unbuffered", "--label"} {
		assert.Contains(t, write(label), "ran", "control")
	}
	s.configure(t, `root = "/srv/jails/closed"`, "root = \"/srv/jails/closed\"\nreadonly = true")
	for _, label := range []string{"--unbuffered", "--label"} {
		assert.Empty(t, write(label))
	}
	r := s.runStepWithFiles("closed", "--output=/tmp/readonly%t", "cat", "/tmp/readonly0")
	assert.Zero(t, r.Code, r)
}
