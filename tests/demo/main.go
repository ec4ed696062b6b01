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

	"github.com/gojail/gojail/tests/cluster"
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
const config = `default    = "none"
allow_none = true
scratch    = "/var/lib/gojail/%n"
deadline   = "10s"

[slurm]
spool = "/var/spool/slurmd/%n"

[jail.debian]
root = "/srv/jails/debian"
[[jail.debian.user_mounts]]
source = "/data"
`

const output = "/home/alice/job.out"

// gojail is a command line for node n1; a real node needs neither option.
func gojail(args ...string) []string {
	return append([]string{"gojail", "--node=n1", "--state=/run/gojail/%n"}, args...)
}

var scenes = []scene{
	{says: "The administrator makes the mount targets of the jail, once for all nodes.",
		user: "root", args: gojail("init", "debian")},
	{says: "The administrator asks whether a launch could fail on this node.",
		user: "root", args: gojail("check")},
	{says: "Without a jail a step sees the node: this file is not there.",
		user: "alice", args: []string{"srun", "cat", "/etc/gojail-jail"}, refused: true},
	{says: "With --jail the whole root is the jail's, on every node.",
		user: "alice", args: []string{"srun", "-Q", "--jail=debian", "-N2", "sh", "-c", `echo "$SLURMD_NODENAME: jail $(cat /etc/gojail-jail), Debian $(cat /etc/debian_version)"`}},
	{says: "A batch job runs in it as well, with a private /tmp that its steps share.",
		user: "alice", args: []string{"sbatch", "--wait", "--jail=debian", "--output=" + output},
		stdin: "#!/bin/bash\necho \"batch script in $(cat /etc/gojail-jail)\"\nsrun sh -c 'echo from a step >/tmp/shared'\ncat /tmp/shared\n"},
	{says: "Its output file is in the jail,",
		user: "root", args: []string{"cat", "/srv/jails/debian" + output}},
	{says: "not on the node.",
		user: "root", args: []string{"ls", output}, refused: true},
	{says: "The job's /tmp is gone with the job, and was never the node's.",
		user: "root", args: []string{"ls", "-A", "/tmp", "/var/lib/gojail/n1/jobs"}},
	{says: "The site permits to mount /data and what is below it.",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-mount=/data/shared:/mnt:ro", "ls", "-l", "/mnt"}},
	{says: "Anything else is refused, in one line, and nothing runs.",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-mount=/etc:/mnt", "echo", "this never runs"}, refused: true},
}

func main() {
	if why := cluster.Missing(); why != "" {
		fmt.Fprintln(os.Stderr, "demo:", why)
		os.Exit(1)
	}
	fmt.Println("Starting a private Slurm: munged, slurmctld, two slurmd, with gojail in plugstack.conf.")
	c, err := cluster.Up(cluster.Options{Plugin: true, Jails: []string{"debian"}, Config: config, Bare: true,
		Files: map[string]string{"/data/shared/measured.csv": "1,2,3\n"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	played := make(chan int, 1)
	go func() { played <- play(c) }()
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
	fmt.Println("\nThe private Slurm is stopped; nothing of it is left.")
	if surprises > 0 {
		os.Exit(1)
	}
}

// play runs the scenes and returns how many went otherwise than expected.
func play(c *cluster.Cluster) (surprises int) {
	for _, s := range scenes {
		fmt.Printf("\n%s\n  %s$ %s\n", s.says, s.user, quoted(s.args))
		show("  | ", s.stdin)
		r := c.Do(cluster.Command{User: s.user, Args: s.args, Stdin: s.stdin})
		show("    ", r.Stdout+r.Stderr)
		if r.Code != 0 {
			fmt.Printf("    (exit status %d)\n", r.Code)
		}
		if s.refused != (r.Code != 0) {
			fmt.Println("    ^ this was not expected")
			surprises++
		}
	}
	return surprises
}

func show(indent, text string) {
	for line := range strings.Lines(text) {
		fmt.Print(indent, strings.TrimSuffix(line, "\n"), "\n")
	}
}

// quoted prints a command line so that a shell would read it as it is.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if strings.ContainsAny(arg, " $\"") {
			words[i] = "'" + arg + "'"
		}
	}
	return strings.Join(words, " ")
}
