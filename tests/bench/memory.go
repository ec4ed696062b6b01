// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// process is what one process has, in kB and threads (proc(5), smaps_rollup).
type process struct {
	RSS     float64 `json:"rss_kb"`
	Anon    float64 `json:"rss_anon_kb"`
	PSS     float64 `json:"pss_kb"`
	Private float64 `json:"private_kb"` // clean and dirty
	Size    float64 `json:"size_kb"`    // of its address space, all of which mlockall(2) counts (slurm.conf(5), slurmstepd_memlock_all)
	Threads float64 `json:"threads"`
}

// memory is a candidate's processes while `srun sleep` runs: medians of some looks.
type memory struct {
	Stepd  process            `json:"slurmstepd"`
	Srun   process            `json:"srun"`
	Beside map[string]process `json:"beside,omitempty"` // gojail's zygote and holder
}

const looks = 5

// measureMemory measures the memory of every candidate in turn, several times.
func (m *machine) measureMemory(ctx context.Context) (map[string]memory, error) {
	stepd, srun := map[string][]process{}, map[string][]process{}
	beside := map[string]map[string][]process{}
	for range looks {
		for _, c := range m.chosen {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			step, err := m.startStep(c, "0.5")
			if err != nil {
				return nil, fmt.Errorf("bench: memory of %s: %w", c.name, err)
			}
			stepd[c.name] = append(stepd[c.name], readProcess(fmt.Sprintf("/proc/%d", step.stepd)))
			srun[c.name] = append(srun[c.name], readProcess(m.Path(fmt.Sprintf("/proc/%d", step.srun))))
			if beside[c.name] == nil {
				beside[c.name] = map[string][]process{}
			}
			for _, pid := range m.groups[c.name].listPids(false) {
				name := readProcessName(pid)
				beside[c.name][name] = append(beside[c.name][name], readProcess(fmt.Sprintf("/proc/%d", pid)))
			}
			step.end()
			if err := m.waitForNoJob(c); err != nil {
				return nil, err
			}
		}
	}
	all := map[string]memory{}
	for _, c := range m.chosen {
		one := memory{Stepd: findMedian(stepd[c.name]), Srun: findMedian(srun[c.name]), Beside: map[string]process{}}
		for name, list := range beside[c.name] {
			one.Beside[name] = findMedian(list)
		}
		all[c.name] = one
	}
	return all, nil
}

func readProcess(dir string) process {
	status, rollup := readFields(dir+"/status"), readFields(dir+"/smaps_rollup")
	return process{
		RSS: status["VmRSS"], Anon: status["RssAnon"], Size: status["VmSize"], Threads: status["Threads"],
		PSS: rollup["Pss"], Private: rollup["Private_Clean"] + rollup["Private_Dirty"],
	}
}

// readFields reads "Name: NUMBER unit" lines.
func readFields(file string) map[string]float64 {
	values := map[string]float64{}
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		var number float64
		if n, _ := fmt.Sscan(value, &number); n == 1 {
			values[key] = number
		}
	}
	return values
}

func findMedian(list []process) process {
	of := func(field func(process) float64) float64 {
		var values []float64
		for _, p := range list {
			values = append(values, field(p))
		}
		return quantile(values, 0.5)
	}
	return process{
		RSS:     of(func(p process) float64 { return p.RSS }),
		Anon:    of(func(p process) float64 { return p.Anon }),
		PSS:     of(func(p process) float64 { return p.PSS }),
		Private: of(func(p process) float64 { return p.Private }),
		Size:    of(func(p process) float64 { return p.Size }),
		Threads: of(func(p process) float64 { return p.Threads }),
	}
}
