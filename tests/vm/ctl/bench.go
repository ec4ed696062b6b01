// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gojail/gojail/tests/vm"
)

// bench runs the benchmarks of a package that match the pattern, each once, in a guest, and prints what they print.
func bench(ctx context.Context, release, pattern, pkg string) (int, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return 2, fmt.Errorf("ctl: go list %s: %w", pkg, err)
	}
	temporary, err := os.MkdirTemp("", "gojail-vm-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(temporary)
	binary := filepath.Join(temporary, "bench.test")
	if err := buildTests(ctx, pkg, binary); err != nil {
		return 1, err
	}
	r, err := vm.Run(ctx, vm.Options{
		Release: release, Arch: readArch(), Kernel: readKernel(), Dir: strings.TrimSpace(string(dir)), Timeout: longTime, Output: os.Stdout,
		Files:   map[string]string{filepath.Base(binary): binary},
		Command: []string{path.Join(vm.Share, filepath.Base(binary)), "-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=1x", "-test.timeout=" + longTime.String()},
	})
	return r.Code, err
}

// buildTests compiles the tests of a package.
func buildTests(ctx context.Context, pkg, binary string) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-o", binary, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+cmp.Or(readArch(), runtime.GOARCH))
	build.Stderr, build.Stdout = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("ctl: build the tests of %s: %w", pkg, err)
	}
	return nil
}
