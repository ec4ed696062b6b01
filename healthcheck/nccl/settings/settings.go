// SPDX-License-Identifier: Apache-2.0

// Package settings is the table [nccl] of health.toml.
//
// Only what the administrator writes there is judged by: there are no figures
// built in, as busbw depends on the network and on NCCL as much as on the GPUs.
// Errors are one line that names the key.
package settings

import (
	"errors"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/internal/hostlist"
)

// Settings is [nccl].
type Settings struct {
	User    string   `toml:"user"`   // account that the jobs run as
	Output  string   `toml:"output"` // directory for the jobs' output, which User can write, as a job sees it
	Here    string   `toml:"here"`   // the same directory as this machine sees it; "": the same path
	Command string   `toml:"command"`
	Args    []string `toml:"args"`  // more arguments of it
	MPI     string   `toml:"mpi"`   // srun --mpi; "": Slurm's standard. A pair needs an all_reduce_perf with MPI
	GPUs    int      `toml:"gpus"`  // of each node
	Tasks   int      `toml:"tasks"` // processes on each node, which share its GPUs

	Nodes       string   `toml:"nodes"` // only these, as Slurm writes lists; "": all of the partition
	Partition   string   `toml:"partition"`
	QOS         string   `toml:"qos"`
	Account     string   `toml:"account"`
	Reservation string   `toml:"reservation"`
	Gres        string   `toml:"gres"`    // "": gpu:GPUS; "none": not asked for
	Options     []string `toml:"options"` // more options of sbatch: "--jail=gpu", "--constraint=h100"

	Again    time.Duration `toml:"again"`    // a node that was tested is left alone for so long
	Time     time.Duration `toml:"time"`     // limit of one job
	Wait     time.Duration `toml:"wait"`     // a job that has not started by then is cancelled: the node has other work
	Poll     time.Duration `toml:"poll"`     // between two questions to the controller
	Parallel int           `toml:"parallel"` // jobs at once
	Pairs    bool          `toml:"pairs"`    // also test in pairs; without, no node is drained
	Drains   int           `toml:"drains"`   // nodes that one round drains at most
	Expect   []Expect      `toml:"expect"`
}

// Expect is one [[nccl.expect]]: the busbw that a healthy node, or pair of nodes, has.
type Expect struct {
	GPU   string  `toml:"gpu"`   // part of the model's name as the driver says it: "H100"
	GPUs  int     `toml:"gpus"`  // of each node
	Nodes int     `toml:"nodes"` // 1 or 2
	Size  string  `toml:"size"`  // of the message: "16G"
	BusBW float64 `toml:"busbw"` // GB/s, 10^9 bytes
}

// Defaults is what holds for keys that are not written.
func Defaults() Settings {
	return Settings{
		Command: "all_reduce_perf", GPUs: 8, Tasks: 1,
		Again: 20 * time.Hour, Time: 10 * time.Minute, Wait: 2 * time.Minute, Poll: 5 * time.Second,
		Parallel: 32, Pairs: true, Drains: 1,
	}
}

// Refusal makes the error for a key.
type Refusal func(key toml.Key, format string, args ...any) error

// Check refuses what cannot be meant, whether or not the tests are used here.
func (s *Settings) Check(refuse Refusal) error {
	at := func(key string) toml.Key { return toml.Key{"nccl", key} }
	for _, l := range []struct {
		key              string
		value, low, high time.Duration
	}{
		{"again", s.Again, 0, 90 * 24 * time.Hour},
		{"time", s.Time, time.Second, 24 * time.Hour},
		{"wait", s.Wait, time.Second, 24 * time.Hour},
		{"poll", s.Poll, 100 * time.Millisecond, time.Minute},
	} {
		if l.value < l.low || l.value > l.high {
			return refuse(at(l.key), "%v: write a time from \"%v\" to \"%v\"", l.value, l.low, l.high)
		}
	}
	for _, l := range []struct {
		key              string
		value, low, high int
	}{
		{"gpus", s.GPUs, 1, 64}, {"tasks", s.Tasks, 1, 64}, {"parallel", s.Parallel, 1, 1000}, {"drains", s.Drains, 0, 1000},
	} {
		if l.value < l.low || l.value > l.high {
			return refuse(at(l.key), "%d: write a number from %d to %d", l.value, l.low, l.high)
		}
	}
	if s.GPUs%s.Tasks != 0 {
		return refuse(at("tasks"), "%d processes cannot share %d GPUs evenly", s.Tasks, s.GPUs)
	}
	for _, p := range []struct{ key, path string }{{"output", s.Output}, {"here", s.Here}} {
		if p.path != "" && (p.path[0] != '/' || !plain(p.path)) {
			return refuse(at(p.key), "%.100q: write an absolute path of letters, digits and ._-/", p.path)
		}
	}
	if s.Nodes != "" {
		if _, err := hostlist.Parse(s.Nodes); err != nil {
			return refuse(at("nodes"), "%v", err)
		}
	}
	return s.checkExpect(refuse)
}

// plain keeps sbatch from reading a %j or the like in a path.
func plain(path string) bool {
	for _, r := range path {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' || r == '/') {
			return false
		}
	}
	return true
}

func (s *Settings) checkExpect(refuse Refusal) error {
	key := toml.Key{"nccl", "expect"}
	for i, e := range s.Expect {
		_, sizeErr := Bytes(e.Size)
		switch {
		case e.GPU == "":
			return refuse(key, "%d: gpu is missing: write a part of the model's name, as in \"H100\"", i+1)
		case e.GPUs < 1 || e.GPUs > 64:
			return refuse(key, "%d: gpus = %d: write how many GPUs each node has, from 1 to 64", i+1, e.GPUs)
		case e.Nodes != 1 && e.Nodes != 2:
			return refuse(key, "%d: nodes = %d: write 1 for a node alone, 2 for a pair", i+1, e.Nodes)
		case sizeErr != nil:
			return refuse(key, "%d: size = %.30q: %v", i+1, e.Size, sizeErr)
		case !(e.BusBW > 0 && e.BusBW < 1e6):
			return refuse(key, "%d: busbw = %v: write GB/s", i+1, e.BusBW)
		}
	}
	return nil
}

// Ready tells what is missing for tests to be submitted.
func (s *Settings) Ready() error {
	switch {
	case s.User == "":
		return errors.New("nccl.user is missing in health.toml: write the account that the jobs run as")
	case s.Output == "":
		return errors.New("nccl.output is missing in health.toml: write a directory that the nodes and this machine share, and that the account nccl.user can write")
	case len(s.Rows(1)) == 0:
		return errors.New("health.toml has no [[nccl.expect]] with nodes = 1 and gpus as in [nccl]: write the busbw of a healthy node")
	case s.Pairs && len(s.Rows(2)) == 0:
		return errors.New("health.toml has no [[nccl.expect]] with nodes = 2 and gpus as in [nccl]: write the busbw of two healthy nodes, or pairs = false")
	}
	return nil
}

// Rows is what is expected of a number of nodes.
func (s *Settings) Rows(nodes int) []Expect {
	var rows []Expect
	for _, e := range s.Expect {
		if e.Nodes == nodes && e.GPUs == s.GPUs {
			rows = append(rows, e)
		}
	}
	return rows
}
