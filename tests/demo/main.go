// SPDX-License-Identifier: Apache-2.0

// Command demo shows gojail on a private Slurm: it prints what it does, each
// command and what the command printed, and ends everything again.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gojail/gojail/tests/harness"
)

// scene is one command of the demo and what it is expected to do.
type scene struct {
	says    string
	user    string
	args    []string
	stdin   string
	refused bool // the command is to fail
}

// config is what an administrator would write, but for the %n: two nodes share this machine.
const config = `default    = "none"               # the jail of a step that names none
allow_none = true                 # users may run on the node itself
scratch    = "/var/lib/gojail/%n" # holds each job's /tmp

[slurm]
spool = "/var/spool/slurmd/%n"

[jail.debian]
root = "/srv/jails/debian"        # a whole Linux tree, shared by all nodes
jail_root = ["self"]              # users may be root in it, and nobody outside
[[jail.debian.user_mounts]]
source = "/data"                  # what --jail-mount may bring in
`

// count tells node and jail apart: the jail is a small Debian, with no compiler.
const count = `echo "$SLURMD_NODENAME: $(ls /usr/bin | wc -l) programs, compiler: $(command -v gcc || echo none)"`

const script = `#!/bin/bash
echo "the script runs in the jail $(cat /etc/gojail-jail)"
srun sh -c 'echo written by a step >/tmp/shared'
cat /tmp/shared
`

const output = "/home/alice/job.out"

var scenes = []scene{
	{says: "The administrator has written this configuration for all nodes.",
		user: "root", args: []string{"cat", "/etc/gojail/gojail.toml"}},
	{says: "Once per jail: make the mount targets that it lacks.",
		user: "root", args: []string{"gojail", "init", "debian"}},
	{says: "On each node: could a launch fail?",
		user: "root", args: []string{"gojail", "check"}},
	{says: "A user's step without a jail runs on the node,",
		user: "alice", args: []string{"srun", "-N2", "sh", "-c", count}},
	{says: "and with --jail in the jail: other programs, libraries and files, on every node.",
		user: "alice", args: []string{"srun", "--jail=debian", "-N2", "sh", "-c", count}},
	{says: "So does a batch job. Its steps share a /tmp that nobody else sees.",
		user: "alice", args: []string{"sbatch", "--jail=debian", "--output=" + output}, stdin: script},
	{says: "The output file is inside the jail,",
		user: "root", args: []string{"cat", "/srv/jails/debian" + output}},
	{says: "and not on the node.",
		user: "root", args: []string{"ls", output}, refused: true},
	{says: "The job's /tmp ended with the job: the next job's is empty,",
		user: "alice", args: []string{"srun", "--jail=debian", "ls", "-A", "/tmp"}},
	{says: "and the node's own has what it had.",
		user: "root", args: []string{"ls", "-A", "/tmp"}},
	{says: "A job sees its own processes only, by numbers of its own, on a node that runs many,",
		user: "alice", args: []string{"srun", "--jail=debian", "sh", "-c", "cd /proc; echo processes: [0-9]*; echo shared memory segments: $(($(wc -l <sysvipc/shm) - 1))"}},
	{says: "can be root there, where the site allows it, and is nobody outside:",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-root", "sh", "-c", "id -un; touch ~/mine; stat -c '%U owns %n' ~/mine; cat /etc/shadow"}, refused: true},
	{says: "the file that root made there is alice's.",
		user: "root", args: []string{"stat", "-c", "%U owns %n", "/srv/jails/debian/home/alice/mine"}},
	{says: "The configuration permits users to bring /data into the jail.",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-mount=/data/shared:/mnt:ro", "cat", "/mnt/measured.csv"}},
	{says: "Anything else is refused, and nothing runs. The line with \"gojail:\" says why; the others are Slurm's.",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-mount=/etc:/mnt", "echo", "this never runs"}, refused: true},
}

func main() {
	if why := harness.Missing(); why != "" {
		fmt.Fprintln(os.Stderr, "demo:", why)
		os.Exit(1)
	}
	fmt.Print("Starting a private Slurm: munged, slurmctld and the slurmd of two nodes, n1 and n2, with gojail in plugstack.conf.\n" +
		"(The nodes share this machine, so each gojail command below is given --node and --state, which a real node does not need.)\n")
	c, err := harness.Up(harness.Options{Plugin: true, Jails: []string{"debian"}, Config: config, Bare: true,
		Files: map[string]string{"/data/shared/measured.csv": "1,2,3\n", "/tmp/of-the-node": ""}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	played := make(chan int, 1)
	go func() { played <- playScenes(c) }()
	surprises := 1
	select {
	case surprises = <-played:
	case <-interrupted:
		fmt.Println("\ninterrupted")
	}
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		surprises++
	}
	fmt.Println("\nThe private Slurm is stopped; nothing of it is left. To try things yourself: make cluster")
	if surprises > 0 {
		os.Exit(1)
	}
}

// playScenes runs the scenes and returns the number of unexpected results.
func playScenes(c *harness.Cluster) (surprises int) {
	for _, s := range scenes {
		prompt := map[string]string{"root": "root@n1# ", "alice": "alice$ "}[s.user]
		line := prompt + quoteForShell(s.args)
		if s.stdin != "" {
			line += " <<'END'\n" + s.stdin + "END"
		}
		fmt.Println("\n" + s.says)
		printScene("  ", line)
		r := runScene(c, s)
		printScene("    ", shortenList(r.Stdout+r.Stderr))
		if r.Stdout+r.Stderr == "" {
			fmt.Println("    (prints nothing)")
		}
		if s.refused != (r.Code != 0) {
			fmt.Printf("    ^ this was not expected (exit status %d)\n", r.Code)
			surprises++
		}
		harness.Poll(harness.Timeout, func() bool { // a batch job goes on by itself
			return c.Root("squeue", "-h").Stdout == "" && c.WaitIdle()
		})
	}
	return surprises
}

// runScene runs the command of a scene, gojail's on node n1.
func runScene(c *harness.Cluster, s scene) harness.Result {
	if s.args[0] == "gojail" {
		return c.Gojail("n1", s.args[1:]...)
	}
	return c.Do(harness.Command{User: s.user, Args: s.args, Stdin: s.stdin})
}

// shortenList returns the text without the middle of a long list.
func shortenList(text string) string {
	const most = 14
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:4], "") + fmt.Sprintf("... (%d more lines)\n", len(lines)-5)
}

func printScene(indent, text string) {
	for line := range strings.Lines(text) {
		fmt.Print(indent, strings.TrimSuffix(line, "\n"), "\n")
	}
}

// quoteForShell returns a command line with quotes, so that a shell reads the same arguments.
func quoteForShell(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if strings.ContainsAny(arg, " $\"") {
			words[i] = "'" + arg + "'"
		}
	}
	return strings.Join(words, " ")
}
