// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/tests/harness"
)

// part is a part of a launch that peers/micro.c times.
type part struct {
	Name    string    `json:"name"`
	About   string    `json:"about"`
	Samples []float64 `json:"us"`
}

// parts in the order of the report, by the names that micro.c prints.
var parts = []part{
	{Name: "lookup", About: "site file read, jail found: the most that a step without a jail does"},
	{Name: "template", About: "template built: launcher, Go, stage and jail, zygote ready"},
	{Name: "build", About: "first step right after another job's: sandbox built by the zygote, its namespaces in hand"},
	{Name: "spare", About: "first step: the same where a sandbox was begun beforehand"},
	{Name: "join", About: "later step: sandbox found, its namespaces in hand"},
	{Name: "stage_open", About: "the job's stage entered"},
	{Name: "stage_close", About: "stage left"},
	{Name: "end", About: "job_epilog where /tmp is empty: sandbox torn down, a spare directory made"},
	{Name: "epilog", About: "job_epilog's launcher, where /tmp is not: the same by Go"},
	{Name: "fork", About: "floor: fork, exit, wait"},
	{Name: "setns", About: "floor, and what each task does: setns to the sandbox's namespaces"},
	{Name: "confine", About: "what each task does: capabilities, no_new_privs, seccomp"},
	{Name: "mkdir", About: "floor: the job's two directories made on node disk (part of the first step)"},
	{Name: "unshare", About: "floor: unshare(CLONE_NEWNS) of as many mounts"},
}

// listMicroSources returns the files of gojail that micro.c measures, for compile.
func listMicroSources(repo string) []string {
	list := []string{"-I", filepath.Join(repo, "include"), "-I", filepath.Join(repo, "spank"), "peers/micro.c"}
	common, _ := filepath.Glob(filepath.Join(repo, "spank", "common", "*.c"))
	list = append(list, common...)
	for _, file := range []string{"epilog", "end_event", "first_node", "stage_window"} {
		list = append(list, filepath.Join(repo, "spank", "plugin", file+".c"))
	}
	return list
}

// measureParts runs micro.c in the machine, in a mount namespace of its own as
// slurmd's is, with a state directory of its own; scratch is that of gojail's node.
func (m *machine) measureParts(ctx context.Context, repetitions int) ([]part, error) {
	if err := m.compile("micro", listMicroSources(m.repo)...); err != nil {
		return nil, err
	}
	const state, node = "/run/gojail/micro", "gojail"
	for _, dir := range []string{state, "/var/spool/slurmd/" + node} {
		if err := os.MkdirAll(m.Path(dir), 0o755); err != nil {
			return nil, err
		}
	}
	micro := m.Exec(ctx, harness.Command{Args: []string{"unshare", "--mount", "--propagation", "private",
		partsDir + "/micro", harness.Prefix + "/lib/gojail", harness.ConfigPath, state,
		node, jailsName, strconv.Itoa(repetitions)}})
	var stderr strings.Builder
	micro.Stderr = &stderr
	stdout, err := micro.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("bench: peers/micro.c: %w: %s", err, stderr.String())
	}
	found := map[string][]float64{}
	for line := range strings.Lines(string(stdout)) {
		words := strings.Fields(line)
		for _, word := range words[1:] {
			us, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, fmt.Errorf("bench: peers/micro.c printed %q: %w", word, err)
			}
			found[words[0]] = append(found[words[0]], us)
		}
	}
	list := make([]part, len(parts))
	for i, p := range parts {
		p.Samples = found[p.Name]
		list[i] = p
	}
	return list, nil
}
