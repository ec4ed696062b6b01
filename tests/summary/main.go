// SPDX-License-Identifier: Apache-2.0

// Command summary reads go test -json, prints what failed as it fails and one
// line for each package, and ends with every skip's reason, the counts and every second try.
//
//	summary                                        reads standard input
//	summary [-again COMMAND] COMMAND [ARGUMENT]... runs the command
//	summary -parts 3 COMMAND [ARGUMENT]...         runs the command with 1/3, with 2/3 and with 3/3 as its last argument, at the same time
//
// With -each it prints a line when a test begins and when it ends, for suites that take long. With -columns it runs the command once for each
// release of Slurm and adds a table. With -again it runs once
// more what fails, if that is little and starts a Slurm or a VM: COMMAND -run PATTERN PACKAGE. In CI (the
// variable CI is set) a skip that the machine gives no cause for is a failure. The file that GOJAIL_SECOND_TRIES names gets a line
// for each second try.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one line of test2json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

type run struct {
	output             map[string][]string // of each test, by package and name
	parents            map[string]bool     // tests that have subtests
	passed             []string
	failed, skipped    []string
	again              []string                 // tests that passed only when they were run once more
	restarts           []string                 // guests that were started once more, by package
	orders             []string                 // how to repeat the random order of a package's tests
	broken             []string                 // packages that do not build, fail outside a test, or never ended
	running            map[string]bool          // packages without a result so far
	qualifies          func(reason string) bool // in CI: this machine has what the skipped test asks for
	packageHasFailures map[string]bool
	reasons            map[string]string
	seconds            map[string]float64 // of each test, without subtests
	each               io.Writer          // gets a line for the begin and the end of each test, without subtests
}

// guestRestarted begins the line of a package's output that says that its guest ended by itself (tests/vm/ctl).
const guestRestarted = "guest started once more: "

// notEnded follows the name of a package without a result.
const notEnded = ": it did not come to its end"

// shuffleSeed begins the line of a package's output with the seed of the order of its tests (go help testflag, -shuffle).
const shuffleSeed = "-test.shuffle "

func newRun(qualifies func(string) bool) *run {
	return &run{output: map[string][]string{}, parents: map[string]bool{}, packageHasFailures: map[string]bool{},
		reasons: map[string]string{}, seconds: map[string]float64{}, running: map[string]bool{}, qualifies: qualifies, each: io.Discard}
}

func main() {
	var judge func(string) bool
	if os.Getenv("CI") != "" {
		judge = qualifies
	}
	columns := flag.String("columns", "", "run the command for each of these words, and print a table of tests and columns")
	each := flag.Bool("each", false, "print a line for each test that begins, and its result as it comes")
	again := flag.String("again", "", "run what fails of the command once more: this one with -run PATTERN PACKAGE")
	parts := flag.Int("parts", 0, "run so many parts of the command at the same time, each with its number, 2/3 for instance, as the last argument")
	flag.Parse()
	cmd := command{argv: flag.Args(), again: strings.Fields(*again), each: *each}
	if *columns != "" {
		os.Exit(runColumns(strings.Fields(*columns), cmd, judge))
	}
	r := newRun(judge)
	if *each {
		r.each = os.Stdout
	}
	switch {
	case *parts > 0:
		r.runParts(cmd, *parts)
	case len(cmd.argv) > 0:
		r.runTwice(cmd)
	default:
		r.readEvents(os.Stdin)
	}
	os.Exit(r.close(os.Stdout))
}

// readEvents reads every event, and prints lines that are none. It returns the last such line.
func (r *run) readEvents(from io.Reader) (last string) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			last = in.Text() // of go itself
			fmt.Println(last)
			continue
		}
		r.addEvent(e)
	}
	if err := in.Err(); err != nil {
		r.broken = append(r.broken, "go test's output: "+err.Error())
	}
	return last
}

