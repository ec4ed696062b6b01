// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// addSeeds adds what the commands of each release printed.
func addSeeds(f *testing.F, name string) {
	paths, err := filepath.Glob("testdata/*/" + name)
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds ", name)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
}

// checkLabels fails if a text cannot be the value of a label.
func checkLabels(t *testing.T, texts ...string) {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x00") {
			t.Fatalf("%q is not the value of a label", text)
		}
	}
}

func fuzzNodes(f *testing.F, seeds string, read func(io.Reader) ([]Node, error)) {
	addSeeds(f, seeds)
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range nodes {
			n := &nodes[i]
			checkLabels(t, n.Name, n.State, n.Reason, n.ReasonUser, n.Version)
			checkLabels(t, n.Flags...)
			checkLabels(t, n.Partitions...)
			for _, g := range n.GPUs {
				checkLabels(t, g.Type)
			}
		}
	})
}

func FuzzNodesText(f *testing.F) { fuzzNodes(f, "nodes.txt", readNodesText) }

func FuzzNodesJSON(f *testing.F) { fuzzNodes(f, "nodes.json", readNodesJSON) }

func FuzzJobs(f *testing.F) {
	addSeeds(f, "squeue.txt")
	f.Fuzz(func(t *testing.T, text string) {
		j, err := readJobs(strings.NewReader(text))
		if err != nil {
			return
		}
		for key := range j.Pending {
			checkLabels(t, key.Partition, key.Word)
		}
		for name, count := range j.Nodes {
			if checkLabels(t, name); count < 1 {
				t.Fatalf("%d jobs on %s", count, name)
			}
		}
		for state, count := range j.States {
			if count < 1 {
				t.Fatalf("%d jobs are %s", count, state)
			}
		}
	})
}

func fuzzDiag(f *testing.F, seeds string, read func(io.Reader) (*Diag, error)) {
	addSeeds(f, seeds)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range append(d.Types, d.Users...) {
			checkLabels(t, r.Name)
		}
		for key := range d.Values {
			if strings.Contains(key, "/") {
				checkLabels(t, key)
			}
		}
	})
}

func FuzzDiagText(f *testing.F) { fuzzDiag(f, "sdiag.txt", readDiagText) }

func FuzzDiagJSON(f *testing.F) { fuzzDiag(f, "sdiag.json", readDiagJSON) }

func FuzzPing(f *testing.F) {
	addSeeds(f, "*ping.txt")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := readPing(strings.NewReader(text)); err == nil {
			checkLabels(t, list[0].Host)
		}
	})
}
