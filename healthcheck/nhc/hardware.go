// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/procfs"
)

// parseCPUInfo parses check_hw_cpuinfo [SOCKETS [CORES [THREADS]]], evaluated with
// /proc/cpuinfo.
func parseCPUInfo(_ *Line, args []string) (assertion, error) {
	if err := checkArguments(args, 0, 3); err != nil {
		return nil, err
	}
	want := [3]int{-1, -1, -1}
	for i, text := range args {
		var err error
		if text != "" {
			want[i], err = strconv.Atoi(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%.30q: write a whole number", text)
		}
	}
	return func(_ context.Context, s *System) (string, error) {
		has, err := s.readCPUs()
		if err != nil {
			return "", err
		}
		for i, what := range []string{"CPU sockets", "CPU cores", "CPU threads"} {
			if want[i] >= 0 && has[i] != want[i] {
				return fmt.Sprintf("the node has %d %s instead of %d", has[i], what, want[i]), nil
			}
		}
		return "", nil
	}, nil
}

// readCPUs returns the number of sockets, cores and threads of the node. All sockets are
// assumed to be equal.
func (s *System) readCPUs() (has [3]int, err error) {
	text, err := os.ReadFile(filepath.Join(s.Proc, "cpuinfo"))
	if err != nil {
		return has, errors.New("cannot read cpuinfo")
	}
	processors, cores, siblings, sockets := 0, 0, 0, map[string]bool{}
	for row := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(row, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			processors++
		case "physical id":
			sockets[value] = true
		case "cpu cores":
			cores, _ = strconv.Atoi(value)
		case "siblings":
			siblings, _ = strconv.Atoi(value)
		}
	}
	switch {
	case processors == 0:
		return has, errors.New("cannot parse cpuinfo")
	case len(sockets) == 0: // not all architectures report it
		return [3]int{processors, processors, processors}, nil
	case cores == 0 || siblings == 0:
		return has, errors.New("cannot parse cpuinfo")
	}
	return [3]int{len(sockets), len(sockets) * cores, len(sockets) * siblings}, nil
}

// readMeminfo returns the sum of keys of /proc/meminfo, in kB.
func (s *System) readMeminfo(keys []string) (sum int64, err error) {
	has, err := procfs.ReadMeminfo(s.Proc)
	if err != nil {
		return 0, errors.New("cannot read meminfo")
	}
	for _, key := range keys {
		n, known := has[key]
		if !known {
			return 0, fmt.Errorf("meminfo has no %s", key)
		}
		sum += n
	}
	return sum, nil
}

// newMemoryTotalParser returns the parser of check_hw_mem and similar checks: MIN MAX [FUDGE],
// the last one a size or a percentage of the actual value.
func newMemoryTotalParser(keys ...string) func(*Line, []string) (assertion, error) {
	return func(_ *Line, args []string) (assertion, error) {
		if err := checkArguments(args, 2, 3); err != nil {
			return nil, err
		}
		low, err := parseSize(args[0])
		high, err2 := parseSize(args[1])
		var fudge bound
		var err3 error
		if len(args) == 3 {
			fudge, err3 = parseBound(args[2], false)
		}
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, err
		}
		return func(_ context.Context, s *System) (string, error) {
			has, err := s.readMeminfo(keys)
			if err != nil {
				return "", err
			}
			slack := fudge.n
			if fudge.percent {
				slack = fudge.n * has / 100
			}
			switch {
			case has+slack < low:
				return fmt.Sprintf("%s is less than %s", strings.Join(keys, "+"), args[0]), nil
			case has-slack > high:
				return fmt.Sprintf("%s is more than %s", strings.Join(keys, "+"), args[1]), nil
			}
			return "", nil
		}, nil
	}
}

// newMemoryFreeParser returns the parser of check_hw_mem_free and similar checks: MIN.
func newMemoryFreeParser(keys ...string) func(*Line, []string) (assertion, error) {
	return func(_ *Line, args []string) (assertion, error) {
		if err := checkArguments(args, 1, 1); err != nil {
			return nil, err
		}
		low, err := parseSize(args[0])
		return func(_ context.Context, s *System) (string, error) {
			has, err := s.readMeminfo(keys)
			if err != nil {
				return "", err
			}
			if has < low {
				return fmt.Sprintf("%s is less than %s", strings.Join(keys, "+"), args[0]), nil
			}
			return "", nil
		}, err
	}
}

