// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/checks"
)

// candidate is a program that is measured.
type candidate struct {
	name, about string
	argv, env   []string
	why         string // reason why it is not measured
	wall, cpu   []float64
}

// bare is the environment that slurmd sets.
var bare = []string{"SLURMD_NODENAME=bench", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}

func (n *node) listCandidates(ctx context.Context, s settings) (list []*candidate, err error) {
	noop, err := n.buildCommand("./tests/bench/health/noop")
	if err != nil {
		return nil, err
	}
	binary, err := n.buildCommand("./healthcheck/cmd/gojail-healthcheck")
	if err != nil {
		return nil, err
	}
	gojail, err := n.newGojail(ctx, "gojail", binary, n.smi)
	if err != nil {
		return nil, err
	}
	slow, err := n.newGojail(ctx, "one slow", binary, n.slowSMI)
	if err != nil {
		return nil, err
	}
	if s.before != "" {
		before, err := n.newGojail(ctx, "before", s.before, n.smi)
		if err != nil {
			return nil, err
		}
		before.about = "the same with " + s.before
		list = append(list, before)
	}
	slow.about = fmt.Sprintf("gojail, with an nvidia-smi that takes %v", slowest)
	list = append(list, &candidate{name: "noop", about: "a Go program that does nothing", argv: []string{noop}, env: bare}, gojail, slow)
	return append(list, n.newNHC(ctx, s)...), nil
}

// twentyChecks are checks that any GPU node would have on.
var twentyChecks = []string{
	"fs-mounted", "fs-full", "fs-write", "memory", "limits", "stuck", "clock", "kernel-log", "daemons", "xid",
	"gpu-driver", "gpu-count", "gpu-lost", "gpu-recovery", "gpu-ecc", "gpu-rows", "gpu-nvlink", "gpu-fabric",
	"gpu-temperature", "nvidia-smi",
}

// newGojail writes a health.toml and verifies that each check is on and succeeds. Each
// candidate has its own state directory.
func (n *node) newGojail(ctx context.Context, name, binary, smi string) (*candidate, error) {
	config := filepath.Join(n.dir, name+".toml")
	text := fmt.Sprintf("run = %q\nstate = %q\nsyslog = false\nmetrics = %q\nslurm.scontrol = %q\n"+
		"[[filesystem]]\npath = \"/\"\nany = true\nfull = 100.0\nread_only = true\n[[filesystem]]\npath = %q\n"+
		"[memory]\ntotal = 1\n[clock]\nwarn = \"15s\"\n[daemons]\nprocesses = [%q]\n"+
		"[gpu]\ncount = %d\nlibrary = %q\nsmi = %q\n",
		filepath.Join(n.runDirectory(), name), filepath.Join(n.dir, "state", name), filepath.Join(n.runDirectory(), name+".prom"), n.dir+"/scontrol", n.scratch, readOwnName(), gpus, n.library, smi)
	for _, check := range checks.All() {
		if !slices.Contains(twentyChecks, check.Name) {
			text += fmt.Sprintf("[check.%s]\noff = true\n", check.Name)
		}
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c := &candidate{name: name, argv: []string{binary, "--config", config}, env: bare}
	cmd := exec.CommandContext(ctx, binary, "--config", config, "--json")
	cmd.Env = bare
	out, _ := cmd.Output()
	var seen struct {
		Checks []struct{ Check, Verdict, Text string }
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		return nil, fmt.Errorf("gojail-healthcheck: %w: %.300s", err, out)
	}
	var not []string
	for _, check := range seen.Checks {
		// What this machine does not have, or keep, is not for the bench to mend: a warning costs the same.
		if check.Verdict != "ok" && check.Verdict != "warn" {
			not = append(not, check.Check+": "+check.Verdict)
		}
	}
	c.about = fmt.Sprintf("gojail-healthcheck, %d checks, %d GPUs through NVML, nvidia-smi", len(seen.Checks), gpus)
	if len(not) > 0 {
		c.about += " (" + strings.Join(not, ", ") + ")"
	}
	if len(seen.Checks) != len(twentyChecks) {
		return nil, fmt.Errorf("%d checks are on and not %d: were some renamed?", len(seen.Checks), len(twentyChecks))
	}
	return c, nil
}

// readOwnName returns the name of this process, which both programs find as a daemon.
func readOwnName() string {
	name, _ := os.ReadFile("/proc/self/comm")
	return strings.TrimSpace(string(name))
}
