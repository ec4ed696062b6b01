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

// longTime is that limit for benchmarks, and where GOJAIL_ESCAPE asks for the races with all their rounds.
const longTime = 6 * time.Hour

// passed are the variables of this machine that the tests of the guest get (tests/escape, tests/slurm).
var passed = []string{"GOJAIL_ESCAPE", "GOJAIL_FILES"}

// readEnvironment returns this machine's variables of the list passed, and the timeout of a package's tests.
func readEnvironment() (env []string, limit time.Duration) {
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

// testPackages runs the tests of each package in a guest of its own.
func testPackages(ctx context.Context, release, pattern string, packages []string) (int, error) {
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
	if err := buildTests(ctx, name, binary); err != nil {
		return false, err
	}
	events, output, err := startConverter(name)
	if err != nil {
		return false, err
	}
	env, limit := readEnvironment()
	run, skip, _ := strings.Cut(pattern, "!")
	program := filepath.Base(binary)
	r, err := runGuest(ctx, output, vm.Options{
		Release: release, Arch: readArch(), Kernel: readKernel(), Dir: dir, Env: env, Timeout: limit, Files: map[string]string{program: binary},
		Command: []string{path.Join(vm.Share, program), "-test.v=test2json", "-test.run=" + run, "-test.skip=" + skip, "-test.timeout=" + (limit - 2*time.Minute).String()},
	})
	if err != nil || r.Code != 0 { // whatever the last line was; like go test, no FAIL alone: that one says that all tests were run
		fmt.Fprintf(output, "\n%v\n\x16FAIL\t%s\n", errors.Join(err, fmt.Errorf("exit status %d", r.Code)), name)
	}
	output.Close()
	return err == nil && r.Code == 0, errors.Join(err, events.Wait())
}

// runGuest runs a guest, and starts it once more if it ended in the midst of its tests by a stall of its
// kernel or by the end of QEMU: the emulator's doing, seen on busy machines. No test is run
// once more for its own failure here: tests/summary does that, and prints the line about the guest at its end.
func runGuest(ctx context.Context, output io.Writer, o vm.Options) (r vm.Result, err error) {
	for attempt := 1; ; attempt++ {
		var out bytes.Buffer
		o.Output = io.MultiWriter(&out, &progress{to: os.Stdout})
		r, err = vm.Run(ctx, o)
		if r.Kernel != "" {
			fmt.Printf("in the guest: Linux %s, booted in %.0f s\n", r.Kernel, r.Boot.Seconds())
		}
		if err == nil || attempt == 2 || ctx.Err() != nil || !emulatorEnded.MatchString(err.Error()) {
			output.Write(out.Bytes())
			return r, err
		}
		why, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(output, "guest started once more: %s\n", why)
		fmt.Fprintln(os.Stderr, err)
	}
}

// progress names each test that begins in the guest, whose output comes at its end.
type progress struct {
	to   io.Writer
	line []byte // the part of a line that has come
}

func (p *progress) Write(text []byte) (int, error) {
	p.line = append(p.line, text...)
	for {
		line, rest, found := bytes.Cut(p.line, []byte("\n"))
		if !found {
			return len(text), nil
		}
		p.line = rest
		if _, name, begins := bytes.Cut(line, []byte("=== RUN   ")); begins && !bytes.Contains(name, []byte("/")) {
			fmt.Fprintf(p.to, "in the guest: %s\n", name)
		}
	}
}

// emulatorEnded matches the ends of a guest that its tests have no part in.
var emulatorEnded = regexp.MustCompile(`the guest failed: (QEMU: |Kernel panic - not syncing: RCU Stall)`)

// startConverter starts go tool test2json, which turns its input into the events on our standard output.
func startConverter(name string) (*exec.Cmd, io.WriteCloser, error) {
	cmd := exec.Command("go", "tool", "test2json", "-t", "-p", name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	output, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, output, cmd.Start()
}
