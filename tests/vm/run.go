// SPDX-License-Identifier: Apache-2.0

package vm

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
	"time"
)

// Options of one guest.
type Options struct {
	Release  string            // of Slurm: 22.05, 24.11, 26.05; "": this machine's own root
	Arch     string            // amd64 or arm64; "": this machine's. Another one is emulated
	Kernel   string            // as tests/vm/kernel.sh has it; "": defaultKernel
	Command  []string          // run to its end in the guest, as root
	Env      []string          // added to PATH, HOME, GuestVariable, ...
	Dir      string            // working directory; default: the repository
	Files    map[string]string // files of this machine to have as Share/NAME
	Output   io.Writer         // gets the command's output and errors as they come; nil: dropped
	Timeout  time.Duration     // of the guest from its start; default 10 minutes
	Terminal bool              // the command's terminal is that of this process; no Output, no Timeout

	startTimeout time.Duration // of the guest until it begins with its order; default 5 minutes; an idle machine takes six seconds
}

// Result of a guest that came to its end.
type Result struct {
	Code    int           // exit status of the command; 128 and the signal that ended it
	Kernel  string        // the release of the guest's kernel, as uname -r prints it; "" if the guest did not boot
	Boot    time.Duration // from QEMU's start to the guest's order
	console string        // what the guest's kernel and pid 1 printed
}

// Run boots a guest, runs the command and waits for the guest's end. The error
// says why there is no exit status, with the end of the console: the guest cannot
// be made here, its kernel panicked, it took too long or ctx was done.
func Run(ctx context.Context, o Options) (Result, error) {
	p, err := findPlaces(ctx, o.Arch, o.Release, o.Kernel)
	if err != nil {
		return Result{}, err
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.startTimeout == 0 {
		o.startTimeout = 5 * time.Minute
	}
	if !o.Terminal {
		why := fmt.Errorf("not done after %v", o.Timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, why)
		defer cancel()
	}
	dir, release, err := makeRunDirectory(p.repository)
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := prepareRun(ctx, p, dir, o); err != nil {
		return Result{}, err
	}
	begin := time.Now()
	failure := runQEMU(ctx, p, dir, o)
	if failure != nil && ctx.Err() == nil && !hasStarted(dir) {
		fmt.Fprintf(os.Stderr, "vm: a guest: %v; once more\n", failure)
		begin = time.Now()
		failure = runQEMU(ctx, p, dir, o)
	}
	console, _ := os.ReadFile(filepath.Join(dir, "console"))
	r := Result{console: strings.ReplaceAll(string(console), "\r", "")}
	r.Kernel, r.Boot = readBoot(dir, begin)
	status, err := os.ReadFile(filepath.Join(dir, "share", StatusFile))
	if err == nil {
		r.Code, err = strconv.Atoi(string(status))
	}
	switch {
	case ctx.Err() != nil:
		failure = context.Cause(ctx)
	case failure == nil && err != nil:
		failure = errors.New("it ended without an exit status")
		if panicked := regexp.MustCompile(`Kernel panic - .*`).FindString(r.console); panicked != "" {
			failure = errors.New(panicked)
		}
	}
	if failure != nil {
		return r, fmt.Errorf("vm: the guest failed: %w; the end of its console:\n%s", failure, lastLines(r.console, 60))
	}
	return r, nil
}

// readBoot returns the release of the kernel that a guest booted, and how long that took.
func readBoot(dir string, begin time.Time) (string, time.Duration) {
	path := filepath.Join(dir, "share", StartedFile)
	kernel, err := os.ReadFile(path)
	if err != nil {
		return "", 0
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", 0
	}
	return string(kernel), info.ModTime().Sub(begin)
}
