// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/procfs"
)

// process is one row of "ps axo user,args", and what else names its program. A command line is a text that the process
// can replace: daemons show a title there (setproctitle(3)), such as "sshd: /usr/sbin/sshd -D [listener]".
type process struct {
	pid    string
	uid    uint32
	args   string // "[kthreadd]" for a process without a command line
	exe    string // path of its program; "" for a kernel thread
	comm   string // the kernel's name of a process with a program, shorter than 16 characters; "" if it may be cut off
	title  string // "sshd" of a title "sshd: ..."
	script string // path of the script that an interpreter runs
	helper bool   // whether the process certainly is one that the service started, and not the service itself
}

// first returns what NHC takes for the program: the first word of the command line.
func (p *process) first() string {
	word, _, _ := strings.Cut(p.args, " ")
	return word
}

// lines returns command lines without the title, or the name that the process gave itself: the program, with its path
// or without, and the arguments; and the command that a title quotes.
func (p *process) lines(withPath bool) (all []string) {
	_, rest, _ := strings.Cut(p.args, " ")
	if p.title != "" && strings.HasPrefix(rest, "/") {
		all = append(all, rest)
	}
	if p.exe != "" {
		exe := p.exe
		if !withPath {
			exe = filepath.Base(exe)
		}
		if rest != "" {
			exe += " " + rest
		}
		all = append(all, exe)
	}
	return all
}

// listProcesses returns the processes, read once.
func (s *System) listProcesses(ctx context.Context) ([]process, error) {
	s.list.Do(func() { s.all, s.err = s.readProcesses(ctx) })
	return s.all, s.err
}

// readProcesses reads the processes, without those that have ended (zombies). The command line is protected by a lock
// of its process, which a process stuck in the kernel may hold.
func (s *System) readProcesses(ctx context.Context) (all []process, err error) {
	pids, err := procfs.ListNumbers(s.Proc)
	if err != nil {
		return nil, errors.New("cannot list processes")
	}
	for _, pid := range pids {
		if ctx.Err() != nil {
			return nil, errors.New("no time left to read all processes")
		}
		dir := filepath.Join(s.Proc, strconv.Itoa(pid))
		var st unix.Stat_t
		text, err := readArgs(filepath.Join(dir, "cmdline"))
		if err != nil || unix.Lstat(dir, &st) != nil {
			continue // the process has ended
		}
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		if len(text) == 0 && exe == "" && s.isZombie(pid) {
			continue
		}
		p := describeProcess(text, procfs.ReadName(s.Proc, pid), exe)
		p.pid, p.uid = strconv.Itoa(pid), st.Uid
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s shows no processes", s.Proc)
	}
	return all, nil
}

// isZombie reports whether a process has ended, proc_pid_stat(5).
func (s *System) isZombie(pid int) bool {
	stat, _, _ := procfs.ReadStat(s.Proc, pid)
	return stat.State == 'Z' || stat.State == 'X'
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

// commMost is the number of characters after which the kernel cuts off a name, TASK_COMM_LEN.
const commMost = 15

// interpreters matches programs whose first argument is a script.
var interpreters = regexp.MustCompile(`^(?:(?:ba|da|k|mk|z|tc|c|fi|a)?sh|pwsh|python|pypy|perl|ruby|php|` +
	`node|lua|tclsh|wish|expect|guile|java|mono|Rscript)[-.0-9]*$`)

// helperTitles matches the text of titles of processes that a service started for one connection or as workers, and
// which may outlive it: "alice [priv]" and "alice@pts/0" of sshd, "worker process" of nginx, "pool www" of php-fpm.
var helperTitles = regexp.MustCompile(`(?i)@|^\[(?:net|accepted|preauth)\]|` +
	`^\S+ \[(?:priv|net|pam|preauth|postauth)\]|` +
	`\b(?:worker|child|helper|pool|session|cache manager|cache loader)\b`)

// describeProcess returns a process with that command line, name and path of its program, "" if it has none.
func describeProcess(cmdline []byte, comm, exe string) process {
	argv := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	p := process{args: strings.TrimRight(strings.Join(argv, " "), " "), exe: strings.TrimSuffix(exe, " (deleted)")}
	if p.args == "" {
		p.args = "[" + comm + "]"
	}
	if len(cmdline) > 0 || exe != "" {
		if p.comm = comm; len(comm) >= commMost {
			p.comm = ""
		}
	}
	first, rest, _ := strings.Cut(p.args, " ")
	if name, ok := strings.CutSuffix(first, ":"); ok {
		p.title = name
		p.helper = helperTitles.MatchString(rest)
	} else {
		p.script = findScript(argv, comm, cmp.Or(p.exe, argv[0]))
	}
	// systemd shows "(sd-pam)" for a process that runs its own program, cron "CRON" for a process of a job.
	shown, program := filepath.Base(first), filepath.Base(p.exe)
	if strings.HasPrefix(first, "(") || shown != program && strings.EqualFold(shown, program) {
		p.helper = true
	}
	return p
}

// findScript returns the script that a program runs. The kernel names a process after its script, execve(2).
func findScript(argv []string, comm, program string) string {
	args := argv[1:]
	for _, arg := range args[:min(2, len(args))] { // the interpreter may have one argument before the script
		if name := filepath.Base(arg); arg != "" && comm != "" && name[:min(commMost, len(name))] == comm {
			return arg
		}
	}
	if !interpreters.MatchString(filepath.Base(program)) {
		return ""
	}
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-m" && strings.HasPrefix(filepath.Base(program), "py") && i+1 < len(args): // a module
			return args[i+1]
		case slices.Contains([]string{"-W", "-X", "-O", "-o"}, arg): // a value follows
			i++
		case slices.Contains([]string{"-", "-c", "-e", "-m", "-jar", "--"}, arg): // no script
			return ""
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}
