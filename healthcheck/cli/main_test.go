// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/internal/nstest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		os.Exit(Execute()) // as the child of a test
	}
	exit := m.Run()
	os.RemoveAll(buildDir)
	os.Exit(exit)
}

// site is a configuration in a directory owned by root, with a scontrol that must not be
// called.
func site(t *testing.T, text string) (config, dir string) {
	if !nstest.IsRoot() {
		t.Skip("needs root: the files that it reads must be root's")
	}
	dir, err := os.MkdirTemp("/root", "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	config = filepath.Join(dir, "health.toml")
	text = strings.ReplaceAll("run = \"DIR/run\"\nstate = \"DIR/state\"\nsyslog = false\nmetrics = \"DIR/%n.prom\"\nslurm.scontrol = \"DIR/scontrol\"\n"+
		text, "DIR", dir)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\necho called >>"+dir+"/called\nexit 1\n"), 0o700))
	return config, dir
}

// call runs the command; its exit code is 3 if it returns a message.
func call(args ...string) (string, int, error) {
	cmd := newRootCommand(&node{})
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.Execute()
	var exit exitCode
	switch {
	case errors.As(err, &exit):
		return out.String(), int(exit), nil
	case err != nil:
		return out.String(), exitUnknown, err
	}
	return out.String(), 0, nil
}

// only returns the configuration with just these checks.
func only(names ...string) string {
	text := ""
	for _, check := range checks.All() {
		off := "true"
		for _, name := range names {
			if check.Name == name {
				off = "false"
			}
		}
		text += "[check." + check.Name + "]\noff = " + off + "\n"
	}
	return text
}

func TestAHealthyNode(t *testing.T) {
	config, dir := site(t, only("fs-mounted", "fs-write"))
	answer := "#!/bin/sh\necho called >>" + dir + "/called\necho 'NodeName=n1 Arch=x86_64 '\necho '   State=IDLE ThreadsPerCore=1'\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scontrol"), []byte(answer), 0o700))
	for range 3 { // a second and a third process, as far as the node's memory goes
		out, exit, err := call("--config", config, "--node", "n1")
		require.NoError(t, err)
		assert.Zero(t, exit, out)
		assert.True(t, strings.HasPrefix(out, "OK: 2 of 2 checks are good\nfs-mounted  ok"), out)
	}
	called, err := os.ReadFile(filepath.Join(dir, "called"))
	require.NoError(t, err)
	assert.Equal(t, "called\n", string(called), "once after a boot, for a drain whose record is lost")
	assert.FileExists(t, filepath.Join(dir, "n1.prom"))
	assert.NoFileExists(t, filepath.Join(dir, "state/nodes/n1/drain.json"))
}

func TestASickNodeWhoseControllerDoesNotAnswer(t *testing.T) {
	config, dir := site(t, "[[filesystem]]\npath = \"DIR/nothing\"\n"+only("fs-mounted"))
	out, exit, err := call("--config", config, "--node", "n1")
	require.NoError(t, err)
	assert.Equal(t, 2, exit)
	assert.Contains(t, out, "CRITICAL: 1 of 1 checks fails: fs-mounted\nfs-mounted  fail  "+dir+"/nothing is not mounted")
	assert.Contains(t, out, "error: Slurm was left unchanged: cannot show node n1: "+dir+"/scontrol: exit status 1; see: "+dir+"/scontrol ping\n")
	assert.FileExists(t, filepath.Join(dir, "called"))
}

func TestDryRunLeavesNothing(t *testing.T) {
	config, dir := site(t, "[[filesystem]]\npath = \"DIR/nothing\"\n"+only("fs-mounted"))
	_, exit, err := call("--config", config, "--node", "n1", "--dry-run")
	require.NoError(t, err)
	assert.Equal(t, 2, exit)
	assert.NoFileExists(t, filepath.Join(dir, "run/nodes/n1/history.json"))
	assert.NoFileExists(t, filepath.Join(dir, "n1.prom"))
}

