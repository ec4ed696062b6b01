// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestAdoptedSession requires that with pam_slurm_adopt a session is in the cgroup and the sandbox of its job, and ends with the
// job even in a jail without a PID namespace.
func TestAdoptedSession(t *testing.T) {
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	s, err := newSite(harness.Options{Constrain: true, SlurmConf: withGPUs(map[string]string{"PrologFlags": "Contain", "Prolog": libDir + "prolog-1"}),
		Files: map[string]string{"/etc/slurm/gres.conf": "Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n"}})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	// Debian 12 has it in /lib/security, where Debian's libpam looks, too.
	if _, err := os.Stat(s.Path("/usr/lib/security/pam_slurm_adopt.so")); err != nil {
		modules, _ := filepath.Glob(s.Path("/usr/lib") + "/*/security/pam_slurm_adopt.so")
		require.NotEmpty(t, modules, "make deps installs libpam-slurm-adopt")
	}
	require.Zero(t, s.Root("sh", "-c", "echo account required pam_slurm_adopt.so nodename=n1 log_level=debug >>/etc/pam.d/sshd").Code)
	for _, jail := range []string{"debian", "lax"} {
		job := s.startJob(t, harness.Alice, "--jail="+jail)
		r := s.runSSH(harness.Alice, "none", shells, "echo $SLURM_JOB_ID; cat /proc/self/cgroup; setsid sleep 7004 </dev/null >/dev/null 2>&1 &")
		require.Zero(t, r.Code, r)
		assert.Equal(t, job, strings.SplitN(r.Stdout, "\n", 2)[0], r)
		assert.Contains(t, r.Stdout, s.findJobCgroup(t, job)+"/step_extern", r)
		newer := s.startJob(t, harness.Alice, "--jail="+jail)
		// pam_slurm_adopt sets SLURM_JOB_ID to the job that it chose, whatever the user asked for: cgroup and sandbox are of one job.
		r = s.runSSH(harness.Alice, job, shells, "echo $SLURM_JOB_ID; ls /tmp/of-$SLURM_JOB_ID; cat /proc/self/cgroup")
		chosen := strings.SplitN(r.Stdout, "\n", 2)[0]
		assert.Contains(t, []string{job, newer}, chosen, r)
		assert.Contains(t, r.Stdout, "/tmp/of-"+chosen+"\n", r)
		assert.Contains(t, r.Stdout, s.findJobCgroup(t, chosen)+"/step_extern", r)
		// Of another module than pam_slurm_adopt, the job of the cgroup counts, by Slurm's own name of it.
		r = s.Root("sh", "-ec", s.enterJob(t, job)+"exec setpriv --reuid=5001 --regid=5001 --clear-groups "+program+" -c 'echo $SLURM_JOB_ID'")
		requireOutput(t, job, r)
		s.endJob(t, newer)
		require.NoError(t, s.RestartSlurmd("n1"))
		require.Len(t, s.Find("sleep 7004"), 1, "the end of another job, and a restart of slurmd")
		s.endJob(t, job)
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("sleep 7004")) == 0 }), "%s: %v", jail, s.Find("sleep 7004"))
	}
	job := s.allocate(t, harness.Alice, nil, "--jail=debian")
	r := s.runSSH(harness.Alice, "none", shells, "echo $SLURM_JOB_ID $(cat /etc/gojail-jail); cat /proc/self/cgroup")
	assert.Contains(t, r.Stdout, job+" debian\n", "no step has begun: %v", r)
	assert.Contains(t, r.Stdout, "/step_extern", r)
	s.endAllocated(t, job)
	job = s.startJob(t, harness.Alice, "--jail=debian", "--gres=gpu:1")
	r = s.runSSH(harness.Alice, "none", shells, "for d in zero full null; do head -c0 /dev/$d && echo $d; done; exit 0")
	assert.Equal(t, "zero\nnull\n", r.Stdout, "the devices of the job's cgroup: %v", r)
	assert.Equal(t, 1, strings.Count(r.Stderr, "Operation not permitted"), r)
	// Forwarded ports, which sshd serves without a session, end with the job, and there are none without one.
	forward := append(listSSHArguments("ssh", shells), "-N", "-L", "127.0.0.1:7010:127.0.0.1:"+shells, "alice@127.0.0.1")
	s.startInBackground(t, harness.Alice, forward...)
	reaches := func() bool {
		return strings.Contains(s.Root("ssh-keyscan", "-T", "20", "-t", "ed25519", "-p", "7010", "127.0.0.1").Stdout, "ssh-ed25519")
	}
	require.True(t, harness.Poll(harness.Timeout, reaches))
	s.endJob(t, job)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return !reaches() }), "the port is forwarded after the job")
	r = s.runSSH(harness.Alice, "none", shells, "true")
	assert.NotZero(t, r.Code, "pam_slurm_adopt refuses who has no job: %v", r)
	r = s.Do(harness.Command{User: harness.Alice, Args: forward})
	assert.Equal(t, 255, r.Code, r)
	_, err = os.Stat(s.Path("/run/gojail/n1"))
	assert.NoError(t, err)
}