// addEvent updates the run by one event.
func (r *run) addEvent(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "start":
		r.running[e.Package] = true
		delete(r.packageHasFailures, e.Package) // of the first try
	case "output":
		r.output[key] = append(r.output[key], e.Output)
		if seed, found := strings.CutPrefix(e.Output, shuffleSeed); found && e.Test == "" {
			r.orders = append(r.orders, fmt.Sprintf("%s: go test -shuffle=%s", e.Package, strings.TrimSpace(seed)))
		}
		if e.Test == "" && strings.HasPrefix(e.Output, guestRestarted) {
			r.restarts = append(r.restarts, e.Package+": "+strings.TrimSpace(e.Output))
		}
	case "build-output":
		fmt.Print(e.Output)
	case "pass", "fail", "skip":
		r.addResult(e, key)
	case "run":
		if i := strings.LastIndex(e.Test, "/"); i >= 0 {
			r.parents[e.Package+" "+e.Test[:i]] = true
		} else {
			fmt.Fprintf(r.each, "begin %s\n", e.Test)
		}
	}
}

// addResult records the end of a test or of a package.
func (r *run) addResult(e event, key string) {
	if e.Test == "" {
		r.addPackageResult(e, key)
		return
	}
	if !strings.Contains(e.Test, "/") {
		r.seconds[key] += e.Elapsed
		fmt.Fprintf(r.each, "%-5s %s  %.1fs\n", e.Action, e.Test, e.Elapsed)
	}
	if e.Action == "fail" {
		r.packageHasFailures[e.Package] = true
		fmt.Printf("---- FAIL %s\n%s", key, strings.Join(r.output[key], ""))
	}
	if i := slices.Index(r.failed, key); i >= 0 && e.Action == "pass" {
		r.failed, r.again = slices.Delete(r.failed, i, i+1), append(r.again, key)
	}
	switch {
	case r.parents[key] && e.Action != "fail":
	case r.parents[key] && r.hasFailedChild(key):
	case e.Action == "pass" && slices.Contains(r.passed, key) || e.Action == "fail" && slices.Contains(r.failed, key): // the second try
	case e.Action == "pass":
		r.passed = append(r.passed, key)
	case e.Action == "fail":
		r.failed = append(r.failed, key)
	default:
		r.skipped = append(r.skipped, key)
		r.reasons[key] = findReason(r.output[key])
	}
	delete(r.output, key)
}

// addPackageResult records the end of a package, and prints it.
func (r *run) addPackageResult(e event, key string) {
	delete(r.running, e.Package)
	if e.Action == "skip" { // no test files
		return
	}
	fmt.Printf("%-4s %s  %.1fs\n", e.Action, e.Package, e.Elapsed)
	if e.Action == "fail" && !r.packageHasFailures[e.Package] {
		fmt.Print(strings.Join(r.output[key], ""))
		r.broken = append(r.broken, e.Package)
	}
}

// hasFailedChild reports whether a subtest of the test failed.
func (r *run) hasFailedChild(parent string) bool {
	for _, failed := range r.failed {
		if strings.HasPrefix(failed, parent+"/") {
			return true
		}
	}
	return false
}

// findReason returns the text of t.Skip: the last line before the --- SKIP line, without its place in the
// source.
func findReason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if _, text, found := strings.Cut(line, ".go:"); found {
			_, text, _ = strings.Cut(text, ": ")
			return text
		}
	}
	return "no reason given"
}

// close prints the counts and returns the exit status.
func (r *run) close(out io.Writer) int {
	fmt.Fprintln(out)
	var skipped []string
	for _, test := range r.skipped {
		if r.qualifies != nil && r.qualifies(r.reasons[test]) {
			r.failed = append(r.failed, test+": skipped, but this machine has what it needs: "+r.reasons[test])
			continue
		}
		skipped = append(skipped, test)
		fmt.Fprintf(out, "skipped %s: %s\n", test, r.reasons[test])
	}
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		r.broken = append(r.broken, name+notEnded)
	}
	printSlowest(out, r.seconds)
	for _, order := range r.orders {
		fmt.Fprintf(out, "order   %s\n", order)
	}
	for _, test := range append(r.failed, r.broken...) {
		fmt.Fprintf(out, "failed  %s\n", test)
	}
	failed := len(r.failed) + len(r.broken)
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", len(r.passed), failed, len(skipped))
	r.printSecondTries(out)
	if failed > 0 || len(r.passed) == 0 {
		return 1
	}
	return 0
}
