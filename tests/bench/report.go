// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report is all that a run of the bench found.
type report struct {
	Machine  string            `json:"machine"`
	Kernel   string            `json:"kernel"`
	Slurm    string            `json:"slurm"`
	Date     string            `json:"date"`
	Seed     uint64            `json:"seed"`
	Cgroup   string            `json:"cgroup"`
	Jobs     string            `json:"jobs"` // how Slurm keeps track of their processes
	Load     []string          `json:"load"` // before and after
	Seen     map[string]seen   `json:"seen"`
	Modes    []*measured       `json:"modes"`
	Memory   map[string]memory `json:"memory,omitempty"`
	Parts    []part            `json:"parts,omitempty"`
	Verdicts []judged          `json:"verdicts"`
}

func (s samples) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string][]*float64{
		"wall_ms": replaceNaN(s.Wall), "node_cpu_ms": replaceNaN(s.CPU), "srun_cpu_ms": replaceNaN(s.Srun)})
}

func (e estimate) MarshalJSON() ([]byte, error) {
	n := replaceNaN([]float64{e.Median, e.Low, e.High})
	return json.Marshal(map[string]any{"median": n[0], "low": n[1], "high": n[2], "n": e.N})
}

func replaceNaN(values []float64) []*float64 {
	list := make([]*float64, len(values))
	for i, v := range values {
		if !math.IsNaN(v) {
			list[i] = &v
		}
	}
	return list
}

// newReport returns a report with everything that is known before the first launch.
func newReport(s settings) *report {
	var uts unix.Utsname
	unix.Uname(&uts)
	model := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	version, _ := exec.Command("slurmd", "-V").Output()
	_, v2, _ := findHierarchy()
	return &report{
		Machine: fmt.Sprintf("%d CPUs, %s", runtime.NumCPU(), model),
		Kernel:  unix.ByteSliceToString(uts.Release[:]),
		Slurm:   strings.TrimSpace(string(version)),
		Date:    time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		Seed:    s.seed, Cgroup: map[bool]string{true: "v2 cpu.stat", false: "v1 cpuacct"}[v2],
		Jobs: map[bool]string{true: "proctrack/cgroup, task/cgroup", false: "proctrack/linuxproc"}[s.cgroups],
		Load: []string{readLoad()},
	}
}

// readLoad returns the machine's load average.
func readLoad() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// wasBusy reports whether other processes used at least a quarter of the machine before the bench began.
func (r *report) wasBusy() bool {
	var one float64
	fmt.Sscan(r.Load[0], &one)
	return one > float64(runtime.NumCPU())/4
}

// add adds the launches of one cluster.
func (r *report) add(more *measured) {
	i := slices.IndexFunc(r.Modes, func(m *measured) bool { return m.Mode == more.Mode })
	if i < 0 {
		r.Modes = append(r.Modes, more)
		return
	}
	m := r.Modes[i]
	m.Rounds, m.Seconds, m.Queued, m.Failed = m.Rounds+more.Rounds, m.Seconds+more.Seconds, m.Queued+more.Queued, append(m.Failed, more.Failed...)
	for name, s := range more.Samples {
		sum := m.Samples[name]
		sum.Wall, sum.CPU, sum.Srun = append(sum.Wall, s.Wall...), append(sum.CPU, s.CPU...), append(sum.Srun, s.Srun...)
	}
}

// print writes every table, with rows in the order of chosen.
func (r *report) print(w io.Writer, chosen []candidate, random *rand.Rand) {
	fmt.Fprintf(w, "\n# gojail bench: %s | kernel %s | %s | %s\n", r.Machine, r.Kernel, r.Slurm, r.Date)
	fmt.Fprintf(w, "# seed %d | node CPU: cgroup %s of the candidate, gojail's launcher, zygote and holders in it | load %s\n",
		r.Seed, r.Cgroup, strings.Join(r.Load, " -> "))
	fmt.Fprintf(w, "# user alice, %s, UsePAM=1, no PrologFlags; slurmd with HWLOC_PLUGINS_PATH=/nonexistent\n", r.Jobs)
	if r.wasBusy() {
		fmt.Fprintf(w, "# THE MACHINE WAS BUSY when this began: wall times say little\n")
	}
	fmt.Fprintf(w, "\n%-12s %-7s %6s %8s  %s\n", "candidate", "root", "mounts", "own /tmp", "what it is")
	for _, c := range chosen {
		s := r.Seen[c.name]
		own := ""
		if s.OwnTmp {
			own = "yes"
		}
		fmt.Fprintf(w, "%-12s %-7s %6d %8s  %s\n", c.name, s.Root, s.Mounts, own, c.about)
	}
	for _, m := range r.Modes {
		m.print(w, chosen, random)
	}
	r.printMemory(w, chosen)
	r.printParts(w)
	r.printVerdicts(w)
}

