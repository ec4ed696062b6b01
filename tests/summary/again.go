// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// secondTries is how many tests of a package may fail and be run once more: a busy machine, and an emulated
// one still more, now and then loses seconds, and a real Slurm then answers differently.
const secondTries = 2

// patience is how long a command may print nothing: each test prints when it begins and when it ends, and none takes as long, nor does an
// emulated machine to its first test on a busy one. What hangs is a failure, whatever time is left.
var patience = 20 * time.Minute

// mayRunAgain matches the packages whose tests start a Slurm or a VM, or wait for the kernel's network timers. Only they have a second
// try, but for those that hunt races: what escapes once in ten has escaped.
var mayRunAgain = regexp.MustCompile(`/tests/(slurm|storage|vm)(/|$)|/healthcheck/cli$|/netsetup/`)

// command is what prints test2json's lines. This package alone decides that a test is run once more; the command's
// again only says how: again -run PATTERN PACKAGE. Without again, nothing is.
type command struct {
	argv, again, env []string
	each             bool // print a line for each test
}

// runTwice runs the command, and then once more the few tests of a package that failed. It returns the
// exit status of the first run, or -1, with the last line that was no event.
func (r *run) runTwice(c command) (code int, last string) {
	code, last = r.execute(c.argv, c.env)
	r.runFailed(c)
	return code, last
}

// runFailed runs once more the few tests of a package that failed.
func (r *run) runFailed(c command) {
	if len(c.again) == 0 {
		return
	}
	for pkg, tests := range r.findFewFailed() {
		fmt.Printf("once more: %s of %s\n", strings.Join(tests, " "), pkg)
		r.execute(slices.Concat(c.again, []string{"-run", "^(" + strings.Join(tests, "|") + ")$", pkg}), c.env)
	}
}

// execute runs a command and reads the events that it prints. A command that fails without a failed test is broken itself.
func (r *run) execute(argv, env []string) (code int, last string) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		stop := relaySignals(cmd.Process.Pid)
		defer stop()
		hung := time.AfterFunc(patience, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		last = r.readEvents(heard{out, hung})
		err = cmd.Wait()
		if !hung.Stop() {
			r.broken = append(r.broken, fmt.Sprintf("nothing has begun or ended for %s, killed: %s", patience, strings.Join(r.listUnfinished(), ", ")))
		}
	}
	if err == nil {
		return 0, last
	}
	code = -1
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if code != 1 || len(r.failed)+len(r.broken) == 0 {
		r.broken = append(r.broken, fmt.Sprintf("%s: %v: %s", strings.Join(argv, " "), err, last))
	}
	return code, last
}

// relaySignals has what ends this program end a process group that it leads, until stop.
func relaySignals(group int) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			syscall.Kill(-group, s.(syscall.Signal))
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// heard puts a timer off with each read.
type heard struct {
	io.Reader
	timer *time.Timer
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 && h.timer.Stop() {
		h.timer.Reset(patience)
	}
	return n, err
}

// listUnfinished returns the tests that have begun and not ended, or else such packages.
func (r *run) listUnfinished() []string {
	var tests []string
	for key := range r.output {
		if !strings.HasSuffix(key, " ") && !r.parents[key] {
			tests = append(tests, key)
		}
	}
	if len(tests) == 0 {
		return slices.Sorted(maps.Keys(r.running))
	}
	slices.Sort(tests)
	return tests
}

// findFewFailed returns, for each package that has a second try, the failed tests (not their subtests) if
// there are no more than secondTries of them and the package ran to its end: a package that panics or exceeds
// its timeout prints no FAIL of its own.
func (r *run) findFewFailed() map[string][]string {
	all := map[string][]string{}
	for _, key := range r.failed {
		pkg, test, _ := strings.Cut(key, " ")
		test, _, _ = strings.Cut(test, "/")
		if test = regexp.QuoteMeta(test); !slices.Contains(all[pkg], test) {
			all[pkg] = append(all[pkg], test)
		}
	}
	for pkg, tests := range all {
		if !mayRunAgain.MatchString(pkg) || len(tests) > secondTries || !slices.Contains(r.output[pkg+" "], "FAIL\n") || slices.Contains(r.broken, pkg) {
			delete(all, pkg)
		}
	}
	return all
}

// printSecondTries prints the number of second tries and then each of them, and appends them to the file that GOJAIL_SECOND_TRIES names.
func (r *run) printSecondTries(out io.Writer) {
	var lines string
	for _, test := range r.again {
		lines += "passed only at the second try " + test + "\n"
	}
	for _, guest := range r.restarts {
		lines += guest + "\n"
	}
	if lines == "" {
		return
	}
	fmt.Fprintf(out, "%d needed a second try\n%s", len(r.again)+len(r.restarts), lines)
	if path := os.Getenv("GOJAIL_SECOND_TRIES"); path != "" {
		if err := appendTo(path, lines); err != nil {
			fmt.Fprintf(out, "second tries are not recorded: %v\n", err)
		}
	}
}

// appendTo appends text to a file.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
