// SPDX-License-Identifier: Apache-2.0

// Command health measures what one run of gojail-healthcheck costs a healthy node:
// wall time and the CPU time of all its processes, beside LBNL NHC with checks of the
// same kinds, and a Go program that does nothing.
//
// Each round runs each candidate once, in shuffled order. The node is this machine
// with eight GPUs, in a mount namespace that ends with this program. NVIDIA's library
// and nvidia-smi are stand-ins that cost next to nothing. NHC is not part of this
// repository: --nhc, or NHC in the environment, names a directory with its source, else
// it is cloned.
//
//	go run ./tests/bench/health [--rounds N] [--nhc DIR] [--before FILE]
//
// Needs root, a C compiler, and Linux 5.12 as gojail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 50, "rounds of every candidate")
	flag.StringVar(&s.nhc, "nhc", os.Getenv("NHC"), "directory with the source of LBNL NHC (default: $NHC, else a clone of "+nhcURL+")")
	flag.StringVar(&s.before, "before", "", "another build of gojail-healthcheck to compare with")
	flag.Parse()
	runtime.LockOSThread() // the namespace is this thread's, and what it starts is in it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runBench(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type settings struct {
	rounds int
	nhc    string
	before string
}

func runBench(ctx context.Context, s settings) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root: health checks do")
	}
	if s.rounds < 2 {
		return errors.New("--rounds: give 2 or more")
	}
	if s.before != "" {
		path, err := filepath.Abs(s.before)
		if err != nil {
			return err
		}
		s.before = path
	}
	dir, err := os.MkdirTemp("", "gojail-bench-health-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := becomeReaper(); err != nil {
		return err
	}
	n, err := makeNode(dir)
	if err != nil {
		return err
	}
	defer n.unmountAll()
	before := readLoad()
	list, err := n.listCandidates(ctx, s)
	if err != nil {
		return err
	}
	for _, c := range list {
		c.warmUp(ctx)
	}
	if err := measureRounds(ctx, list, s.rounds); err != nil {
		return err
	}
	writeReport(os.Stdout, list, s.rounds, before)
	return nil
}
