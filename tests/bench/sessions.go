// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/gojail/gojail/tests/harness"
)

// sessionRounds is the default number of rounds.
const sessionRounds = 100

// listSessionCandidates returns the ways of an ssh session; each has an sshd of its own, on port 2300 and the next ones. The others are
// compared with the first.
func listSessionCandidates() []candidate {
	return []candidate{
		{name: "sshd", about: "a session on the node"},
		{name: "sshd2", about: "the same once more (A/A)"},
		{name: "chroot", about: "sshd's ChrootDirectory: the jail's root, outside the job", jailed: true},
		{name: "gojail", about: "gojail-session as login shell and ForceCommand: the job's sandbox", jailed: true, gojail: true},
		{name: "login", about: "the same on a login node: the sandbox of the user's sessions", jailed: true, gojail: true},
	}
}

// formatSSHDLines returns what the sshd of a candidate has beside the common configuration.
func (c candidate) formatSSHDLines() string {
	switch c.name {
	case "chroot":
		return "ChrootDirectory " + jailRoot + "\n"
	case "gojail", "login":
		return "AcceptEnv SLURM_JOB_ID\nPermitUserRC no\nAllowStreamLocalForwarding no\nForceCommand " + harness.SessionProgram + "\n"
	}
	return ""
}

// carol has no job on n1, which is a login node, too.
const carol = "carol"

// sessionUser returns who logs in: the login shell of alice and carol is gojail-session, bob's is bash.
func (c candidate) sessionUser() string {
	switch c.name {
	case "gojail":
		return harness.Alice
	case "login":
		return carol
	}
	return harness.Bob
}

// formatSSH returns the command line of one session.
func (c candidate) formatSSH(port int, command string) []string {
	return []string{"ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR",
		"-p", fmt.Sprint(port), c.sessionUser() + "@localhost", command}
}

// loginTable is the table [login] of gojail.toml: the sandbox stays for all sessions.
const loginTable = "[login]\njail = \"" + jailsName + "\"\nnodes = [\"n1\"]\nlinger = \"2h\"\n"

// makeUsers is a script that makes carol, on the node and in the jail, and lets alice log in as bob and carol.
const makeUsers = `
usermod -s ` + harness.SessionProgram + ` alice
useradd -M -u 5003 -d /home/carol -s ` + harness.SessionProgram + ` carol
for root in "" ` + jailRoot + `; do
	mkdir -p $root/home/carol
	chown 5003:5003 $root/home/carol
done
for user in bob carol; do
	cat /etc/ssh/keys/alice >>/etc/ssh/keys/$user
done
`

// sessions is a private cluster with an sshd for each candidate, and a job of alice's on n1.
type sessions struct {
	*machine
	ports map[string]int
}

