// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gojail/gojail/tests/vm"
)

// testTime is the limit of one package's tests; they print where they hang a little earlier.
const testTime = 40 * time.Minute

// longTime is that limit where GOJAIL_ESCAPE asks for the races with all their rounds.
const longTime = 6 * time.Hour

// passed are the variables that tests go by (tests/escape, tests/slurm); the guest has them from this machine.
var passed = []string{"GOJAIL_ESCAPE", "GOJAIL_FILES"}

// environment returns what passed has of this machine's variables, and the limit of a package's tests.
func environment() (env []string, limit time.Duration) {
	for _, name := range passed {
		if value, isSet := os.LookupEnv(name); isSet {
			env = append(env, name+"="+value)
		}
	}
	if os.Getenv("GOJAIL_ESCAPE") == "all" {
		return env, longTime
	}
	return env, testTime
}

// test runs the tests of each package in a guest of its own.
func test(ctx context.Context, release, pattern string, packages []string) (int, error) {
	list, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...).Output()
	if err != nil {
		return 2, fmt.Errorf("ctl: go list %s: %w", strings.Join(packages, " "), err)
	}
	code := 0
	for line := range strings.Lines(string(list)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		passed, err := testPackage(ctx, release, pattern, name, dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if !passed {
			code = 1
		}
		if ctx.Err() != nil {
			break
		}
	}
	return code, nil
}

// testPackage boots a guest for one package. Its working directory is the package's, as with go test.
func testPackage(ctx context.Context, release, pattern, name, dir string) (passed bool, err error) {
	temporary, err := os.MkdirTemp("", "gojail-vm-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temporary)
	binary := filepath.Join(temporary, path.Base(name)+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-o", binary, name)
	build.Env, build.Stderr, build.Stdout = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return false, fmt.Errorf("ctl: build the tests of %s: %w", name, err)
	}
	events, output, err := converter(name)
	if err != nil {
		return false, err
	}
	env, limit := environment()
	try := func(run, skip string) (failed []string, r vm.Result, err error) {
		var seen bytes.Buffer
		program := filepath.Base(binary)
		r, err = lasting(ctx, io.MultiWriter(output, &seen), vm.Options{
			Release: release, Dir: dir, Env: env, Timeout: limit, Files: map[string]string{program: binary},
			Command: []string{path.Join(vm.Share, program), "-test.v=test2json", "-test.run=" + run, "-test.skip=" + skip, "-test.timeout=" + (limit - 2*time.Minute).String()},
		})
		for _, match := range failures.FindAllStringSubmatch(seen.String(), -1) {
			failed = append(failed, match[1])
		}
		return failed, r, err
	}
	run, skip, _ := strings.Cut(pattern, "!")
	failed, r, err := try(run, skip)
	if n := len(failed); err == nil && r.Code == 1 && 0 < n && n <= secondTries { // 2: a panic, and the tests after it were not run
		fmt.Fprintf(os.Stderr, "vm: once more in a fresh guest: %s\n", strings.Join(failed, " "))
		_, r, err = try("^("+strings.Join(failed, "|")+")$", "")
	}
	if err != nil || r.Code != 0 { // whatever the last line was: without a PASS at its end, a package has failed
		fmt.Fprintf(output, "\n%v\nFAIL\n", errors.Join(err, fmt.Errorf("exit status %d", r.Code)))
	}
	output.Close()
	return err == nil && r.Code == 0, errors.Join(err, events.Wait())
}

// secondTries is how many tests of a package may fail and be run once more: an
// emulated processor now and then loses seconds. The summary names them.
const secondTries = 2

var failures = regexp.MustCompile(`(?m)^\x16?--- FAIL: (\w+) \(`)

// lasting runs a guest, and once more if it ended in the midst of its tests by a
// stall of its kernel or by the end of QEMU: the emulator's doing, seen on busy machines.
func lasting(ctx context.Context, output io.Writer, o vm.Options) (r vm.Result, err error) {
	for attempt := 1; ; attempt++ {
		var out bytes.Buffer
		o.Output = &out
		r, err = vm.Run(ctx, o)
		if err == nil || attempt == 2 || ctx.Err() != nil || !emulators.MatchString(err.Error()) {
			output.Write(out.Bytes())
			return r, err
		}
		fmt.Fprintf(os.Stderr, "%v\nvm: that was the emulator's end, not the tests'; once more\n", err)
	}
}

// emulators are the ends of a guest that its tests have no part in.
var emulators = regexp.MustCompile(`the guest failed: (QEMU: |Kernel panic - not syncing: RCU Stall)`)

// converter starts go tool test2json, which turns what it reads into the events on our standard output.
func converter(name string) (*exec.Cmd, io.WriteCloser, error) {
	cmd := exec.Command("go", "tool", "test2json", "-t", "-p", name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	output, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, output, cmd.Start()
}
