// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const libDir = harness.Prefix + "/lib/gojail/"

// allocate has Slurm give n1, or the node of a later -w, to a job of which no step begins, until the test ends it. It returns the job's number.
func (s *site) allocate(t *testing.T, user string, env []string, args ...string) string {
	t.Helper()
	r := s.Do(harness.Command{User: user, Env: env, Args: append([]string{"salloc", "--no-shell", "-wn1"}, args...)})
	require.Zero(t, r.Code, r)
	found := regexp.MustCompile(`Granted job allocation (\d+)`).FindStringSubmatch(r.Stderr)
	require.NotNil(t, found, r)
	t.Cleanup(func() { s.endAllocated(t, found[1]) })
	return found[1]
}

// endAllocated cancels a job and waits until nothing of it is left, not even what the Prolog has noted.
func (s *site) endAllocated(t *testing.T, job string) {
	t.Helper()
	s.endJob(t, job)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return !s.isThere("allocated/" + job) }), "the allocation of job %s stays", job)
}

// stopZygotes stops all processes that sandboxes are requested of until resume is called.
func (s *site) stopZygotes(t *testing.T) (resume func()) {
	t.Helper()
	var zygotes []string // by their pids inside the machine
	for _, p := range s.Processes() {
		if p.Status["Name"] == "gojail-zygote" {
			zygotes = append(zygotes, strconv.Itoa(p.Pid))
		}
	}
	require.NotEmpty(t, zygotes)
	require.Zero(t, s.Root(append([]string{"kill", "-STOP"}, zygotes...)...).Code)
	resume = func() { s.Root(append([]string{"kill", "-CONT"}, zygotes...)...) }
	t.Cleanup(resume)
	return resume
}

// isThere reports whether the state directory of n1 has a file.
func (s *site) isThere(name string) bool {
	_, err := os.Stat(s.Path("/run/gojail/n1/" + name))
	return err == nil
}

