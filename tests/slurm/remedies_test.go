// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// remedies are the forms of the remedies of gojail check, and what a person does who reads them.
var remedies = []struct {
	form *regexp.Regexp
	do   func(found []string) string // a command of a shell
}{
	{regexp.MustCompile(`; run: (.+)$`), func(f []string) string { return strings.ReplaceAll(f[1], "; and ", " # ") }},
	{regexp.MustCompile(`replace it by a copy: (.+)$`), func(f []string) string { return f[1] }},
	{regexp.MustCompile(`; create them once, for all nodes: (gojail .*init \w+)$`), func(f []string) string { return f[1] }},
	{regexp.MustCompile(`; to apply this to the next jobs: (gojail .*reload \w+)$`), func(f []string) string { return f[1] }},
	{regexp.MustCompile(`; remove the # at the beginning of (\S+) line (\d+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s s/^#//' %s", f[2], f[1]) }},
	{regexp.MustCompile(`; replace (\S+) line (\d+) by: (.+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s c %s' %s", f[2], f[3], f[1]) }},
	{regexp.MustCompile(`; keep .+ line \d+, and remove (\S+) line (\d+)$`), func(f []string) string { return fmt.Sprintf("sed -i '%s d' %s", f[2], f[1]) }},
	{regexp.MustCompile(`; add this line to (\S+): (.+)$`), func(f []string) string { return fmt.Sprintf("echo '%s' >>%s", f[2], f[1]) }},
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

// TestRemedies makes a mistake, requires that gojail check names it where a user's job fails, does what the line says, word for word, until no line
// is left, and requires that the job works.
func TestRemedies(t *testing.T) {
	c := sharedCluster(t)
	const plugstack = "/etc/slurm/plugstack.conf"
	for name, mistake := range map[string]struct {
		command string // makes the mistake
		want    string // what check says, in part
		works   bool   // a job works all the same
	}{
		"a root that only root may enter":              {"chmod 700 /srv/jails/debian", "users may not enter it, only root may", false},
		"a root that only a group of root's may enter": {"chmod 750 /srv/jails/debian", "users may not enter it, only root may", false},
		"a shell below a closed directory":             {"chmod 700 /srv/jails/debian/usr/bin", "users may not execute /bin/sh of the jail", false},
		"a configuration that others may write":        {"chmod 666 /etc/gojail/gojail.toml", "is writable by others", false},
		"a user's configuration":                       {"chown alice /etc/gojail/gojail.toml", "belongs to uid 5001, a user", false},
		"a missing mount target":                       {"rmdir /srv/jails/debian/proc", "mount targets are missing", false},
		"a plugin of another path":                     {"sed -i 's|/[^ ]*/spank_gojail.so|/opt/gojail/spank_gojail.so|' " + plugstack, "does not exist: srun, sbatch and slurmd cannot start", false},
		"an optional plugin":                           {"sed -i 's/^required/optional/' " + plugstack, "is optional", true},
		"the line as a comment":                        {"sed -i 's/^required/#required/' " + plugstack, "jobs run outside their jail", false},
		"the line a second time":                       {"grep ^required " + plugstack + " >/tmp/again; cat /tmp/again >>" + plugstack + "; rm /tmp/again", "is named 2 times", false},
		"a file that users may not read":               {"chmod 600 " + plugstack, "users may not read " + plugstack, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(c.Path(plugstack))
			require.NoError(t, err)
			machine := listFaults(c, nil)
			require.NotContains(t, strings.Join(machine, "\n"), "FAIL")
			t.Cleanup(func() { // where the remedy does not
				os.WriteFile(c.Path(plugstack), before, 0o644)
				c.Root("sh", "-c", "chmod 644 "+plugstack+" /etc/gojail/gojail.toml; chown root:root /etc/gojail/gojail.toml; chmod 755 /srv/jails/debian /srv/jails/debian/usr/bin; "+
					"mkdir -p /srv/jails/debian/proc")
				c.Gojail("n1", "reload")
			})
			require.Zero(t, c.Root("sh", "-ec", mistake.command).Code)
			c.Gojail("n1", "reload") // the next job is one after a boot
			r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "cat", "/etc/gojail-jail")
			assert.Equal(t, mistake.works, r.Code == 0 && r.Stdout == "debian\n", r)
			assert.Contains(t, strings.Join(listFaults(c, machine), "\n"), mistake.want)
			for range 6 {
				lines := listFaults(c, machine)
				if len(lines) == 0 {
					break
				}
				command := findRemedy(lines[0])
				require.NotEmpty(t, command, "no remedy that can be carried out: %s", lines[0])
				r := c.Root("sh", "-c", command)
				require.Zero(t, r.Code, "%s: %s: %v", lines[0], command, r)
			}
			assert.Empty(t, listFaults(c, machine))
			requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "cat", "/etc/gojail-jail"))
		})
	}
}
