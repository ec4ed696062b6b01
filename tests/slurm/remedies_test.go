// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// mistake is one that a site makes on a node. The tables are in remedies_table_test.go.
type mistake struct {
	name    string
	command string // makes the mistake
	want    string // line of gojail check, in part
	works   bool   // a job works all the same
	stopped bool   // slurmd does not run: no job is tried, which Slurm would end again after a minute only
	hand    string // command for a remedy that leaves a choice to a person; "": the remedy says what to do
	undo    string // undoes what the mistake changed outside of /etc/slurm and /etc/gojail
}

// remedies are the forms of the remedies of gojail check, and what a person does who reads them.
var remedies = []struct {
	form *regexp.Regexp
	do   func(found []string) string // a command of a shell
}{
	{regexp.MustCompile(`(?:; run|; run on its host|if all users .*|; run in gojail's sources): (.+)$`), func(f []string) string { return cutChoice(f[1]) }},
	{regexp.MustCompile(`replace it by a copy: (.+)$`), func(f []string) string { return f[1] }},
	{regexp.MustCompile(`; create them once, for all nodes: (gojail .*init \w+)$`), func(f []string) string { return f[1] }},
	{regexp.MustCompile(`; to apply this to the next jobs: (gojail .*reload \w+)$`), func(f []string) string { return f[1] }},
	{regexp.MustCompile(`; remove the # at the beginning of (\S+) line (\d+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s s/^#//' %s", f[2], f[1]) }},
	{regexp.MustCompile(`; replace (\S+) line (\d+) by: (.+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s c %s' %s", f[2], f[3], f[1]) }},
	{regexp.MustCompile(`; keep .+ line \d+, and remove (\S+) line (\d+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s d' %s", f[2], f[1]) }},
	{regexp.MustCompile(`, or remove (\S+) line (\d+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s d' %s", f[2], f[1]) }},
	{regexp.MustCompile(`; add this line to (\S+): (.+)$`), func(f []string) string { return fmt.Sprintf("echo '%s' >>%s", f[2], f[1]) }},
	{regexp.MustCompile(`; replace (\S+=\S+) by (\S+=\S+) in (\S+), and run: (.+)$`), func(f []string) string { return fmt.Sprintf("sed -i 's|^%s$|%s|' %s; %s", f[1], f[2], f[3], f[4]) }},
	{regexp.MustCompile(`; remove (\S+=\S+) from (\S+), and run: (.+)$`), func(f []string) string { return fmt.Sprintf("sed -i '\\|^%s$|d' %s; %s", f[1], f[2], f[3]) }},
	{regexp.MustCompile(`, or remove (\S+=\S+) in (\S+), and run: (.+)$`), func(f []string) string { return fmt.Sprintf("sed -i '\\|^%s$|d' %s; %s", f[1], f[2], f[3]) }},
	{regexp.MustCompile(`; write (spool = \S+) in \[slurm\] of (\S+), or `), func(f []string) string { return fmt.Sprintf("sed -i 's|^spool = .*|%s|' %s", f[1], f[2]) }},
	{regexp.MustCompile(`; remove noexec from options of the mount of \S+ in (\S+)$`), func(f []string) string { return fmt.Sprintf(`sed -i 's/, *"noexec"//' %s`, f[1]) }},
	{regexp.MustCompile(`: (\S+) \(for \S+\) does not exist on this node; mount or create it`), func(f []string) string { return "mkdir -p " + f[1] }},
	{regexp.MustCompile(`: (\S+) does not exist on this node and is omitted; remove it from host =`), func(f []string) string { return fmt.Sprintf(`sed -i 's|, *"%s"||' /etc/gojail/gojail.toml`, f[1]) }},
	{regexp.MustCompile(` is not in (\S+/etc/passwd): .*; append this line to the file: (.+)$`), func(f []string) string { return fmt.Sprintf("echo '%s' >>%s", f[2], f[1]) }},
}

// cutChoice returns the first command of a remedy that names others.
func cutChoice(command string) string {
	for _, choice := range []string{"; and remove ", "; or ", "; if that does not help", "; and "} {
		command, _, _ = strings.Cut(command, choice)
	}
	return command
}

// findRemedy returns the command that a line of gojail check asks for.
func findRemedy(line string) string {
	for _, r := range remedies {
		if found := r.form.FindStringSubmatch(line); found != nil {
			return r.do(found)
		}
	}
	return ""
}

// carryOut runs the command of a remedy. The machine of a cluster has no systemd, and the sources are here.
func carryOut(t *testing.T, c *harness.Cluster, command string) {
	t.Helper()
	if before, unit, found := strings.Cut(command, "; systemctl "); found {
		carryOut(t, c, before)
		command = "systemctl " + unit
	}
	switch {
	case command == "systemctl start slurmd":
		require.NoError(t, c.StartSlurmd("n1"))
	case command == "systemctl restart slurmd":
		_ = c.StopSlurmd("n1") // it may not run
		require.NoError(t, c.StartSlurmd("n1"))
	case command == "systemctl start slurmctld":
		command = "/usr/sbin/slurmctld"
	case command == "systemctl restart munge":
		command = "kill $(cat /run/munge/munged.pid) 2>/dev/null; rm -f /run/munge/munge.socket.2*; " +
			"exec setpriv --reuid=munge --regid=munge --init-groups /usr/sbin/munged"
	case command == "make install PREFIX="+harness.Prefix:
		built, err := filepath.Glob("../../build/lib/gojail/*")
		require.NoError(t, err)
		for _, file := range built {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			path := c.Path(harness.Prefix + "/lib/gojail/" + filepath.Base(file))
			require.NoError(t, os.WriteFile(path+".new", text, 0o755))
			require.NoError(t, os.Rename(path+".new", path))
		}
	}
	if !strings.HasPrefix(command, "systemctl ") && !strings.HasPrefix(command, "make ") {
		r := c.Root("sh", "-c", command)
		require.Zero(t, r.Code, "%s: %v", command, r)
	}
}

// listFaults returns the lines of gojail check on n1 that are not OK, but those of the machine that the cluster is on.
func listFaults(c *harness.Cluster, machine []string) (lines []string) {
	for line := range strings.Lines(c.Gojail("n1", "check").Stdout) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "OK") && !slices.Contains(machine, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// withoutFlags removes the flags with which a remedy names a node of this cluster.
func withoutFlags(text string) string {
	return strings.ReplaceAll(text, "--state=/run/gojail/n1 --node=n1 ", "")
}

// requireMended makes each mistake, requires that gojail check names it, does what the line says, word for word, until no line is left, and
// requires that the job works. A mistake with which a job fails is not OK, whoever looks.
func requireMended(t *testing.T, c *harness.Cluster, mistakes []mistake) {
	machine := listFaults(c, nil)
	require.NotContains(t, strings.Join(machine, "\n"), "FAIL")
	require.Zero(t, c.Root("sh", "-c", "rm -rf /var/tmp/etc; mkdir /var/tmp/etc; cp -a /etc/slurm /etc/gojail /var/tmp/etc").Code)
	t.Cleanup(func() { // a slurmd without its plugin ends no job
		assert.True(t, c.WaitIdle())
		r := c.Gojail("n1", "sweep")
		assert.Zero(t, r.Code, r)
		requireOnlySpares(t, c)
	})
	places := strings.NewReplacer("JAIL", "/srv/jails/debian", "LIB", harness.Prefix+"/lib/gojail", "STACK", "/etc/slurm/plugstack.conf", "TOML", harness.ConfigPath,
		"CONF", "/etc/slurm/slurm.conf", "GRES", "/etc/slurm/gres.conf", "CGROUP", "/etc/slurm/cgroup.conf", "NETWORK", "/etc/gojail/network.toml")
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) { requireMendedOne(t, c, machine, m, places) })
	}
}

func requireMendedOne(t *testing.T, c *harness.Cluster, machine []string, m mistake, places *strings.Replacer) {
	conf := readFile(c, "/etc/slurm/slurm.conf")
	job := func(works bool) harness.Result {
		if now := readFile(c, "/etc/slurm/slurm.conf"); now != conf {
			c.Root("timeout", "5", "scontrol", "reconfigure")
		}
		c.Gojail("n1", "reload") // the next job is one after a boot
		limit := "20"
		if !works { // srun retries for long where munge or slurmctld does not answer
			limit = "8"
		}
		return c.Run(harness.Alice, "timeout", limit, "srun", "-Q", "-wn1", "-I10", "--jail=debian", "cat", "/etc/gojail-jail")
	}
	t.Cleanup(func() { // where the remedy does not
		c.Root("sh", "-c", "rm -rf /etc/slurm/* /etc/gojail/*; cp -a /var/tmp/etc/slurm /var/tmp/etc/gojail /etc/; "+places.Replace(m.undo))
		if strings.Contains(m.command, "CONF") {
			c.Root("scontrol", "reconfigure")
		}
		c.Gojail("n1", "reload")
		c.Resume("n1")
		assert.Empty(t, listFaults(c, machine), "undo")
	})
	require.True(t, c.WaitIdle(), "the job before, whose end Slurm would not learn") // without munge
	r := c.Root("sh", "-ec", places.Replace(m.command))
	require.Zero(t, r.Code, r)
	if !m.stopped {
		r = job(m.works)
		assert.Equal(t, m.works, r.Code == 0 && r.Stdout == "debian\n", r)
	}
	lines := listFaults(c, machine)
	assert.Contains(t, strings.Join(lines, "\n"), places.Replace(m.want))
	for i := 0; i < 6 && len(lines) > 0; i++ {
		command := places.Replace(m.hand)
		if command == "" || i > 0 {
			command = findRemedy(lines[0])
		}
		require.NotEmpty(t, command, "no remedy that can be carried out: %s", lines[0])
		carryOut(t, c, command)
		lines = listFaults(c, machine)
	}
	require.Empty(t, lines)
	waitForState(c, "n1") // the end of the first job may still drain it
	c.Resume("n1")
	if strings.Contains(m.command, "slurmctld") || strings.Contains(m.command, "slurmd") {
		require.True(t, c.WaitIdle())
	}
	r = job(true)
	if strings.Contains(r.Stderr, "Requested nodes are busy") { // the end of the first job has drained it only now
		waitForState(c, "n1")
		c.Resume("n1")
		r = job(true)
	}
	requireOutput(t, "debian", r)
}