// TestSessionBeforeTheFirstStep requires that a session lands in the sandbox of a job that has the node, though none of its steps has begun
// there: with what the job asked for, and the same sandbox as the steps get. slurmd tells it to gojail's Prolog.
func TestSessionBeforeTheFirstStep(t *testing.T) {
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	s, err := newSite(harness.Options{SlurmConf: withGPUs(map[string]string{"PrologFlags": "Alloc", "Prolog": libDir + "prolog-1"}),
		Files: map[string]string{"/etc/slurm/gres.conf": "NodeName=n[1-2] Name=gpu File=/dev/tty61\nNodeName=n[1-2] Name=gpu File=/dev/tty62\n"}})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	const which = "echo $SLURM_JOB_ID $(cat /etc/gojail-jail)"
	ssh := func(user, job, command string) harness.Result { return s.runSSH(user, job, shells, command) }

	t.Run("the sandbox of the steps", func(t *testing.T) {
		job := s.allocate(t, harness.Alice, nil, "--jail=root", "--jail-root")
		requireOutput(t, job+" debian", ssh(harness.Alice, "none", which))
		requireOutput(t, "0 hello", ssh(harness.Alice, job, "echo hello >/tmp/of-session; echo $(id -u) $(cat /tmp/of-session)"))
		requireRefused(t, "SLURM_JOB_ID: job "+job+" has no sandbox of yours", s.runSSH(harness.Bob, job, forced, "true"))
		requireOutput(t, "hello", s.Run(harness.Alice, "srun", "-Q", "--overlap", "--jobid="+job, "--jail=root", "--jail-root", "cat", "/tmp/of-session"))
		s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, job, shells, "exec sleep 7009")...)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("sleep 7009")) > 0 }))
		s.endAllocated(t, job)
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("sleep 7009")) == 0 }), "the end of the job ends its sessions")
		requireRefused(t, "you have no job in a jail on this node", ssh(harness.Alice, "none", "true"))
	})
	t.Run("the newest job", func(t *testing.T) {
		older := s.startJob(t, harness.Alice, "--jail=debian", "-n1")
		job := s.allocate(t, harness.Alice, []string{"SLURM_JAIL=other"}, "-n1")
		requireOutput(t, older+" debian", ssh(harness.Alice, older, which))
		requireOutput(t, job+" other", ssh(harness.Alice, "none", which))
		requireOutput(t, job+" other", ssh(harness.Alice, job, which))
		requireRefused(t, "SLURM_JOB_ID: \"x\"", ssh(harness.Alice, "x", which))
		s.endJob(t, older)
	})
	t.Run("many at once", func(t *testing.T) {
		job := s.allocate(t, harness.Alice, nil, "--jail=debian")
		results := make([]harness.Result, 8)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				results[i] = ssh(harness.Alice, job, "echo $(readlink /proc/self/ns/mnt) $(cat /etc/gojail-jail)")
			})
		}
		wg.Wait()
		for _, r := range results {
			requireOutput(t, strings.TrimSpace(results[0].Stdout), r)
		}
		assert.Contains(t, results[0].Stdout, "debian")
	})
	t.Run("the builder is killed", func(t *testing.T) {
		for _, after := range []time.Duration{0, 5, 10, 20, 40, 80} {
			job := s.allocate(t, harness.Alice, nil, "--jail=debian", "--jail-mount=/data:/mnt")
			s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, job, shells, "true")...)
			var builder []harness.Process
			require.True(t, harness.Poll(harness.Timeout, func() bool {
				builder = s.Find("gojail-launcher session ")
				return len(builder) > 0 || s.isThere("jobs/"+job)
			}))
			time.Sleep(after * time.Millisecond) // any moment will do
			for _, p := range builder {
				s.Root("kill", "-KILL", strconv.Itoa(p.Pid)) // unless it has ended
			}
			requireOutput(t, job+" debian", ssh(harness.Alice, job, which))
			s.endAllocated(t, job)
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-launcher session ")) == 0 }))
		}
	})
	t.Run("--jail-mount", func(t *testing.T) {
		require.Zero(t, s.Root("sh", "-ec", "mkdir -p /data/set; touch /data/set/one").Code)
		job := s.allocate(t, harness.Alice, nil, "--jail=debian", "--jail-mount=/data/set:/mnt")
		requireOutput(t, job+" debian", ssh(harness.Alice, "none", "[ -e /mnt/one ] && "+which))
	})
	t.Run("the site's default, and none", func(t *testing.T) {
		none := s.allocate(t, harness.Alice, nil, "--jail=none")
		requireRefused(t, "SLURM_JOB_ID: job "+none+" has no sandbox of yours", ssh(harness.Alice, none, "true"))
		s.endAllocated(t, none)
		t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
		job := s.allocate(t, harness.Alice, nil)
		requireRefused(t, "you have no job in a jail on this node", ssh(harness.Alice, "none", "true"))
		require.NoError(t, s.WriteConfig(strings.Replace(configuration, "default    = \"none\"", "default    = \"other\"", 1)))
		requireOutput(t, job+" other", ssh(harness.Alice, "none", which))
	})
	t.Run("GPUs", func(t *testing.T) {
		for _, path := range []string{"/dev/tty60", "/dev/tty61", "/dev/tty62"} {
			if _, err := os.Stat(path); err != nil {
				t.Skip("needs ", path)
			}
		}
		t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
		require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[jail.debian]\n", "[jail.debian]\ndevices = [\"/dev/tty6[0-2]\"]\n", 1)))
		first := s.allocate(t, harness.Alice, nil, "-n1", "--jail=debian", "--gres=gpu:1")
		second := s.allocate(t, harness.Alice, nil, "-n1", "--jail=debian", "--gres=gpu:1")
		requireOutput(t, "/dev/tty60 /dev/tty61", ssh(harness.Alice, first, "echo $(ls -d /dev/tty6*)"))
		requireOutput(t, "/dev/tty60 /dev/tty62", ssh(harness.Alice, second, "echo $(ls -d /dev/tty6*)"))
	})
	t.Run("the job has ended meanwhile", func(t *testing.T) {
		job := s.allocate(t, harness.Alice, nil, "--jail=debian")
		file := s.Path("/run/gojail/n1/allocated/" + job)
		noted, err := os.ReadFile(file)
		require.NoError(t, err)
		build := func(allocated string) harness.Result {
			return s.Root("sh", "-c", libDir+"gojail-launcher session state=/run/gojail/n1 config=/etc/gojail/gojail.toml node=n1 deadline=20000 "+
				"jail=debian job="+job+" uid=5001 gid=5001 groups=5001 gpus= nics='?' allocated="+allocated+" 3>&1")
		}
		// Between the session and the launcher: it came back, as a requeued job does.
		assert.Equal(t, "error job "+job+" has just ended\n", build("1").Stdout)
		assert.False(t, s.isThere("jobs/"+job), "what the launcher has made is removed")
		// While the sandbox is built, for longer than the end of the job waits.
		made, err := os.Stat(file)
		require.NoError(t, err)
		resume := s.stopZygotes(t)
		built := make(chan harness.Result, 1)
		go func() { built <- build(strconv.FormatInt(made.ModTime().UnixNano(), 10)) }()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.isThere("jobs/" + job) }))
		require.NoError(t, os.Remove(file))
		resume()
		assert.Equal(t, "error job "+job+" has just ended\n", (<-built).Stdout)
		assert.False(t, s.isThere("jobs/"+job+"/debian"), "no session can enter")
		s.endAllocated(t, job)
		// Slurm has no Epilog run on a node that it takes for dead.
		require.NoError(t, os.WriteFile(file, noted, 0o600))
		t.Cleanup(func() { os.Remove(file) })
		requireRefused(t, "job "+job+" does not have this node any more", ssh(harness.Alice, "none", "true"))
		requireRefused(t, "you have no job in a jail on this node", ssh(harness.Alice, "none", "true"))
		require.NoError(t, os.WriteFile(file, noted, 0o600))
		other := s.allocate(t, harness.Alice, nil, "-wn2", "--jail=debian")
		moved := s.Path("/run/gojail/n1/allocated/" + other)
		require.NoError(t, os.Rename(file, moved))
		t.Cleanup(func() { os.Remove(moved) })
		requireRefused(t, "job "+other+" does not have this node any more", ssh(harness.Alice, "none", "true"))
	})
	t.Run("the number of an earlier job", func(t *testing.T) {
		job := s.allocate(t, harness.Alice, nil, "--jail=debian")
		noted, err := os.ReadFile(s.Path("/run/gojail/n1/allocated/" + job))
		require.NoError(t, err)
		s.endAllocated(t, job)
		later := s.allocate(t, harness.Bob, nil)
		require.NoError(t, os.WriteFile(s.Path("/run/gojail/n1/allocated/"+later), noted, 0o600))
		requireRefused(t, "job "+later+" does not have this node any more", ssh(harness.Alice, later, "true"))
		assert.False(t, s.isThere("allocated/"+later))
		assert.False(t, s.isThere("jobs/"+later))
		requireOutput(t, "debian", s.Run(harness.Bob, "srun", "-Q", "--jobid="+later, "--jail=debian", "cat", "/etc/gojail-jail"))
		s.endAllocated(t, later)
		for _, user := range []string{harness.Alice, harness.Bob} {
			for _, jail := range []string{"--jail=none", "--jail=debian"} {
				next := strconv.Itoa(1 + must(strconv.Atoi(later)))
				require.NoError(t, os.WriteFile(s.Path("/run/gojail/n1/allocated/"+next), noted, 0o600))
				require.Zero(t, s.Root("sh", "-ec", "cd /run/gojail/n1/jobs; mkdir -m 700 "+next+"; echo 5001 >"+next+"/.uid; touch -d '1 hour ago' "+next+"/.uid").Code)
				later = s.allocate(t, user, nil, jail)
				require.Equal(t, next, later)
				assert.False(t, s.isThere("jobs/"+later), "%s, %s", user, jail)
				now, err := os.ReadFile(s.Path("/run/gojail/n1/allocated/" + later))
				require.NoError(t, err)
				assert.Contains(t, string(now), map[string]string{harness.Alice: "uid=5001", harness.Bob: "uid=5002"}[user]+"\x00")
				if jail == "--jail=none" {
					requireRefused(t, "SLURM_JOB_ID: job "+later+" has no sandbox of yours", s.runSSH(user, later, forced, "true"))
				} else {
					requireOutput(t, later+" debian", s.runSSH(user, later, forced, which))
				}
				s.endAllocated(t, later)
			}
		}
	})
	assert.Empty(t, s.Drained())
}

func must(number int, err error) int {
	if err != nil {
		panic(err)
	}
	return number
}
