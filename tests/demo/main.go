// SPDX-License-Identifier: Apache-2.0

// Command demo shows gojail on a private Slurm: it prints what it does, each
// command and what the command printed, and ends everything again.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	refused bool   // the command is to fail
	goesOn  bool   // its job is still running in the next scene
	expects string // the command is repeated until it prints this
}

// config is what an administrator would write, but for the %n: two nodes share this machine.
const config = `default    = "none"               # the jail of a step that names none
allow_none = true                 # users may run on the node itself
scratch    = "/var/lib/gojail/%n" # holds each job's /tmp
store      = "/srv/jails"         # versions of jails, on storage that all nodes share

[slurm]
spool = "/var/spool/slurmd/%n"

[jail.debian]
root = "store:debian"             # the current version: a whole Linux tree
jail_root = ["self"]              # users may be root in it, and nobody outside
[[jail.debian.mounts]]
destination = "/home"             # homes are no part of a version
source = "/srv/home"
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

// long is a job that runs while the administrator switches.
const long = `#!/bin/bash
cat /etc/motd
until [ -e ~/switched ]; do sleep 0.1; done
cat /etc/motd
`

const longOutput = "/home/alice/long.out"

// sshPort is the port of the machine's sshd, and sshLines what an administrator adds to its configuration.
const (
	sshPort  = "22"
	sshLines = `AcceptEnv SLURM_JOB_ID
