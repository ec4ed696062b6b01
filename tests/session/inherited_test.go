// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// knownState is what each process has that a launcher leaves behind, in the order of inherit.c.
func knownState() map[string]string {
	known := map[string]string{
		"Umask": "0022", "terminal": "0", "SigBlk": "0000000000000000", "CapInh": "0000000000000000",
		"CapAmb": "0000000000000000", "THP_enabled": "1", "flags": "00000000", "nice": "0",
		"policy": "0", "cpus": strconv.Itoa(countCPUs()), "io": "0", "timerslack_ns": "50000",
		"personality": "00000000", "oom_score_adj": "0", "coredump_filter": "00000033",
		"loginuid": "4294967295", "sessionid": "4294967295", "mempolicy": "default", "merge": "no",
		"CPU": "-1:-1", "FSIZE": "-1:-1", "DATA": "-1:-1", "AS": "-1:-1", "STACK": "8388608:-1",
		"CORE": "0:-1", "RSS": "-1:-1", "NPROC": "-1:-1", "NOFILE": "1024:524288", "MEMLOCK": "-1:-1",
		"LOCKS": "-1:-1", "SIGPENDING": "-1:-1", "MSGQUEUE": "-1:-1", "NICE": "0:0", "RTPRIO": "0:0",
		"RTTIME": "-1:-1",
	}
	if mayRaiseLimits() {
		known["oom_score_adj"] = "-1000"
	}
	return known
}

// countCPUs returns the number of processors that a process may have here, however few the tests run on (taskset(1)).
func countCPUs() int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var own, all, has unix.CPUSet
	for i := range len(all) * 64 {
		all.Set(i)
	}
	if unix.SchedGetaffinity(0, &own) != nil || unix.SchedSetaffinity(0, &all) != nil {
		return runtime.NumCPU()
	}
	defer unix.SchedSetaffinity(0, &own)
	unix.SchedGetaffinity(0, &has)
	return has.Count()
}

// mayRaiseLimits reports whether the launcher may raise hard limits, and be spared by the OOM killer. A container may
// lack the capability.
func mayRaiseLimits() bool {
	has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	return err == nil && has == 1
}

// readAttributes reads what inherit.c prints. It leaves out what a kernel or a file system does not tell.
func readAttributes(t *testing.T, r harness.Result) map[string]string {
	t.Helper()
	require.Zero(t, r.Code, r)
	attributes := map[string]string{}
	for line := range strings.Lines(r.Stdout) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		attributes[name] = value
	}
	require.Greater(t, len(attributes), 30, r)
	return attributes
}

// requireKnownState requires the known state of a process. Without the right to raise hard limits, soft limits are as
// high as these.
func (s *site) requireKnownState(t *testing.T, what string, pid int) {
	t.Helper()
	has := readAttributes(t, s.Root("/inherit", "read", strconv.Itoa(pid)))
	for name, want := range knownState() {
		soft, hard, isLimit := strings.Cut(has[name], ":")
		if isLimit && !mayRaiseLimits() {
			wantedSoft, _, _ := strings.Cut(want, ":")
			assert.Contains(t, []string{wantedSoft, hard}, soft, "%s: soft limit %s", what, name)
			continue
		}
		if name == "Umask" && (strings.Contains(what, "zygote") || strings.Contains(what, "holder")) {
			want = "0000" // they start no program (docs/inheritance.md)
		}
		assert.Equal(t, want, has[name], "%s: %s", what, name)
	}
	for _, name := range []string{"Speculation_Store_Bypass", "SpeculationIndirectBranch"} {
		assert.NotContains(t, has[name], "disabled", "%s: %s", what, name)
	}
	ignored, err := strconv.ParseUint(has["SigIgn"], 16, 64)
	require.NoError(t, err)
	assert.Zero(t, ignored&^(1<<(unix.SIGPIPE-1)|1<<(unix.SIGCHLD-1)), "%s: ignored signals %x", what, ignored)
	environment := s.Root("sh", "-c", fmt.Sprintf("tr '\\0' '\\n' </proc/%d/environ", pid)).Stdout
	assert.Equal(t, "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n", environment, what)
}

// installInherit installs inherit.c on the node and in the jail debian.
func (s *site) installInherit(t *testing.T) {
	t.Helper()
	for _, root := range []string{"/", "/srv/jails/debian/"} {
		out, err := exec.Command("gcc", "-static", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
			"-o", s.Path(root+"inherit"), "testdata/inherit.c").CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// endZygotes ends all processes that sandboxes are requested of.
func (s *site) endZygotes(t *testing.T) {
	t.Helper()
	for _, p := range s.Find("gojail-launcher template ") {
		s.Root("kill", "-9", strconv.Itoa(p.Pid))
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return len(s.Find("gojail-launcher template ")) == 0
	}))
}

// readPid reads the process of a record in the state directory of n1.
func (s *site) readPid(t *testing.T, record string) int {
	t.Helper()
	text, err := os.ReadFile(s.Path("/run/gojail/n1/" + record))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return pid
}