// TestOnlyADryRunWritesNoLease: a run of the check of jails tells the store what the node uses.
func TestOnlyADryRunWritesNoLease(t *testing.T) {
	config, dir := site(t, "[jail]\nconfig = \"DIR/gojail.toml\"\nstate = \"DIR/jails\"\nlibdir = \"DIR\"\n"+only("jail"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "store"), 0o755))
	text := "default = \"a\"\nstore = \"" + dir + "/store\"\n[jail.a]\nroot = \"store:a\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gojail.toml"), []byte(text), 0o644))
	leases := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "store/.nodes/n1*.json"))
		require.NoError(t, err)
		return found
	}
	_, _, err := call("--config", config, "--node", "n1", "--dry-run")
	require.NoError(t, err)
	assert.Empty(t, leases())
	assert.NoDirExists(t, filepath.Join(dir, "store/.nodes"))
	_, _, err = call("--config", config, "--node", "n1")
	require.NoError(t, err)
	assert.Len(t, leases(), 1)
}

func TestJSON(t *testing.T) {
	config, _ := site(t, only("fs-mounted"))
	out, _, err := call("--config", config, "--node", "n1", "--json")
	require.NoError(t, err)
	var got struct {
		Node    string
		Exit    int
		Checks  []struct{ Check, Verdict string }
		Summary string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Equal(t, "n1", got.Node)
	assert.Equal(t, []struct{ Check, Verdict string }{{"fs-mounted", "ok"}}, got.Checks)
}

// With an invalid configuration no check runs, and Slurm is not changed.
func TestAWrongConfigurationIsUnknown(t *testing.T) {
	config, dir := site(t, "color = 1\n")
	_, exit, err := call("--config", config, "--node", "n1")
	assert.EqualError(t, err, config+": line 6: color: unknown key")
	assert.Equal(t, 3, exit)
	_, _, err = call("--config", dir+"/nothing.toml", "--node", "n1")
	assert.ErrorContains(t, err, "nothing.toml: cannot read the configuration of health checks: no such file")
	assert.NoFileExists(t, filepath.Join(dir, "called"))
}

// slurmd passes the node's name, and logs output only if something has changed.
func TestStartedBySlurmd(t *testing.T) {
	warn := strings.Replace(only("fs-mounted"), "[check.fs-mounted]\n", "[check.fs-mounted]\nseverity = \"warn\"\n", 1)
	config, dir := site(t, "[[filesystem]]\npath = \"DIR/nothing\"\n"+warn)
	t.Setenv("SLURMD_NODENAME", "n7")
	out, exit, err := call("--config", config)
	require.NoError(t, err)
	assert.Equal(t, 1, exit)
	assert.Equal(t, "WARNING: 1 of 1 checks warns: fs-mounted\n"+
		"fs-mounted: fail: "+dir+"/nothing is not mounted\n", out)
	assert.FileExists(t, filepath.Join(dir, "n7.prom"))
	out, exit, err = call("--config", config)
	require.NoError(t, err)
	assert.Zero(t, exit)
	assert.Empty(t, out)
}

func TestListAndExplain(t *testing.T) {
	config, _ := site(t, "[check.munge]\nseverity = \"warn\"\nbad = 7\n[check.xid]\noff = true\n")
	out, _, err := call("list", "--config", config)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^munge +warn +5s +7 +1 +whether munged`, out)
	assert.Regexp(t, `(?m)^xid +off +- `, out)
	for _, check := range checks.All() {
		out, _, err := call("explain", check.Name, "--config", config)
		require.NoError(t, err)
		assert.Contains(t, out, "What to do: "+check.Remedy)
	}
	for check, want := range map[string]string{
		"munge":      "Bad after 7 runs in a row, good again after 1 run. It does not drain the node: it is reported in the log, in metrics, and by exit code 1.",
		"xid":        "The check is switched off.",
		"disk":       "Bad after 2 runs in a row, good again after 2 runs in a row. A failure drains the node.",
		"edac":       "After a repair without a reboot, run: gojail-healthcheck forget edac.",
		"kernel-log": "Bad after 1 run, good again after 1 run. A failure drains the node.",
	} {
		out, _, err := call("explain", check, "--config", config)
		require.NoError(t, err)
		assert.Contains(t, out, want)
	}
	for _, command := range []string{"explain", "forget"} {
		_, _, err = call(command)
		assert.EqualError(t, err, command+" requires the name of a check; see: gojail-healthcheck list")
		_, _, err = call(command, "a", "b")
		assert.Error(t, err)
	}
	_, _, err = call("explain", "nothing")
	assert.ErrorContains(t, err, `no check "nothing"; the checks are: fs-mounted, `)
}

func TestForget(t *testing.T) {
	config, dir := site(t, "[[filesystem]]\npath = \"DIR/nothing\"\nany = true\n"+only("fs-mounted"))
	out, _, err := call("forget", "fs-mounted", "--config", config, "--node", "n1")
	require.NoError(t, err)
	assert.Equal(t, "no state of fs-mounted is stored on n1; if slurm.conf has another name for this node, pass it with --node\n", out)
	_, _, err = call("--config", config, "--node", "n1")
	require.NoError(t, err)
	out, _, err = call("forget", "fs-mounted", "--config", config, "--node", "n1")
	require.NoError(t, err)
	assert.Equal(t, "fs-mounted starts over with the next run\n", out)
	text, err := os.ReadFile(filepath.Join(dir, "run/nodes/n1/history.json"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"forgotten": `)
	_, exit, err := call("--config", config, "--node", "n1")
	require.NoError(t, err)
	assert.Zero(t, exit)
	_, _, err = call("forget", "nothing", "--config", config)
	assert.ErrorContains(t, err, `no check "nothing"; the checks are: fs-mounted, `)
}

