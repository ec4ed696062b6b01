// SPDX-License-Identifier: Apache-2.0

// Package settings implements the table [nccl] of health.toml.
//
// Nodes are judged only by the figures that the administrator writes there: there are no
// built-in figures, since busbw depends on the network and on NCCL as much as on the GPUs. Each
// error is one line that names the key.
package settings

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/internal/hostlist"
)

// Settings is [nccl].
type Settings struct {
	User    string   `toml:"user"`   // account that the jobs run as
	Output  string   `toml:"output"` // directory for the jobs' output, as a job sees it; User can write it
	Here    string   `toml:"here"`   // the same directory as this machine sees it; "": the same path
	Command string   `toml:"command"`
	Args    []string `toml:"args"`  // further arguments of Command
	MPI     string   `toml:"mpi"`   // srun --mpi; "": Slurm's default. A pair needs an all_reduce_perf with MPI
	GPUs    int      `toml:"gpus"`  // per node
	Tasks   int      `toml:"tasks"` // processes per node, which share its GPUs

	Nodes       string   `toml:"nodes"` // only these nodes, as a Slurm node list; "": all nodes of the partition
	Partition   string   `toml:"partition"`
	QOS         string   `toml:"qos"`
	Account     string   `toml:"account"`
	Reservation string   `toml:"reservation"`
	Gres        string   `toml:"gres"`    // "": gpu:GPUS; "none": no --gres
	Options     []string `toml:"options"` // further options of sbatch: "--jail=gpu", "--constraint=h100"

	Again time.Duration `toml:"again"` // time after which a node is tested again
	Time  time.Duration `toml:"time"`  // time limit of one job
	// time after which a job that has not started is cancelled: the node runs other jobs
	Wait     time.Duration `toml:"wait"`
	Poll     time.Duration `toml:"poll"`     // interval between two queries of the controller
	Parallel int           `toml:"parallel"` // jobs at once
	Pairs    bool          `toml:"pairs"`    // also test in pairs; without pairs, no node is drained
	Drains   int           `toml:"drains"`   // maximum number of nodes that one round drains
	Metrics  string        `toml:"metrics"`  // file of node_exporter's textfile collector on this machine; "": none
	Expect   []Expect      `toml:"expect"`
}

// Expect is one [[nccl.expect]]: the busbw of a healthy node or pair of nodes.
type Expect struct {
	GPU   string  `toml:"gpu"`   // part of the model's name as reported by the driver: "H100"
	GPUs  int     `toml:"gpus"`  // per node
	Nodes int     `toml:"nodes"` // 1 or 2
	Size  string  `toml:"size"`  // size of the message: "16G"
	BusBW float64 `toml:"busbw"` // GB/s, 10^9 bytes
}

// Defaults returns the values of absent keys.
func Defaults() Settings {
	return Settings{
		Command: "all_reduce_perf", GPUs: 8, Tasks: 1,
		Again: 20 * time.Hour, Time: 10 * time.Minute, Wait: 2 * time.Minute, Poll: 5 * time.Second,
		Parallel: 32, Pairs: true, Drains: 1,
	}
}

// Refusal returns the error for an invalid key.
type Refusal func(key toml.Key, format string, args ...any) error

// Check returns an error for invalid values, even if the tests are not used on this machine.
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
		{"gpus", s.GPUs, 1, 64}, {"tasks", s.Tasks, 1, 64}, {"parallel", s.Parallel, 1, 1000},
		{"drains", s.Drains, 0, 1000},
	} {
		if l.value < l.low || l.value > l.high {
			return refuse(at(l.key), "%d: write a number from %d to %d", l.value, l.low, l.high)
		}
	}
	if s.Metrics != "" && (!filepath.IsAbs(s.Metrics) || !strings.HasSuffix(s.Metrics, ".prom")) {
		return refuse(at("metrics"),
			"%q: write an absolute path that ends in .prom, for the textfile collector of node_exporter", s.Metrics)
	}
	if s.GPUs%s.Tasks != 0 {
		return refuse(at("tasks"), "%d processes cannot share %d GPUs evenly", s.Tasks, s.GPUs)
	}
	for _, p := range []struct{ key, path string }{{"output", s.Output}, {"here", s.Here}} {
		if p.path != "" && (p.path[0] != '/' || !isPlainPath(p.path)) {
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

// isPlainPath reports whether sbatch would use a path unchanged, without expanding %j or the
// like.
func isPlainPath(path string) bool {
	for _, r := range path {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' ||
			r == '/') {
			return false
		}
	}
	return true
}

func (s *Settings) checkExpect(refuse Refusal) error {
	key := toml.Key{"nccl", "expect"}
	for i, e := range s.Expect {
		_, sizeErr := ParseBytes(e.Size)
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

// CheckReady returns an error for the first setting that is missing for submitting tests.
func (s *Settings) CheckReady() error {
	switch {
	case s.User == "":
		return errors.New("nccl.user is missing in health.toml: write the account that the jobs run as")
	case s.Output == "":
		return errors.New("nccl.output is missing in health.toml: write a directory shared by the nodes and this " +
			"machine that the account nccl.user can write")
	case len(s.ListExpected(1)) == 0:
		return errors.New("health.toml has no [[nccl.expect]] with nodes = 1 and the gpus of [nccl]: write the busbw " +
			"of a healthy node")
	case s.Pairs && len(s.ListExpected(2)) == 0:
		return errors.New("health.toml has no [[nccl.expect]] with nodes = 2 and gpus as in [nccl]: write the busbw " +
			"of two healthy nodes, or pairs = false")
	}
	return nil
}

// ListExpected returns the expected figures for a number of nodes.
func (s *Settings) ListExpected(nodes int) []Expect {
	var rows []Expect
	for _, e := range s.Expect {
		if e.Nodes == nodes && e.GPUs == s.GPUs {
			rows = append(rows, e)
		}
	}
	return rows
}

// ParseBytes parses a size as nccl-tests does: K, M and G are powers of 1024.
func ParseBytes(size string) (int64, error) {
	digits, unit := size, int64(1)
	for i, letter := range []string{"K", "M", "G"} {
		if d, found := strings.CutSuffix(strings.ToUpper(size), letter); found {
			digits, unit = d, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 || n*unit > 1<<40 {
		return 0, errors.New(`write bytes as in "512M" or "16G"`)
	}
	return n * unit, nil
}