// startSessions starts the cluster, the job and every sshd in the order of chosen, each in the cgroup of its candidate.
func startSessions(chosen []candidate) (*sessions, error) {
	repo, err := harness.Repository()
	if err != nil {
		return nil, err
	}
	s := &sessions{&machine{repo: repo, chosen: chosen}, map[string]int{}}
	if s.groups, s.clean, err = makeGroups(s.chosen, false); err != nil {
		return nil, err
	}
	s.Cluster, err = harness.Up(harness.Options{Plugin: true, Jails: []string{jailsName}, Config: harness.DefaultConfig + loginTable,
		Files: map[string]string{"/etc/gojail/session.conf": "state=/run/gojail/%n\nnode=n1\n"}})
	if err != nil {
		s.clean()
		return nil, err
	}
	for _, step := range []func() error{s.makeParts, s.startStopwatch, s.PrepareSSH, s.startAllSSHD, s.startSandbox} {
		if err := step(); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

// makeParts compiles the stopwatch.
func (s *sessions) makeParts() error {
	if err := os.MkdirAll(s.Path(partsDir), 0o755); err != nil {
		return err
	}
	return s.compile("stopwatch", "peers/stopwatch.c")
}

// startAllSSHD makes the users and starts an sshd for each candidate.
func (s *sessions) startAllSSHD() error {
	r := s.Root("sh", "-euc", makeUsers)
	if r.Code != 0 {
		return fmt.Errorf("bench: accounts: %s", r)
	}
	for i, c := range s.chosen {
		s.ports[c.name] = 2300 + i
		enter := []string{"sh", "-c", "echo 0 >" + s.groups[c.name].path + "/slurmd/cgroup.procs && exec \"$@\"", "sh"}
		if err := s.StartSSHD(fmt.Sprint(s.ports[c.name]), c.formatSSHDLines(), enter...); err != nil {
			return err
		}
	}
	return nil
}

// startSandbox starts a job in the jail, and waits for its sandbox.
func (s *sessions) startSandbox() error {
	r := s.Run(harness.Alice, "sbatch", "-wn1", "--jail="+jailsName, "--output=/dev/null", "--wrap=exec sleep 1d")
	if r.Code != 0 {
		return fmt.Errorf("bench: sbatch: %s", r)
	}
	arrives := func() bool {
		return s.Run(harness.Alice, listSessionCandidates()[3].formatSSH(s.ports["gojail"], "true")...).Code == 0
	}
	if !harness.Poll(harness.Timeout, arrives) {
		return errors.New("bench: no session gets into the sandbox of the job")
	}
	return nil
}

// verify fails unless each candidate's session is where its description says.
func (s *sessions) verify() error {
	for _, c := range s.chosen {
		r := s.Run(harness.Alice, c.formatSSH(s.ports[c.name], "[ ! -e /etc/gojail-jail ] || cat /etc/gojail-jail")...)
		if strings.HasPrefix(r.Stdout, jailsName) != c.jailed || r.Code != 0 {
			return fmt.Errorf("bench: a session of %s is elsewhere: %s", c.name, r)
		}
	}
	return nil
}

// openSession makes one session, and records it. A session that fails is a NaN and a line in the report.
func (s *sessions) openSession(c candidate, result *measured) error {
	g := s.groups[c.name]
	before, err := g.waitUntilIdle(1)
	if err != nil {
		return err
	}
	r, err := s.watch.runCommand(c.formatSSH(s.ports[c.name], "true")...)
	if err != nil {
		return err
	}
	after, err := g.waitUntilIdle(1)
	if err != nil {
		return err
	}
	wall, cpu := milliseconds(r.wall), milliseconds(after-before)
	result.countFailure(c, r)
	if r.hasFailed() {
		wall, cpu = math.NaN(), math.NaN()
	}
	to := result.Samples[c.name]
	to.Wall, to.CPU, to.Srun = append(to.Wall, wall), append(to.CPU, cpu), append(to.Srun, milliseconds(r.cpu))
	return nil
}

// benchSessions measures ssh sessions: rounds of one session per candidate, in random order. Several clusters share the rounds, each with
// an order of its own: the sshd that is started first is faster than the next.
func benchSessions(ctx context.Context, s settings) error {
	if why := harness.Missing(); why != "" {
		return errors.New("bench: " + why)
	}
	if s.rounds == 0 {
		s.rounds = sessionRounds
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	report, result := newReport(s), &measured{Mode: "sessions", Rounds: s.rounds, Load: readLoad(), Samples: map[string]*samples{}}
	for _, c := range listSessionCandidates() {
		result.Samples[c.name] = &samples{}
	}
	for i := range s.clusters {
		if err := measureSessions(ctx, s.rounds*(i+1)/s.clusters-s.rounds*i/s.clusters, result, random); err != nil {
			return err
		}
	}
	report.Load = append(report.Load, readLoad())
	report.printSessions(os.Stdout, listSessionCandidates(), result, random)
	report.Modes = append(report.Modes, result)
	if s.file != "" {
		return report.save(s.file)
	}
	return nil
}

// measureSessions makes the sessions of some rounds in a cluster.
func measureSessions(ctx context.Context, rounds int, result *measured, random *rand.Rand) error {
	order := listSessionCandidates()
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	m, err := startSessions(order)
	if err != nil {
		return err
	}
	defer m.stop()
	if err := m.verify(); err != nil {
		return err
	}
	for range rounds {
		for _, i := range random.Perm(len(order)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := m.openSession(order[i], result); err != nil {
				return fmt.Errorf("bench: sessions, %s: %w", order[i].name, err)
			}
		}
	}
	return nil
}

func (r *report) printSessions(w io.Writer, chosen []candidate, result *measured, random *rand.Rand) {
	fmt.Fprintf(w, "\n# gojail bench: %s | kernel %s | %s | %s\n", r.Machine, r.Kernel, r.Slurm, r.Date)
	fmt.Fprintf(w, "\n## sessions: ssh localhost true\n# %d rounds, shuffled | load %s | failed %d\n", result.Rounds, strings.Join(r.Load, " -> "), len(result.Failed))
	if r.wasBusy() {
		fmt.Fprintf(w, "# THE MACHINE WAS BUSY when this began: wall times say little\n")
	}
	for _, line := range result.Failed {
		fmt.Fprintf(w, "# failed: %s\n", line)
	}
	fmt.Fprintf(w, "%-8s %8s %7s %7s %27s %9s %27s  %s\n", "", "wall ms", "p10", "p90", "to sshd (95% CI)", "CPU ms", "to sshd (95% CI)", "what it is")
	base := result.Samples["sshd"]
	for _, c := range chosen {
		s := result.Samples[c.name]
		fmt.Fprintf(w, "%-8s %8.1f %7.1f %7.1f %27s %9.2f %27s  %s\n", c.name, quantile(s.Wall, 0.5), quantile(s.Wall, 0.1), quantile(s.Wall, 0.9),
			comparePairs(s.Wall, base.Wall, random), quantile(s.CPU, 0.5), comparePairs(s.CPU, base.CPU, random), c.about)
	}
}