func (m *measured) print(w io.Writer, chosen []candidate, random *rand.Rand) {
	about := listModes()[slices.IndexFunc(listModes(), func(o mode) bool { return o.name == m.Mode })].about
	fmt.Fprintf(w, "\n## %s: %s\n# %d rounds, shuffled | %.0f s | load at the start %s | failed %d, queued %d\n",
		m.Mode, about, m.Rounds, m.Seconds, m.Load, len(m.Failed), m.Queued)
	for _, line := range m.Failed {
		fmt.Fprintf(w, "# failed: %s\n", line)
	}
	fmt.Fprintf(w, "%-12s %8s %7s %7s %27s %6s %9s %27s %8s\n", "`srun true`", "wall ms", "p10", "p90",
		"to plain (95% CI)", "ratio", "CPU ms", "to plain (95% CI)", "srun CPU")
	base := m.Samples["plain"]
	for _, c := range chosen {
		s := m.Samples[c.name]
		fmt.Fprintf(w, "%-12s %8.1f %7.1f %7.1f %27s %6.3f %9.2f %27s %8.1f\n", c.name,
			quantile(s.Wall, 0.5), quantile(s.Wall, 0.1), quantile(s.Wall, 0.9), comparePairs(s.Wall, base.Wall, random),
			medianRatio(s.Wall, base.Wall), quantile(s.CPU, 0.5), comparePairs(s.CPU, base.CPU, random), quantile(s.Srun, 0.5))
	}
}

func (e estimate) String() string {
	if e.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.2f (%+.2f..%+.2f)", e.Median, e.Low, e.High)
}

func (r *report) printMemory(w io.Writer, chosen []candidate) {
	if r.Memory == nil {
		return
	}
	fmt.Fprintf(w, "\n## memory while `srun sleep` runs, kB, median of %d\n", looks)
	fmt.Fprintf(w, "%-26s %8s %8s %8s %8s %14s %8s\n", "process", "VmRSS", "VmSize", "RssAnon", "Pss", "private c+d", "threads")
	row := func(name string, p process) {
		fmt.Fprintf(w, "%-26s %8.0f %8.0f %8.0f %8.0f %14.0f %8.0f\n", name, p.RSS, p.Size, p.Anon, p.PSS, p.Private, p.Threads)
	}
	for _, c := range chosen {
		row(c.name+" slurmstepd", r.Memory[c.name].Stepd)
	}
	for _, c := range chosen {
		row(c.name+" srun", r.Memory[c.name].Srun)
	}
	for _, c := range chosen {
		for _, name := range []string{"gojail-zygote", "gojail-holder"} {
			if p, found := r.Memory[c.name].Beside[name]; found {
				row(c.name+" "+name, p)
			}
		}
	}
}

func (r *report) printParts(w io.Writer) {
	if r.Parts == nil {
		return
	}
	fmt.Fprintf(w, "\n## parts of a launch, us, gojail's own code without Slurm (peers/micro.c)\n")
	fmt.Fprintf(w, "%-14s %9s %9s %6s  %s\n", "part", "median", "p90", "n", "what it is")
	for _, p := range r.Parts {
		fmt.Fprintf(w, "%-14s %9.0f %9.0f %6d  %s\n", p.Name, quantile(p.Samples, 0.5), quantile(p.Samples, 0.9), len(p.Samples), p.About)
	}
}

func (r *report) printVerdicts(w io.Writer) {
	fmt.Fprintf(w, "\n## aims: %s, %s, or %s: the median is beyond the aim, the 95%% CI is not\n", met, missed, unclear)
	fmt.Fprintf(w, "%-44s %28s  %-12s %s\n", "gojail", "paired median (95% CI)", "verdict", "aim")
	for _, v := range r.Verdicts {
		fmt.Fprintf(w, "%-44s %28s  %-12s %s\n", v.About, v.Figure, v.Verdict, v.Aim)
	}
}

// save writes the report with every sample.
func (r *report) save(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
