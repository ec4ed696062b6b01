// SPDX-License-Identifier: Apache-2.0

// Command images measures what it costs to build a version of a jail from an image:
// wall time, CPU time and resident memory of all processes, beside umoci unpack, podman, and
// tar -x, which verifies nothing and is the floor.
//
// The image is generated from a seed: files of many sizes in five layers, half of their bytes compressible,
// compressed with gzip. Each candidate ends with the tree on the disk, by sync -f.
//
//	go run ./tests/bench/images [--files N] [--bytes SIZE] [--rounds N] [--only NAMES] [--umoci FILE] [--dir DIR]
//
// Needs root. What is not installed is not measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

type settings struct {
	files, rounds int
	bytes         int64
	umoci, dir    string
	only          string
}

func main() {
	var s settings
	flag.IntVar(&s.files, "files", 50_000, "files of the image")
	flag.Int64Var(&s.bytes, "bytes", 1<<30, "bytes of all files")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds of every candidate")
	flag.StringVar(&s.umoci, "umoci", "umoci", "the umoci to measure")
	flag.StringVar(&s.only, "only", "", "candidates to measure, separated by commas (default: all)")
	flag.StringVar(&s.dir, "dir", "build", "an existing directory on the file system to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runBench(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runBench(ctx context.Context, s settings) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root: the owners of files are those of the image")
	}
	if s.files < layers || s.rounds < 1 {
		return fmt.Errorf("give --files %d and --rounds 1, or more", layers)
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	if dir, err = os.MkdirTemp(dir, "bench-images-"); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	gojail, err := filepath.Abs("build/sbin/gojail")
	if err != nil {
		return err
	}
	b := &bench{dir: dir, gojail: gojail, umoci: s.umoci}
	if err := b.makeImage(s.files, s.bytes); err != nil {
		return err
	}
	end, err := b.startRegistry()
	if err != nil {
		return err
	}
	defer end()
	list := b.listCandidates(s.only)
	if err := b.measureRounds(ctx, list, s.rounds); err != nil {
		return err
	}
	writeReport(os.Stdout, s, b.compressed, list)
	return nil
}
