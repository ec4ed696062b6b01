// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// secondTries is how many tests of a package may fail and be run once more: a busy
// machine now and then loses seconds, and a real Slurm then answers differently.
// The summary names what passed only so.
const secondTries = 2

// hasSecondTry matches the packages whose tests start a Slurm or a VM. Only they may be run once more.
var hasSecondTry = regexp.MustCompile(`/tests/(slurm|escape|shim|vm)(/|$)|/cmd/gojail-healthcheck$`)

// runOnce runs the command, which prints test2json's lines, for packages, and then
// once more for the few tests of a package that have failed. It returns the exit status.
func runOnce(r *run, command, packages []string) int {
	r.execute(slices.Concat(command, packages))
	for pkg, tests := range r.fewFailed() {
		fmt.Printf("once more: %s of %s\n", strings.Join(tests, " "), pkg)
		r.execute(slices.Concat(command, []string{"-run", "^(" + strings.Join(tests, "|") + ")$", pkg}))
	}
	return r.close(os.Stdout)
}

// execute reads what the command prints. One that fails without a failed test is broken itself.
func (r *run) execute(argv []string) {
	last, err := r.follow(exec.Command(argv[0], argv[1:]...))
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || len(r.failed)+len(r.broken) == 0) {
		r.broken = append(r.broken, fmt.Sprintf("%s: %v: %s", argv[0], err, last))
	}
}

// follow runs a command, reads what it prints, and returns the last line that was no event.
func (r *run) follow(cmd *exec.Cmd) (last string, err error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	last = r.read(out)
	return last, cmd.Wait()
}

// fewFailed are the tests, without their parts, of the packages that may have a second try, of which no more
// than secondTries have failed, and which have run all of their tests all the same:
// a package that panics, or is out of time, prints no FAIL of its own.
func (r *run) fewFailed() map[string][]string {
	all := map[string][]string{}
	for _, key := range r.failed {
		pkg, test, _ := strings.Cut(key, " ")
		test, _, _ = strings.Cut(test, "/")
		if test = regexp.QuoteMeta(test); !slices.Contains(all[pkg], test) {
			all[pkg] = append(all[pkg], test)
		}
	}
	for pkg, tests := range all {
		if !hasSecondTry.MatchString(pkg) || len(tests) > secondTries || !slices.Contains(r.output[pkg+" "], "FAIL\n") || slices.Contains(r.broken, pkg) {
			delete(all, pkg)
		}
	}
	return all
}
