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
	args string // "[kthreadd]" where there is no command line
}

// processes lists them, once.
func (s *System) processes(ctx context.Context) ([]process, error) {
	s.list.Do(func() { s.all, s.err = s.readProcesses(ctx) })
	return s.all, s.err
}

// readProcesses: a command line is behind a lock of its process, which one that is
// stuck in the kernel may hold.
func (s *System) readProcesses(ctx context.Context) (all []process, err error) {
	entries, err := os.ReadDir(s.Proc)
	if err != nil {
		return nil, errors.New("processes cannot be listed")
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, errors.New("there was no time for all processes")
		}
		dir := filepath.Join(s.Proc, e.Name())
		var st unix.Stat_t
		text, err := readArgs(filepath.Join(dir, "cmdline"))
		if err != nil || unix.Lstat(dir, &st) != nil {
			continue // it has ended meanwhile
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

// argsMost is what is looked at of a command line, and was all that Linux showed up to 4.1.
const argsMost = 4096

// readArgs reads no more: any user's process may have gigabytes there, which need not even be in its
// memory (PR_SET_MM_MAP, prctl(2)).
func readArgs(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, argsMost))
}

// wanted is a process that must run, or must not.
type wanted struct {
	name   string
	is     func(args string) bool
	owner  *match // of the account's name, nil for any
	not    bool   // must not run
	suffix string // " owned by root"
}

func (w *wanted) look(ctx context.Context, s *System) (string, error) {
	all, err := s.processes(ctx)
	if err != nil {
		return "", err
	}
	owner := w.owner
	if owner != nil && owner.expr != nil { // a uid stands for its name
		number := strings.TrimPrefix(owner.text, "!")
		if name := s.accountNamed(number); name != number {
			if owner, err = parseMatch(map[bool]string{true: "!"}[owner.not] + name); err != nil {
				return "", err
			}
		}
	}
	for _, p := range all {
		if !w.is(p.args) || owner != nil && !owner.is(s.account(p.uid)) {
			continue
		}
		if w.not {
			return w.name + w.suffix + " runs", nil
		}
		return "", nil
	}
	if w.not {
		return "", nil
	}
	return w.name + w.suffix + " does not run", nil
}

// service is check_ps_service OPTIONS NAME. With -s, -k and -E it must not run.
func service(l *Line, args []string) (look, error) {
	opts, rest, err := options(args, "0E:SVcd:e:fkm:rsu:v")
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
			l.changes(o.letter)
		case 'S', 'r', 'c', 'e':
			l.changes(o.letter)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case w.name == "":
		return nil, errors.New("it names no service")
	case pattern == "":
		pattern = "*" + program
	}
	m, err := parseMatch(pattern)
	w.is = func(args string) bool {
		if !full {
			args, _, _ = strings.Cut(args, " ")
		}
		return m.is(args)
	}
	return w.look, err
}

// daemon is check_ps_daemon COMMAND [OWNER [ARGS]], for which a process is the one
// if that stands anywhere in its command line.
func daemon(_ *Line, args []string) (look, error) {
	w, err := named(args)
	if err == nil && len(args) > 1 && args[1] != "" { // an owner's name and no match string
		w.owner = &match{text: args[1], expr: regexp.MustCompile(`^` + regexp.QuoteMeta(args[1]) + `$`)}
	}
	return w.look, err
}

// blacklist is check_ps_blacklist, the contrary; its OWNER is a match string.
func blacklist(_ *Line, args []string) (look, error) {
	w, err := named(args)
	w.not = true
	if err == nil && len(args) > 1 && args[1] != "" {
		w.owner, err = parseMatch(args[1])
	}
	return w.look, err
}

func named(args []string) (*wanted, error) {
	w := &wanted{}
	if err := arguments(args, 1, 3); err != nil {
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

// loadAverage is check_ps_loadavg [1M [5M [15M]]]: whole numbers that the load stays below.
func loadAverage(_ *Line, args []string) (look, error) {
	if err := arguments(args, 1, 3); err != nil {
		return nil, err
	}
	limit := make([]int, len(args))
	for i, text := range args {
		var err error
		if limit[i], err = strconv.Atoi(text); err != nil && text != "" {
			return nil, refuse(text, "a whole number")
		}
	}
	return func(_ context.Context, s *System) (string, error) {
		text, err := os.ReadFile(filepath.Join(s.Proc, "loadavg"))
		f := strings.Fields(string(text))
		if err != nil || len(f) < 3 {
			return "", errors.New("the load averages cannot be read")
		}
		for i, minutes := range []string{"1", "5", "15"}[:len(args)] {
			load, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return "", errors.New("the load averages are not understood")
			}
			if args[i] != "" && int(load) >= limit[i] {
				return fmt.Sprintf("the %s-minute load average is %d or more", minutes, limit[i]), nil
			}
		}
		return "", nil
	}, nil
}