// enterJob returns a script that puts its shell into a cgroup of a job's extern step.
func (s *site) enterJob(t *testing.T, job string) string {
	t.Helper()
	name := s.findJobCgroup(t, job)
	return "dir=$(find /sys/fs/cgroup -path '*" + name + "/step_extern*' -type d | tail -1); echo 0 >$dir/cgroup.procs; "
}

// findJobCgroup returns the name of a job's cgroup, such as /job_5, of which the batch script has one. Slurm 26.05 names it by the SLUID.
func (s *site) findJobCgroup(t *testing.T, job string) string {
	t.Helper()
	for _, p := range s.Find("/job" + fmt.Sprintf("%05s", job) + "/slurm_script") {
		text, err := os.ReadFile(s.Path(fmt.Sprintf("/proc/%d/cgroup", p.Pid)))
		require.NoError(t, err)
		if name := regexp.MustCompile(`(/[^/\n]+)/step_batch`).FindStringSubmatch(string(text)); name != nil {
			return name[1]
		}
	}
	require.FailNow(t, "the script of job "+job+" is in no cgroup of Slurm's")
	return ""
}

// TestSessionInACgroupNamedBySLUID requires that a session is in the sandbox of the job in whose cgroup it is, where the cgroup's name is the
// job's SLUID (Slurm 26.05): by a process of root's with slurmstepd's title there, and none of the user's.
func TestSessionInACgroupNamedBySLUID(t *testing.T) {
	s := sharedSite(t)
	older := s.startJob(t, harness.Alice, "--jail=debian")
	newer := s.startJob(t, harness.Alice, "--jail=debian")
	setup := "if [ -e /sys/fs/cgroup/cgroup.procs ]; then r=/sys/fs/cgroup; else r=/sys/fs/cgroup/freezer; fi; g=$r/gojail-sluid-" + strconv.Itoa(s.Pid) + "; "
	if r := s.Root("sh", "-ec", setup+"mkdir -p $g/s43XM7YPKHYZ00/step_extern/slurm $g/s43XM7YPKHYZ00/step_extern/user $g/s43XM7YPKHYZ01/step_0"); r.Code != 0 {
		t.Skip("needs a cgroup tree that root can change: ", r)
	}
	t.Cleanup(func() {
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.Root("sh", "-ec", setup+"find $g -depth -type d -exec rmdir {} +").Code == 0 }))
	})
	session := func(group string) harness.Result {
		return s.Root("sh", "-ec", setup+"echo 0 >$g/"+group+"/cgroup.procs; exec setpriv --reuid=5001 --regid=5001 --clear-groups "+program+" -c 'echo $SLURM_JOB_ID'")
	}
	start := func(user, group, job string) {
		others := len(s.Find("slurmstepd: [" + job + ".extern] 7007"))
		s.startInBackground(t, "root", "sh", "-ec", setup+"echo 0 >$g/"+group+"/cgroup.procs; exec setpriv --reuid="+user+" --clear-groups bash -c 'exec -a \"slurmstepd: ["+job+".extern]\" sleep 7007'")
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("slurmstepd: ["+job+".extern] 7007")) > others }))
	}
	requireOutput(t, newer, session("s43XM7YPKHYZ00/step_extern/user"))
	start("5001", "s43XM7YPKHYZ00/step_extern/user", older)
	requireOutput(t, newer, session("s43XM7YPKHYZ00/step_extern/user"))
	start("0", "s43XM7YPKHYZ00/step_extern/slurm", older)
	requireOutput(t, older, session("s43XM7YPKHYZ00/step_extern/user"))
	requireOutput(t, newer, session("s43XM7YPKHYZ01/step_0"))
	requireOutput(t, newer, s.runAsAlice("$P -c 'echo $SLURM_JOB_ID'"))
}
