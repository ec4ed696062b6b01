// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a launch costs with gojail, against plain Slurm
// and against other ways to give a step another root.
//
// It starts private clusters (tests/harness), one after the other, that share the
// rounds. Each has a node, that is a slurmd, for every candidate of candidates.go, in
// an order of its own. A node differs from the others in its
// plugstack.conf alone; srun uses that node's configuration, so that the plugin
// is loaded on both sides. A round is one launch on every node in shuffled
// order; what is compared is the difference within a round, whose median is
// reported with a 95 % confidence interval (bootstrap). plain2 is a second plain
// node: how far it seems to be from plain is what the method cannot tell apart.
//
// Wall time is srun's, from spawn to exit. srun -n1 hides some 5 ms of what a
// task does after its fork, so the CPU time of the node counts as much: the
// cgroup of the candidate, which holds slurmd, slurmstepd, the task, and for
// gojail its launcher, zygote and holders too. These leave Slurm's cgroups for
// the root of the hierarchy; each slurmd lives in a mount namespace where that
// root is the candidate's own cgroup, and so nothing escapes the counter.
//
// slurmd has HWLOC_PLUGINS_PATH set: without it slurmstepd loads graphics
// libraries of the host, 3.5 ms a launch, and a candidate that hides them from
// slurmstepd seems faster than no plugin at all.
//
// Needs root, the packages that tests/deps.sh installs, bwrap, and make all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/tests/harness"
)

// settings are the command line.
type settings struct {
	rounds     int // in all clusters together
	clusters   int
	modes      []string
	only, of   string
	other      string // the repository of another version, built
	file       string
	seed       uint64
	repetition int
	cgroups    bool
}

func main() {
	var s settings
	var names string
	flag.IntVar(&s.rounds, "rounds", 0, "rounds of every mode (default 40)")
	flag.IntVar(&s.clusters, "clusters", 4, "clusters, one after the other, that share the rounds")
	flag.StringVar(&names, "mode", "first,job,later,batch,n64,memory,parts", "what to measure")
	flag.StringVar(&s.only, "only", "", "candidates to measure beside plain, parted by commas (default all)")
	flag.StringVar(&s.other, "other", "", "a repository with another version of gojail, built, that is measured as the candidate other")
	flag.StringVar(&s.of, "of", "", "isolation: what each part of a job's isolation costs; sessions: what an ssh session costs")
	flag.BoolVar(&s.cgroups, "cgroups", false, "Slurm keeps jobs in cgroups (proctrack/cgroup, task/cgroup), as on most sites")
	flag.StringVar(&s.file, "json", "", "write every sample to this file")
	flag.Uint64Var(&s.seed, "seed", 7, "of the order within the rounds and of the bootstrap")
	flag.IntVar(&s.repetition, "repetitions", 300, "of each part of a launch")
	flag.Parse()
	s.modes = strings.Split(names, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	run := runBench
	if s.of == "sessions" {
		run = benchSessions
	}
	err := run(ctx, s)
	stop()
	if errors.Is(err, context.Canceled) {
		err = errors.New("bench: interrupted; the cluster is gone, nothing is reported")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runBench runs the whole bench, and leaves only the report.
func runBench(ctx context.Context, s settings) error {
	for _, name := range s.modes {
		known := slices.ContainsFunc(listModes(), func(m mode) bool { return m.name == name })
		if !known && name != "memory" && name != "parts" {
			return fmt.Errorf("bench: there is no mode %q", name)
		}
	}
	if s.clusters < 1 {
		return fmt.Errorf("bench: -clusters %d: at least 1", s.clusters)
	}
	chosen, err := chooseCandidates(s.only, s.of, s.other)
	if err != nil {
		return err
	}
	if why := harness.Missing(); why != "" {
		return errors.New("bench: " + why)
	}
	begin := time.Now()
	say := func(what string) { fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(begin).Seconds(), what) }
	r := newReport(s)
	random := rand.New(rand.NewPCG(s.seed, 0))
	for i := range s.clusters {
		say(fmt.Sprintf("starting cluster %d of %d, of %d nodes", i+1, s.clusters, len(chosen)))
		if err := measureCluster(ctx, s, chosen, i, r, random, say); err != nil {
			return err
		}
	}
	r.Load = append(r.Load, readLoad())
	r.judgeAims(random)
	r.print(os.Stdout, chosen, random)
	if s.file != "" {
		return r.save(s.file)
	}
	return nil
}

// measureCluster runs the chosen measurements, with the number-th part of the rounds. The candidate that is
// started first is faster than the next, by 0.2 ms of 35: every cluster has an order of its own.
func measureCluster(ctx context.Context, s settings, chosen []candidate, number int, r *report, random *rand.Rand, say func(string)) error {
	order := slices.Clone(chosen)
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	m, err := startMachine(order, s.cgroups, s.other)
	if err != nil {
		return err
	}
	defer m.stop()
	say("looking whether each candidate does what it says")
	if r.Seen, err = m.verify(ctx); err != nil {
		return err
	}
	for _, of := range listModes() {
		if !slices.Contains(s.modes, of.name) {
			continue
		}
		rounds := of.rounds
		if s.rounds > 0 {
			rounds = s.rounds
		}
		rounds = rounds*(number+1)/s.clusters - rounds*number/s.clusters
		say(fmt.Sprintf("%s: %d rounds", of.name, rounds))
		result, err := m.measure(ctx, of, rounds, random)
		if err != nil {
			return err
		}
		r.add(result)
	}
	if number == 0 {
		return m.measureOnce(ctx, s, r, say)
	}
	return nil
}

// measureOnce makes the measurements without rounds.
func (m *machine) measureOnce(ctx context.Context, s settings, r *report, say func(string)) (err error) {
	if slices.Contains(s.modes, "memory") {
		say("memory")
		if r.Memory, err = m.measureMemory(ctx); err != nil {
			return err
		}
	}
	gojail := slices.ContainsFunc(m.chosen, func(c candidate) bool { return c.gojail })
	if slices.Contains(s.modes, "parts") && gojail {
		say("parts of a launch")
		r.Parts, err = m.measureParts(ctx, s.repetition)
	}
	return err
}
