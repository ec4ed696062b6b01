// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// fakeGPU is a device of the node that no job has.
const fakeGPU = "/opt/fakegpu"

// makeGPU creates the device node fakeGPU with a number that the kernel has a driver for and that every user
// can open.
func (s *site) makeGPU(t *testing.T) {
	t.Helper()
	r := s.Root("sh", "-c", "for d in 'c 10 229' 'c 10 235' 'b 7 0'; do rm -f "+fakeGPU+"; mknod -m 666 "+fakeGPU+" $d && "+
		"head -c0 <"+fakeGPU+" && exit 0; done; exit 1")
	t.Cleanup(func() { os.Remove(s.Path(fakeGPU)) })
	require.Zero(t, r.Code, r)
}

const (
	aDirectory = "a directory"
	aDevice    = "a device"
	theKernels = "a file of the kernel's"
)

// handed are files of the node that the attack makes slurmstepd open as a task's stdio.
var handed = []struct{ option, path, kind string }{
	{"--input", "/", aDirectory},
	{"--input", "/proc", aDirectory},
	{"--input", "/proc/self/root", aDirectory},
	{"--input", "/proc/thread-self/root", aDirectory},
	{"--input", "/proc/self/cwd", aDirectory},
	{"--input", "/proc/self/task", aDirectory},
	{"--input", "/run", aDirectory},
	{"--input", "/dev", aDirectory},
	{"--input", "/etc", aDirectory},
	{"--input", "/sys/kernel", aDirectory},
	{"--input", fakeGPU, aDevice},
	{"--output", fakeGPU, aDevice},
	{"--error", fakeGPU, aDevice},
	{"--input", "/proc/version", theKernels},
	{"--input", "/proc/self/mountinfo", theKernels},
	{"--input", "/proc/sys/kernel/ostype", theKernels},
	{"--input", "/sys/kernel/uevent_seqnum", theKernels},
}

// look leaves a trace wherever it runs, and says what is open there.
const look = "echo ran; echo ran >&2; " + attackPath + " run descriptors"

// linkForSlurmstepd creates a link of alice's in every home that leads slurmstepd to a path. With "%t" in the name of
// the link, srun leaves opening it to slurmstepd as well.
func (s *site) linkForSlurmstepd(t *testing.T, path string) (name string) {
	t.Helper()
	for _, root := range []string{"", "/srv/jails/open", "/srv/jails/closed"} {
		link := s.Path(root + "/home/alice/handed0")
		require.NoError(t, os.Symlink(path, link))
		t.Cleanup(func() { os.Remove(link) })
	}
	return "/home/alice/handed%t"
}

// silent is a way to start srun so that it never reads an end of its own input: slurmstepd of 22.05 ends
// by a segmentation fault if srun reports one for a task that reads a file (io.c, _client_read).
const silent = `f=$(mktemp -u) && mkfifo $f && exec 0<>$f && rm $f && exec "$@"`

// runStepWithFiles runs a step whose files slurmstepd opens.
func (s *site) runStepWithFiles(jail string, args ...string) harness.Result {
	return s.Run(harness.Alice, append([]string{"sh", "-c", silent, "sh", "srun", "-Q", "-wn1", "--jail=" + jail}, args...)...)
}

// TestStdioOfTheNode covers stdio, which slurmstepd opens before a task is in the jail: the opened file must not be a
// way out of the jail, or a device that the job does not have.
func TestStdioOfTheNode(t *testing.T) {
	s := sharedSite(t)
	s.makeGPU(t)
	for _, h := range handed {
		t.Run(h.option+" "+h.path, func(t *testing.T) {
			option := h.option + "=" + s.linkForSlurmstepd(t, h.path)
			r := s.runStepWithFiles("none", option, "sh", "-c", look)
			assert.Zero(t, r.Code, "control: without a jail: %s", r)
			if h.kind == aDirectory {
				assert.Contains(t, r.Stdout, escaped, "control: without a jail: %s", r)
			}
			for _, jail := range []string{"open", "closed"} {
				r := s.runStepWithFiles(jail, option, "sh", "-c", look)
				assert.NotZero(t, r.Code, r)
				assert.NotContains(t, r.Stdout+r.Stderr, "ran", r)
				assert.NotContains(t, r.Stdout, escaped, r)
				if h.option == "--input" { // else the reason is written there as well
					assert.Contains(t, r.Stderr, "gojail: "+h.option+": "+h.kind+" of the node is not allowed in a jail; name a file", r)
				}
			}
		})
	}
}

// TestStdioOfTheNodeInBatch covers the same with sbatch, which accepts such paths without a trick.
func TestStdioOfTheNodeInBatch(t *testing.T) {
	s := sharedSite(t)
	s.makeGPU(t)
	for option, kind := range map[string]string{"--input=/proc": aDirectory, "--input=" + fakeGPU: aDevice, "--output=" + fakeGPU: aDevice, "--input=/proc/version": theKernels} {
		file := "/home/alice/handed"
		other := "--output=" + file
		if strings.HasPrefix(option, "--output") {
			other = "--error=" + file
		}
		job := s.Batch(harness.Alice, look, "-wn1", "--jail=closed", option, other)
		said, seen := s.ReadAnywhere(file)
		os.Remove(s.Path(seen))
		assert.Equal(t, "FAILED", job.State, job)
		assert.NotContains(t, said, "ran", job)
		assert.Contains(t, said, kind+" of the node is not allowed in a jail; name a file", job)
	}
}