PermitUserRC no
AllowStreamLocalForwarding no
ForceCommand ` + harness.SessionProgram + "\n"
)

var scenes = []scene{
	{says: "The administrator has written this configuration for all nodes.",
		user: "root", args: []string{"cat", "/etc/gojail/gojail.toml"}},
	{says: "Once for all nodes: build a version of the jail, from an archive here, or from a container image,",
		user: "root", args: []string{"gojail", "jail", "build", "debian", "--from", "tar:" + archive}},
	{says: "and put it into use.",
		user: "root", args: []string{"gojail", "jail", "switch", "debian"}},
	{says: "On each node: could a launch fail?",
		user: "root", args: []string{"gojail", "check"}},
	{says: "A user's step without a jail runs on the node,",
		user: "alice", args: []string{"srun", "-N2", "sh", "-c", count}},
	{says: "and with --jail in the jail: other programs, libraries and files, on every node.",
		user: "alice", args: []string{"srun", "--jail=debian", "-N2", "sh", "-c", count}},
	{says: "So does a batch job. Its steps share a /tmp that nobody else sees.",
		user: "alice", args: []string{"sbatch", "--jail=debian", "--output=" + output}, stdin: script},
	{says: "The output file is in the jail's /home,",
		user: "root", args: []string{"cat", "/srv" + output}},
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
		user: "root", args: []string{"stat", "-c", "%U owns %n", "/srv/home/alice/mine"}},
	{says: "The configuration permits users to bring /data into the jail.",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-mount=/data/shared:/mnt:ro", "cat", "/mnt/measured.csv"}},
	{says: "Anything else is refused, and nothing runs. The line with \"gojail:\" says why; the others are Slurm's.",
		user: "alice", args: []string{"srun", "--jail=debian", "--jail-mount=/etc:/mnt", "echo", "this never runs"}, refused: true},
	{says: "Where the administrator has added these lines to sshd_config, and made gojail-session the login shell,",
		user: "root", args: []string{"tail", "-n4", "/etc/ssh/sshd-" + sshPort}},
	{says: "ssh to the node of a job lands in the job's sandbox,",
		user: "alice", args: []string{"salloc", "-Q", "-wn1", "sh", "-c", `srun --jail=debian sh -c "echo written by a step >/tmp/note"; ssh n1 "cat /tmp/note; ls /usr/bin | wc -l"`}},
	{says: "and without a job there is no way in.",
		user: "alice", args: []string{"ssh", "n1"}, refused: true},
	{says: "A job begins,",
		user: "alice", args: []string{"sbatch", "--jail=debian", "--output=" + longOutput}, stdin: long, goesOn: true},
	{says: "in the version that is current.",
		user: "root", args: []string{"cat", "/srv" + longOutput}, goesOn: true, expects: "as built\n"},
	{says: "Meanwhile, the administrator makes a new version of a changed copy,",
		user: "root", args: []string{"gojail", "jail", "edit", "debian", "--", "sh", "-c", "echo changed >/etc/motd"}, goesOn: true},
	{says: "and switches to it. It prints who has the previous version.",
		user: "root", args: []string{"gojail", "jail", "switch", "debian"}, goesOn: true},
	{says: "The next job has the new version,",
		user: "alice", args: []string{"srun", "--jail=debian", "cat", "/etc/motd"}, goesOn: true, expects: "changed\n"},
	{says: "which it can tell to the job that began before:",
		user: "alice", args: []string{"srun", "--jail=debian", "touch", "switched"}},
	{says: "the running job kept its version until it ended.",
		user: "root", args: []string{"cat", "/srv" + longOutput}, expects: "as built\nas built\n"},
	{says: "The way back is one command.",
		user: "root", args: []string{"gojail", "jail", "rollback", "debian"}},
	{says: "Both versions are there until nobody has them, and \"gojail jail gc\" removes one.",
		user: "root", args: []string{"gojail", "jail", "ls"}},
}

func main() {
	if why := harness.Missing(); why != "" {
		fmt.Fprintln(os.Stderr, "demo:", why)
		os.Exit(1)
	}
	fmt.Print("Starting a private Slurm: munged, slurmctld and the slurmd of two nodes, n1 and n2, with gojail in plugstack.conf.\n" +
		"(The nodes share this machine, so each gojail command below is given --node and --state, which a real node does not need.)\n")
	c, err := harness.Up(harness.Options{Plugin: true, Config: config,
		Files: map[string]string{"/data/shared/measured.csv": "1,2,3\n", "/tmp/of-the-node": "",
			"/etc/gojail/session.conf": "state=/run/gojail/%n\nnode=n1\n", "/home/alice/.ssh/config": "StrictHostKeyChecking no\nLogLevel ERROR\n"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := errors.Join(prepare(c), startSSHD(c)); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, c.Stop()))
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

// archive is the tree of the jail, as mmdebstrap or "docker export" writes one.
const archive = "/srv/debian.tar"

// prepare writes what a site has before it installs gojail: the archive, and homes on shared storage.
func prepare(c *harness.Cluster) error {
	repository, err := harness.Repository()
	if err != nil {
		return err
	}
	tree, err := os.MkdirTemp(c.Path("/srv"), "tree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	script := `cp -a "$1/." "$2" && echo as built >"$2/etc/motd" && tar -cf "$3" -C "$2" . && cp -a "$2/home" "$4"`
	out, err := exec.Command("sh", "-c", script, "sh", filepath.Join(repository, "build/cache/jail"), tree, c.Path(archive), c.Path("/srv/home")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("prepare the site: %w: %s", err, out)
	}
	return nil
}

// prepareAccounts makes gojail-session alice's login shell, and follows docs/sessions.md in the files that gojail check reads.
const prepareAccounts = `usermod -s ` + harness.SessionProgram + ` alice
sed -i 's/ user_readenv=1//' /etc/pam.d/sshd
ln -s sshd-` + sshPort + ` /etc/ssh/sshd_config`

// startSSHD starts the sshd of node n1.
func startSSHD(c *harness.Cluster) error {
	if err := c.PrepareSSH(); err != nil {
		return err
	}
	if r := c.Root("sh", "-euc", prepareAccounts); r.Code != 0 {
		return fmt.Errorf("demo: %s", r)
	}
	return c.StartSSHD(sshPort, sshLines)
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
		var r harness.Result
		played := harness.Poll(harness.Timeout, func() bool {
			r = runScene(c, s)
			return s.expects == "" || r.Stdout == s.expects
		})
		printScene("    ", shortenList(r.Stdout+r.Stderr))
		if r.Stdout+r.Stderr == "" {
			fmt.Println("    (prints nothing)")
		}
		if !played || s.refused != (r.Code != 0) {
			fmt.Printf("    ^ this was not expected (exit status %d)\n", r.Code)
			surprises++
		}
		if s.goesOn {
			continue
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
	const most = 18
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