// parseEthernet parses check_hw_eth DEVICE.
func parseEthernet(_ *Line, args []string) (assertion, error) {
	if err := checkArguments(args, 1, 1); err != nil {
		return nil, err
	}
	return func(_ context.Context, s *System) (string, error) {
		found, err := s.hasInterface(args[0])
		if err == nil && !found && s.Jobs != nil {
			found, err = s.Jobs.HaveInterface(args[0], func() bool { back, _ := s.hasInterface(args[0]); return back })
		}
		if err != nil || found {
			return "", err
		}
		return fmt.Sprintf("network device %s does not exist", args[0]), nil
	}, nil
}

// hasInterface reports whether the node's own network namespace has an interface.
func (s *System) hasInterface(name string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(s.Proc, "net/dev"))
	if err != nil {
		return false, errors.New("cannot list the network devices")
	}
	for row := range strings.Lines(string(text)) {
		if own, _, found := strings.Cut(row, ":"); found && strings.TrimSpace(own) == name {
			return true, nil
		}
	}
	return false, nil
}

// parseInfiniBand parses check_hw_ib [RATE [DEVICE:PORT]]: at least one port is up with exactly
// that rate, in Gbit/s. The named device of a VF need not be up while it is a job's.
func parseInfiniBand(_ *Line, args []string) (assertion, error) {
	if err := checkArguments(args, 0, 2); err != nil {
		return nil, err
	}
	args = append(args, "", "")
	rate, port := args[0], args[1]
	device, _, _ := strings.Cut(port, ":")
	return func(_ context.Context, s *System) (string, error) {
		if abi := s.readSysWord("class/infiniband_mad/abi_version", 0); abi == "" || abi == "0" {
			return "the kernel's InfiniBand management (ib_umad) is not loaded", nil
		}
		if slices.ContainsFunc(s.findPorts(port), func(dir string) bool {
			return s.isUp(dir) && (rate == "" || s.readSysWord(dir+"/rate", 0) == rate)
		}) {
			return "", nil
		}
		if device != "" && s.Jobs != nil {
			if has, err := s.isPortOfJob(device, port); has || err != nil {
				return "", err
			}
		}
		return strings.TrimSpace(fmt.Sprintf("no InfiniBand port is up with rate %s %s", rate, port)), nil
	}, nil
}

// findPorts returns the directories of the ports of RDMA devices, below Sys: of all, or of the
// one that is named "mlx5_0" or "mlx5_0:1".
func (s *System) findPorts(want string) (dirs []string) {
	all, _ := filepath.Glob(filepath.Join(s.Sys, "class/infiniband/*/ports/*"))
	for _, dir := range all {
		name := filepath.Base(filepath.Dir(filepath.Dir(dir)))
		dir, _ = filepath.Rel(s.Sys, dir)
		if want == "" || want == name || want == name+":"+filepath.Base(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// isUp reports whether the port with this directory is up.
func (s *System) isUp(dir string) bool {
	return s.readSysWord(dir+"/state", 1) == "ACTIVE" && s.readSysWord(dir+"/phys_state", 1) == "LinkUp"
}

// isPortOfJob reports whether a job has the RDMA device of a port, or the port is there and down
// because a job has its VF, or will get it.
func (s *System) isPortOfJob(device, port string) (bool, error) {
	exists := func() bool {
		_, err := os.Lstat(filepath.Join(s.Sys, "class/infiniband", filepath.Base(device)))
		return err == nil
	}
	if !exists() {
		return s.Jobs.HaveRDMA(device, exists)
	}
	ports := s.findPorts(port)
	return len(ports) > 0 && !slices.ContainsFunc(ports, s.isUp) && s.Jobs.LeaveDown(device), nil
}

// deviceFile matches the path of an interface or an RDMA device below /sys, or of a file in it.
var deviceFile = regexp.MustCompile(`/(net|infiniband)/([^/]+)(?:/|$)`)

// isOfJob reports whether a file is missing because it is of a network interface or an RDMA
// device that a job has.
func (s *System) isOfJob(file string) (bool, error) {
	below, isSys := strings.CutPrefix(filepath.Clean(file), filepath.Clean(s.Sys))
	m := deviceFile.FindStringSubmatch(below)
	exists := func() bool { _, err := os.Lstat(file); return !errors.Is(err, fs.ErrNotExist) }
	switch {
	case s.Jobs == nil || !isSys || m == nil || exists():
		return false, nil
	case m[1] == "net":
		return s.Jobs.HaveInterface(m[2], exists)
	}
	return s.Jobs.HaveRDMA(m[2], exists)
}

// readSysWord returns one word of a file in /sys, or "".
func (s *System) readSysWord(path string, which int) string {
	text, _ := os.ReadFile(filepath.Join(s.Sys, path))
	if f := strings.Fields(string(text)); len(f) > which {
		return f[which]
	}
	return ""
}