// TestNothingOfTheStarterStays requires that what one user's launch leaves behind, and others use, is in the same
// state whoever was first: a session, a step, an administrator. Tasks have what Slurm gives them without a jail.
func TestNothingOfTheStarterStays(t *testing.T) {
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	prolog := map[string]string{"PrologFlags": "Alloc", "Prolog": libDir + "prolog-1"}
	s, err := newSite(harness.Options{SlurmConf: prolog})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	s.installInherit(t)
	for _, starter := range []struct {
		name  string
		start func(t *testing.T)
	}{
		{"a session", func(t *testing.T) {
			s.allocate(t, harness.Alice, nil, "-n1", "--jail=debian")
			s.endZygotes(t)
			r := s.Root("/inherit", "as", "5001", "/tmp/keyring", program, "-c", "/inherit read self")
			own := readAttributes(t, r)
			for name, want := range map[string]string{"nice": "15", "policy": "3", "cpus": "1", "timerslack_ns": "7000000",
				"THP_enabled": "0", "coredump_filter": "0000007f", "merge": "yes"} {
				assert.Equal(t, want, own[name], "control: %s of the session itself", name)
			}
			assert.Regexp(t, "^0:", own["MEMLOCK"], "control: limits of the session itself")
		}},
		{"a step, of a slurmd that was started so", func(t *testing.T) {
			require.NoError(t, s.StopSlurmd("n1"))
			t.Cleanup(func() { assert.NoError(t, s.RestartSlurmd("n1")) })
			require.NoError(t, s.StartSlurmd("n1", "/inherit", "as", "0", "/tmp/keyring"))
			require.True(t, s.WaitIdle(), s.Drained())
			s.endZygotes(t)
			r := s.Root("/inherit", "as", "5001", "/dev/null", "srun", "-Q", "-wn1", "--jail=debian", "true")
			require.Zero(t, r.Code, r)
		}},
		{"gojail run", func(t *testing.T) {
			s.endZygotes(t)
			const run = "exec 9</etc/passwd; exec gojail --node=n1 --state=/run/gojail/%n run debian -u nobody -- true"
			r := s.Root("/inherit", "as", "0", "/tmp/keyring", "unshare", "--net", "--ipc", "--uts", "sh", "-c", run)
			require.Zero(t, r.Code, r)
		}},
	} {
		t.Run(starter.name, func(t *testing.T) {
			t.Cleanup(func() { s.Root("rm", "-f", "/tmp/keyring") })
			starter.start(t)
			require.NotEmpty(t, s.Find("gojail-launcher template "), "what it started")
			bob := s.startJob(t, harness.Bob, "--jail=debian", "-n1", "--overcommit")
			zygote := s.readPid(t, "jails/debian/zygote")
			s.requireKnownState(t, "the zygote", zygote)
			s.requireKnownState(t, "the holder of another user's job", s.readPid(t, "jobs/"+bob+"/debian"))
			keyring := strings.TrimSpace(s.Root("cat", "/tmp/keyring").Stdout)
			require.Regexp(t, `^[0-9a-f]{8}$`, keyring)
			if !strings.Contains(starter.name, "slurmd") { // which has it as long as it runs
				assert.True(t, harness.Poll(harness.Timeout, func() bool {
					return !strings.Contains(s.Root("cat", "/proc/keys").Stdout, keyring)
				}), "the session keyring %s stays", keyring)
			}
			assert.NotContains(t, s.Root("ls", "-l", fmt.Sprintf("/proc/%d/fd", zygote)).Stdout, "/etc/passwd")
			namespaces := func(pid string) string {
				return s.Root("sh", "-ec", "cd /proc/"+pid+"/ns; for i in net ipc uts cgroup user pid time; do readlink $i; done").Stdout
			}
			want := namespaces("$(cat /run/slurm/slurmd-n1.pid)")
			assert.Contains(t, want, "net:")
			assert.Equal(t, want, namespaces(strconv.Itoa(zygote)), "namespaces of slurmd, and of the zygote")
			s.requireTaskAsWithoutJail(t, bob)
		})
	}
}

// ofTheJail are the attributes that a jail is to change.
var ofTheJail = regexp.MustCompile(`(?m)^(CapInh|Speculation\w*) .*\n`)

// requireTaskAsWithoutJail requires that tasks have the same attributes in a jail as without.
func (s *site) requireTaskAsWithoutJail(t *testing.T, job string) {
	t.Helper()
	var outputs []string
	for _, jail := range []string{"none", "debian"} {
		r := s.Run(harness.Bob, "srun", "-Q", "--overlap", "--jobid="+job, "--jail="+jail, "/inherit", "read", "self")
		require.Zero(t, r.Code, r)
		outputs = append(outputs, ofTheJail.ReplaceAllString(r.Stdout, ""))
	}
	assert.Contains(t, outputs[0], "MEMLOCK")
	assert.Equal(t, outputs[0], outputs[1], "a task without a jail, and in it")
}

// TestNothingOfALoginStays covers the first session on a login node, which leaves a zygote, the sandbox of the user's
// sessions, and what ends it.
func TestNothingOfALoginStays(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", "5s", 1))
	s.installInherit(t)
	s.endZygotes(t)
	r := s.Root("/inherit", "as", "5001", "/dev/null", program, "-c", "/inherit read self")
	assert.Equal(t, "15", readAttributes(t, r)["nice"], "control: the session itself")
	require.True(t, harness.Poll(harness.Timeout, func() bool { // the launcher does not wait until the watcher has begun
		return slices.ContainsFunc(s.Find("state=/run/gojail/login1 "), func(p harness.Process) bool { return p.Status["Name"] == "gojail-watcher" })
	}))
	checked := map[string]bool{}
	for _, p := range s.Find("state=/run/gojail/login1 ") {
		if name := p.Status["Name"]; name != "gojail-prober" { // which ends at any time
			s.requireKnownState(t, name, p.Pid)
			checked[name] = true
		}
	}
	for _, name := range []string{"gojail-zygote", "gojail-holder", "gojail-watcher"} {
		assert.True(t, checked[name], "%s of %v", name, checked)
	}
}
