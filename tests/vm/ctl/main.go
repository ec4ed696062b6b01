// SPDX-License-Identifier: Apache-2.0

// Command ctl runs commands, tests and shells in the guest of package vm.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gojail/gojail/tests/vm"
)

const usage = `usage: ctl run RELEASE COMMAND...           a command in the guest; its exit status is ctl's
       ctl shell RELEASE                    a shell in the guest
       ctl test RELEASE PATTERN[!PATTERN] PACKAGE...
                                            the packages' tests that match the first and not the second, as go test -json prints them
       ctl bench RELEASE PATTERN PACKAGE    its benchmarks that match
RELEASE is 22.05, 24.11, 26.05, or host: the guest's root is this machine's.
GOJAIL_KERNEL is the guest's kernel: 6.1, 6.12 (the default), newest, or 16k for arm64. GOJAIL_ARCH is its processor:
amd64 or arm64`

// readKernel returns the kernel that the environment names.
func readKernel() string { return os.Getenv("GOJAIL_KERNEL") }

// readArch returns the processor that the environment names.
func readArch() string { return os.Getenv("GOJAIL_ARCH") }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code, err := runVerb(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(max(code, 1))
	}
	os.Exit(code)
}

// runVerb runs the verb of the arguments and returns the exit status.
func runVerb(ctx context.Context, args []string) (int, error) {
	if len(args) < 2 {
		return 2, errors.New(usage)
	}
	verb, release, rest := args[0], args[1], args[2:]
	if release == "host" {
		release = ""
	}
	options := vm.Options{Release: release, Arch: readArch(), Kernel: readKernel(), Command: rest, Output: os.Stdout}
	switch {
	case verb == "run" && len(rest) > 0:
	case verb == "shell" && len(rest) == 0:
		options.Command, options.Terminal = []string{"/bin/bash", "-i"}, true
	case verb == "test" && len(rest) > 1:
		return testPackages(ctx, release, rest[0], rest[1:])
	case verb == "bench" && len(rest) == 2:
		return bench(ctx, release, rest[0], rest[1])
	default:
		return 2, errors.New(usage)
	}
	r, err := vm.Run(ctx, options)
	return r.Code, err
}
