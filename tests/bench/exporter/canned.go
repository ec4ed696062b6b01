// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// testdata has what the commands of each release printed on a private cluster.
const testdata = "internal/slurm/testdata"

// writeCommands makes the directory of commands that print what those of a release would on a large cluster.
func writeCommands(dir, release string, nodes, jobs int) error {
	files := map[string]string{"squeue.txt": makeJobs(nodes, jobs)}
	for _, name := range []string{"ping.txt", "version.txt"} {
		text, err := os.ReadFile(filepath.Join(testdata, release, name))
		if err != nil {
			return err
		}
		files[name] = string(text)
	}
	var err error
	if files["nodes.txt"], err = scaleText(release, nodes); err != nil {
		return err
	}
	if files["nodes.json"], err = scaleJSON(release, nodes); err != nil {
		return err
	}
	if files["sdiag.txt"], err = scaleDiagText(release); err != nil {
		return err
	}
	if files["sdiag.json"], err = scaleDiagJSON(release); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"scontrol": "case \"$*\" in\n--version) exec cat version.txt;;\nping) exec cat ping.txt;;\n*--json=*) exec cat nodes.json;;\nesac\nexec cat nodes.txt",
		// Each row begins with the mark that the format begins with.
		"squeue": "for a; do case $a in --format=*) m=${a#--format=};; esac; done\nexec sed \"s/^@/${m%%\x1f*}/\" squeue.txt",
		"sdiag":  "case \"$*\" in\n*--json=*) exec cat sdiag.json;;\nesac\nexec cat sdiag.txt",
	} {
		files[name] = "#!/bin/sh\ncd " + dir + "\n" + text + "\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// nameNode returns the name and the partitions of a node, and why it is drained: one of 50 is.
func nameNode(i int) (name, partitions, reason string) {
	partitions = fmt.Sprintf("main,group%d", i%10)
	if i%50 == 0 {
		reason = fmt.Sprintf("gojail-healthcheck: disk %d is full", i)
	}
	return fmt.Sprintf("gpu%05d", i), partitions, reason
}

// scaleText returns the record of the first node in testdata, once for each node.
func scaleText(release string, nodes int) (string, error) {
	text, err := os.ReadFile(filepath.Join(testdata, release, "nodes.txt"))
	if err != nil {
		return "", err
	}
	record, _, _ := strings.Cut(string(text), "\n\n")
	var all strings.Builder
	for i := range nodes {
		name, partitions, reason := nameNode(i)
		state := "MIXED"
		if reason != "" {
			state, reason = "MIXED+DRAIN", "\n   Reason="+reason+" [root@2026-11-25T12:00:00]"
		}
		all.WriteString(strings.NewReplacer("n1", name, "main,hid,off", partitions, "MIXED+MAINTENANCE+RESERVED", state).Replace(record) + reason + "\n\n")
	}
	return all.String(), nil
}

// scaleJSON returns the first node in testdata, once for each node, in the form that Slurm gives it.
func scaleJSON(release string, nodes int) (string, error) {
	text, err := os.ReadFile(filepath.Join(testdata, release, "nodes.json"))
	if err != nil {
		return "", err
	}
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		return "", err
	}
	var all []any
	for i := range nodes {
		one := map[string]any{}
		for key, value := range page["nodes"].([]any)[0].(map[string]any) {
			one[key] = value
		}
		name, partitions, reason := nameNode(i)
		one["name"], one["hostname"], one["partitions"], one["state"] = name, name, strings.Split(partitions, ","), []string{"MIXED"}
		if reason != "" {
			one["reason"], one["reason_set_by_user"], one["state"] = reason, "root", []string{"MIXED", "DRAIN"}
			one["reason_changed_at"] = map[string]any{"set": true, "infinite": false, "number": 1.7e9}
		}
		all = append(all, one)
	}
	page["nodes"] = all
	text, err = json.MarshalIndent(page, "", "  ")
	return string(text), err
}

// makeJobs returns lines of squeue: a fifth runs, some on several nodes, a fifth ended, and the others wait.
func makeJobs(nodes, jobs int) string {
	reasons := []string{"Priority", "Resources", "Dependency", "QOSMaxJobsPerUserLimit", "ReqNodeNotAvail, UnavailableNodes:gpu[00000-00100]"}
	var all strings.Builder
	write := func(form string, values ...any) {
		all.WriteString("@\x1f" + strings.ReplaceAll(fmt.Sprintf(form, values...), "|", "\x1f"))
	}
	for i := range jobs {
		partition := fmt.Sprintf("group%d", i%10)
		first := i % (nodes - 16)
		switch {
		case i%50 == 0:
			write("RUNNING|main|gpu[%05d-%05d]|N/A|None\n", first, first+15)
		case i%5 == 0:
			write("RUNNING|%s|gpu%05d|N/A|None\n", partition, first)
		case i%5 == 1:
			write("COMPLETED|%s|gpu%05d|%d|None\n", partition, first, i%1000)
		default:
			write("PENDING|%s,main||%d-%d%%10|%s\n", partition, i%7, i%7+20, reasons[i%len(reasons)])
		}
	}
	return all.String()
}
