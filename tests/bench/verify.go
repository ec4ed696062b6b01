// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/tests/harness"
)

// look is what a step of a candidate prints about what it sees.
const look = `cat /etc/gojail-jail 2>/dev/null || echo host
wc -l </proc/self/mountinfo
ls /tmp/bench-marker 2>/dev/null || echo none`

// seen is what a candidate was found to do.
type seen struct {
	Root   string `json:"root"`   // "host" or the jail's name
	Mounts int    `json:"mounts"` // in the step's mount namespace
	OwnTmp bool   `json:"own_tmp"`
}

// formatSrun returns the command line of a launch of that candidate.
func (c candidate) formatSrun(options []string, command ...string) []string {
	words := []string{"SLURM_CONF=" + c.confPath(), "srun", "-w", c.name}
	words = append(append(words, c.options...), options...)
	return append(append(words, c.wrapper...), command...)
}

// verify fails if a candidate does not do what its name says: its figures would be worthless.
func (m *machine) verify(ctx context.Context) (map[string]seen, error) {
	for _, dir := range []string{"/tmp", jailRoot + "/tmp"} {
		if err := os.WriteFile(m.Path(dir+"/bench-marker"), nil, 0o644); err != nil {
			return nil, err
		}
	}
	found := map[string]seen{}
	for _, c := range m.chosen {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := m.verifyOne(c)
		if err != nil {
			return nil, fmt.Errorf("bench: %s is not what it says (%s): %w", c.name, c.about, err)
		}
		found[c.name] = s
	}
	return found, nil
}

func (m *machine) verifyOne(c candidate) (seen, error) {
	var s seen
	r, err := m.watch.runCommand(c.formatSrun([]string{"-n1"}, "sh", "-c", strings.ReplaceAll(look, "\n", ";"))...)
	if err != nil {
		return s, err
	}
	lines := strings.Fields(r.stdout)
	if r.code != 0 || len(lines) != 3 {
		return s, fmt.Errorf("srun: %s\n%s", r, lastLines(m.Log(c.name), 10))
	}
	s.Root = lines[0]
	fmt.Sscan(lines[1], &s.Mounts)
	s.OwnTmp = lines[2] == "none"
	want := "host"
	if c.jailed {
		want = jailsName
	}
	if s.Root != want {
		return s, fmt.Errorf("the step's root is %q and should be %q", s.Root, want)
	}
	if s.OwnTmp != c.own {
		return s, fmt.Errorf("own /tmp: %v, should be %v", s.OwnTmp, c.own)
	}
	return s, m.verifyPlugin(c)
}

// verifyCounted fails if processes that leave Slurm's cgroups are not counted.
func (m *machine) verifyCounted(c candidate) error {
	var names []string
	for _, pid := range m.groups[c.name].listPids(false) {
		names = append(names, readProcessName(pid))
	}
	for _, name := range []string{"gojail-zygote", "gojail-holder"} {
		if c.own && !slices.Contains(names, name) {
			return fmt.Errorf("%s is not in the cgroup that is counted, which has %q beside slurmd", name, names)
		}
	}
	return nil
}

// verifyPlugin fails unless slurmstepd has loaded the candidate's plugin, and no other.
func (m *machine) verifyPlugin(c candidate) error {
	step, err := m.startStep(c, "0.5")
	if err != nil {
		return err
	}
	defer step.end()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", step.stepd))
	if err != nil {
		return err
	}
	var loaded []string
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		path := fields[len(fields)-1]
		ours := strings.HasPrefix(path, partsDir) || strings.Contains(path, "spank_gojail")
		if ours && (len(loaded) == 0 || loaded[len(loaded)-1] != path) {
			loaded = append(loaded, path)
		}
	}
	if strings.Join(loaded, " ") != c.pluginPath() {
		return fmt.Errorf("slurmstepd has the plugins %q and should have %q", loaded, c.pluginPath())
	}
	return m.verifyCounted(c)
}

// step is a running `srun sleep`, for a look at its processes.
type step struct {
	stepd int // pid, as this process sees it
	srun  int // pid, as the machine sees it
	end   func()
}

// startStep starts a step that sleeps, and returns once its task runs.
func (m *machine) startStep(c candidate, seconds string) (step, error) {
	words := c.formatSrun([]string{"-n1"}, "sleep", seconds)
	ctx, cancel := context.WithCancel(context.Background())
	srun := m.Exec(ctx, harness.Command{User: harness.Alice, Env: words[:1], Args: words[1:]})
	if err := srun.Start(); err != nil {
		cancel()
		return step{}, err
	}
	s := step{end: func() { srun.Wait(); cancel() }}
	task := false
	harness.Poll(5*time.Second, func() bool {
		for _, pid := range m.groups[c.name].listPids(true) {
			switch readProcessName(pid) {
			case "slurmstepd":
				s.stepd = pid
			case "sleep":
				task = true
			}
		}
		return task && s.stepd != 0
	})
	if !task || s.stepd == 0 {
		cancel()
		srun.Wait()
		return step{}, fmt.Errorf("no task started on %s within 5 s", c.name)
	}
	// A task is there a moment before slurmstepd has told srun of it.
	time.Sleep(100 * time.Millisecond)
	s.srun = m.findSrun(c)
	return s, nil
}

// findSrun finds srun itself, not the helper of the same name that it forks.
func (m *machine) findSrun(c candidate) int {
	var srun, threads int
	for _, p := range m.Find("srun -w " + c.name + " ") {
		var count int
		fmt.Sscan(p.Status["Threads"], &count)
		if p.Status["Name"] == "srun" && count > threads {
			srun, threads = p.Pid, count
		}
	}
	return srun
}

// readProcessName returns the name of a process, or "" if there is none.
func readProcessName(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(text))
}

// lastLines returns the last lines of a text.
func lastLines(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
