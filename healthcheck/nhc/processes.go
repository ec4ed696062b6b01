// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one row of "ps axo user,args".
type process struct {
	pid  string
	uid  uint32
	args string // "[kthreadd]" for a process without a command line
}

// listProcesses returns the processes, read once.
func (s *System) listProcesses(ctx context.Context) ([]process, error) {
	s.list.Do(func() { s.all, s.err = s.readProcesses(ctx) })
	return s.all, s.err
}

// readProcesses reads the processes. The command line is protected by a lock of its process,
// which a process stuck in the kernel may hold.
func (s *System) readProcesses(ctx context.Context) (all []process, err error) {
	entries, err := os.ReadDir(s.Proc)
	if err != nil {
		return nil, errors.New("cannot list processes")
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, errors.New("no time left to read all processes")
		}
		dir := filepath.Join(s.Proc, e.Name())
		var st unix.Stat_t
		text, err := readArgs(filepath.Join(dir, "cmdline"))
		if err != nil || unix.Lstat(dir, &st) != nil {
			continue // the process has ended
		}
		args := strings.TrimRight(strings.ReplaceAll(string(text), "\x00", " "), " ")
		if args == "" {
			comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
			args = "[" + strings.TrimSuffix(string(comm), "\n") + "]"
		}
		all = append(all, process{e.Name(), st.Uid, args})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s shows no processes", s.Proc)
	}
	return all, nil
}

// argsMost is the number of bytes read of a command line, which was the maximum that Linux
// showed up to 4.1.
const argsMost = 4096

// readArgs reads at most argsMost bytes: any user's process may have gigabytes there, which
// need not even be in its memory (PR_SET_MM_MAP, prctl(2)).
func readArgs(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, argsMost))
}

// wanted is a process that must run, or must not run.
type wanted struct {
	name   string
	is     func(args string) bool
	owner  *match // matches the account's name; nil: any
	not    bool   // whether the process must not run
	suffix string // " owned by root"
}

// checkProcess compares the processes with the assertion.
func (w *wanted) checkProcess(ctx context.Context, s *System) (string, error) {
	all, err := s.listProcesses(ctx)
	if err != nil {
		return "", err
	}
	owner := w.owner
	if owner != nil && owner.expr != nil { // a uid is replaced by its name
		number := strings.TrimPrefix(owner.text, "!")
		if name := s.resolveOwner(number); name != number {
			if owner, err = parseMatch(map[bool]string{true: "!"}[owner.not] + name); err != nil {
				return "", err
			}
		}
	}
	for _, p := range all {
		if !w.is(p.args) || owner != nil && !owner.matches(s.findAccount(p.uid)) {
			continue
		}
		if w.not {
			return w.name + w.suffix + " is running", nil
		}
		return "", nil
	}
	if w.not {
		return "", nil
	}
	return w.name + w.suffix + " is not running", nil
}

// parseService parses check_ps_service OPTIONS NAME. With -s, -k and -E the service must not
// run.
func parseService(l *Line, args []string) (assertion, error) {
	opts, rest, err := parseOptions(args, "0E:SVcd:e:fkm:rsu:v")
	w := &wanted{name: strings.Join(rest, " ")}
	program, pattern, full := w.name, "", false
	for _, o := range opts {
		switch o.letter {
		case '0':
			l.NonFatal = true
		case 'd':
			program = o.value
		case 'm':
			pattern = o.value
		case 'f':
			full = true
		case 'u':
			w.suffix = " owned by " + o.value
			if w.owner, err = parseMatch(o.value); err != nil {
				return nil, err
			}
		case 's', 'k', 'E':
			w.not = true
			l.noteChange(o.letter)
		case 'S', 'r', 'c', 'e':
			l.noteChange(o.letter)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case w.name == "":
		return nil, errors.New("a service is missing")
	case pattern == "":
		pattern = "*" + program
	}
	m, err := parseMatch(pattern)
	w.is = func(args string) bool {
		if !full {
			args, _, _ = strings.Cut(args, " ")
		}
		return m.matches(args)
	}
	return w.checkProcess, err
}

// parseDaemon parses check_ps_daemon COMMAND [OWNER [ARGS]], which matches a process whose
// command line contains the command anywhere.
func parseDaemon(_ *Line, args []string) (assertion, error) {
	w, err := parseNamed(args)
	if err == nil && len(args) > 1 && args[1] != "" { // the name of an owner, not a match string
		w.owner = &match{text: args[1], expr: regexp.MustCompile(`^` + regexp.QuoteMeta(args[1]) + `$`)}
	}
	return w.checkProcess, err
}

// parseBlacklist parses check_ps_blacklist, the opposite of check_ps_daemon; its OWNER is a
// match string.
func parseBlacklist(_ *Line, args []string) (assertion, error) {
	w, err := parseNamed(args)
	w.not = true
	if err == nil && len(args) > 1 && args[1] != "" {
		w.owner, err = parseMatch(args[1])
	}
	return w.checkProcess, err
}

// parseNamed parses COMMAND [OWNER [ARGS]].
func parseNamed(args []string) (*wanted, error) {
	w := &wanted{}
	if err := checkArguments(args, 1, 3); err != nil {
		return w, err
	}
	w.name = args[0]
	if len(args) == 3 && args[2] != "" {
		w.name += " " + args[2]
	}
	if len(args) > 1 && args[1] != "" {
		w.suffix = " owned by " + args[1]
	}
	expr, err := parseGlob(w.name, false)
	w.is = func(args string) bool { return expr.MatchString(args) }
	return w, err
}

// parseLoadAverage parses check_ps_loadavg [1M [5M [15M]]]: whole numbers below which the load
// must stay.
func parseLoadAverage(_ *Line, args []string) (assertion, error) {
	if err := checkArguments(args, 1, 3); err != nil {
		return nil, err
	}
	limit := make([]int, len(args))
	for i, text := range args {
		var err error
		if limit[i], err = strconv.Atoi(text); err != nil && text != "" {
			return nil, newRefusal(text, "a whole number")
		}
	}
	return func(_ context.Context, s *System) (string, error) {
		text, err := os.ReadFile(filepath.Join(s.Proc, "loadavg"))
		f := strings.Fields(string(text))
		if err != nil || len(f) < 3 {
			return "", errors.New("cannot read the load averages")
		}
		for i, minutes := range []string{"1", "5", "15"}[:len(args)] {
			load, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return "", errors.New("cannot parse the load averages")
			}
			if args[i] != "" && int(load) >= limit[i] {
				return fmt.Sprintf("the %s-minute load average is %d or more", minutes, limit[i]), nil
			}
		}
		return "", nil
	}, nil
}
