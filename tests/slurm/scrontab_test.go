// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// scrontab is a scrontab of alice's on a cluster: a line for each list of options, which prints its environment.
type scrontab struct {
	*harness.Cluster
	options [][]string
}

func (s *scrontab) nameOutput(i int) string { return fmt.Sprintf("/home/alice/scrontab.%d", i) }

// submit installs the lines. The jobs begin with the next minutes; slurmctld lets nobody change that.
func (s *scrontab) submit(t *testing.T) {
	t.Helper()
	text := ""
	for i, options := range s.options {
		text += "#SCRON -wn1 -n1 --open-mode=truncate --output=" + s.nameOutput(i) + " " + strings.Join(options, " ") + "\n* * * * * " + strings.Join(printEnviron, " ") + "\n"
	}
	r := s.Do(harness.Command{User: harness.Alice, Env: session, Stdin: text, Args: []string{"scrontab", "-"}})
	require.Zero(t, r.Code, r)
}

// collect waits until each line has run once, removes them, and returns their environments.
func (s *scrontab) collect(t *testing.T) (all []map[string]string) {
	t.Helper()
	for i := range s.options {
		var text string
		require.True(t, harness.Poll(4*harness.Timeout, func() bool {
			text, _ = s.ReadAnywhere(s.nameOutput(i))
			return strings.HasSuffix(text, "\x00")
		}), "%q: %s", text, s.Root("squeue", "--all"))
		all = append(all, parseEnviron(t, text))
	}
	require.Zero(t, s.Run(harness.Alice, "scrontab", "-r").Code)
	return all
}

// TestEnvironmentOfScrontab is TestEnvironment for lines of a real scrontab, which begin with the next minute.
func TestEnvironmentOfScrontab(t *testing.T) {
	if _, err := os.Stat("/usr/bin/scrontab"); err != nil && harness.Release() == "" {
		t.Skip("needs Slurm 24.11: the package of Debian 12 has no scrontab")
	}
	options := jailed
	options.Files = environFiles()
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	options.SlurmConf["ScronParameters"] = "enable"
	plain := &scrontab{harness.Start(t, options), [][]string{{}, {"--jail=debian"}}}
	options.SlurmConf = maps.Clone(options.SlurmConf)
	maps.Copy(options.SlurmConf, map[string]string{"JobSubmitPlugins": "gojail", "PluginDir": harness.PluginDirs(t)})
	cured := &scrontab{harness.Start(t, options), [][]string{{"--jail=debian"}, {"--jail=none"}}}
	plain.submit(t)
	cured.submit(t)
	onPlain, onCured := plain.collect(t), cured.collect(t)
	want := dropJobs(onPlain[0])
	require.Equal(t, "1", want["PROFILE"], "slurmd runs su")
	for _, name := range leftOut {
		delete(want, name)
	}
	requireSame(t, want, dropJobs(onPlain[1]), "su, --jail=debian")
	for i, got := range onCured {
		requireWithoutScripts(t, want, dropJobs(got), cured.options[i][0])
	}
}