// TestTwoNodesOfOneMachine: even without %n in the paths, each node has its own counts.
func TestTwoNodesOfOneMachine(t *testing.T) {
	config, dir := site(t, "[[override]]\nnodes = \"n1\"\n[[override.filesystem]]\npath = \"DIR/nothing\"\n"+only("fs-mounted"))
	for range 2 {
		_, exit, err := call("--config", config, "--node", "n1")
		require.NoError(t, err)
		assert.Equal(t, 2, exit)
		_, exit, err = call("--config", config, "--node", "n2")
		require.NoError(t, err)
		assert.Zero(t, exit)
	}
	text, err := os.ReadFile(filepath.Join(dir, "run/nodes/n1/history.json"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"verdict": "fail"`)
	_, _, err = call("--config", config, "--node", "../n1")
	assert.ErrorContains(t, err, `"../n1" is not a node name`)
}

// TestNodeInMetricsPaths: %n is the name of the node, or of the machine that tests others, in the paths of both files.
func TestNodeInMetricsPaths(t *testing.T) {
	path, dir := site(t, "[nccl]\nmetrics = \"DIR/nccl-%n.prom\"\n")
	n := &node{config: path, name: "n1"}
	c, err := n.loadConfig(&cobra.Command{})
	require.NoError(t, err)
	assert.Equal(t, []string{dir + "/n1.prom", dir + "/nccl-n1.prom"}, []string{c.Metrics, c.NCCL.Metrics})
}

// TestWhatAnEarlierVersionRemembers: history and record move to the node's own directory.
func TestWhatAnEarlierVersionRemembers(t *testing.T) {
	config, dir := site(t, only("fs-mounted"))
	const record = `{"id": "1", "check": "fs-mounted", "reason": "fs-mounted: x [node_problem] gojail (id 1)"}`
	for _, d := range []string{"run", "state"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state/drain.json"), []byte(record), 0o600))
	_, _, err := call("--config", config, "--node", "n1")
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(dir, "state/drain.json"))
	text, err := os.ReadFile(filepath.Join(dir, "state/nodes/n1/drain.json"))
	require.NoError(t, err)
	assert.Equal(t, record, string(text))
}
