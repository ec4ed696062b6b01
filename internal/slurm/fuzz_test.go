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

func fuzzNodes(f *testing.F, seeds string, read func(io.Reader) (*Nodes, error)) {
	addSeeds(f, seeds)
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for i := range nodes.List {
			n := &nodes.List[i]
			if seen[n.Name] && seeds == "nodes.txt" || n.State == "" || n.CPUs < 0 || n.CPUsAllocated < 0 {
				t.Fatalf("%+v", n)
			}
			seen[n.Name] = true
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
			if checkLabels(t, r.Name); !isValue(r.Count) {
				t.Fatalf("%+v", r)
			}
		}
		for key, value := range d.Values {
			if !isValue(value) {
				t.Fatalf("%s is %v", key, value)
			}
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

// FuzzRecord: of whatever is in the texts of a node, its fields and its reason come out.
func FuzzRecord(f *testing.F) {
	f.Add("comment", "extra", "disk")
	f.Add("a\n   State=DOWN\n\nNodeName=n2", "   Reason=b [c@2026-11-25T13:26:57]", "Comment=x\nState=DOWN [d@e]")
	f.Fuzz(func(t *testing.T, comment, extra, reason string) {
		if strings.ContainsRune(comment+extra+reason, 0) {
			return // ends a string of Slurm's
		}
		r, err := readRecord(printNode("n1", reason, comment, extra), "n1")
		if err != nil {
			t.Fatal(err)
		}
		if len(reason) > reasonMost {
			return
		}
		if want := strings.Join(strings.FieldsFunc(reason, func(c rune) bool { return c == '\n' }), "\n"); r.Reason != want || r.Field("State") != "IDLE" {
			t.Fatalf("%q %q, want %q", r.Field("State"), r.Reason, want)
		}
	})
}
