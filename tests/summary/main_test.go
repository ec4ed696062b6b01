// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	os.Unsetenv("GOJAIL_SECOND_TRIES") // that of the run that this test belongs to
	os.Exit(m.Run())
}

// summarise returns the exit status and the text after the last package.
func summarise(inCI bool, events ...event) (int, string) {
	r := newRun(nil)
	if inCI {
		r.qualifies = func(reason string) bool {
			return !isExcused(reason, "5.15.0-1-amd64", false, []string{"nodev", "proc", "xfs"})
		}
	}
	for _, e := range events {
		r.addEvent(e)
	}
	var out bytes.Buffer
	return r.close(&out), out.String()
}

var (
	start = event{Action: "start", Package: "p"}
	good  = event{Action: "pass", Package: "p", Test: "TestGood"}
	ended = event{Action: "pass", Package: "p"}
	told  = event{Action: "output", Package: "p", Test: "TestOld", Output: "    a_test.go:7: needs Linux 6.8: lowerdir+\n"}
	old   = event{Action: "skip", Package: "p", Test: "TestOld"}
	why   = event{Action: "output", Package: "p", Test: "TestRoot", Output: "    a_test.go:9: needs gcc\n"}
	skip  = event{Action: "skip", Package: "p", Test: "TestRoot"}
)

func TestSummary(t *testing.T) {
	code, text := summarise(false, start, good, why, skip, told, old, ended)
	assert.Zero(t, code)
	assert.Equal(t, "\nskipped p TestRoot: needs gcc\nskipped p TestOld: needs Linux 6.8: lowerdir+\n1 passed, 0 failed, 2 skipped\n", text)

	code, text = summarise(true, start, good, why, skip, told, old, ended)
	assert.Equal(t, 1, code)
	assert.Equal(t, "\nskipped p TestOld: needs Linux 6.8: lowerdir+\nfailed  p TestRoot: skipped, but this machine has what it needs: needs gcc\n1 passed, 1 failed, 1 skipped\n", text)
}

// TestSummaryOfEach: a long suite shows what it does, subtests aside.
func TestSummaryOfEach(t *testing.T) {
	r := newRun(nil)
	var out bytes.Buffer
	r.each = &out
	for _, e := range []event{start, {Action: "run", Package: "p", Test: "TestGood"}, {Action: "run", Package: "p", Test: "TestGood/one"},
		{Action: "pass", Package: "p", Test: "TestGood/one", Elapsed: 1}, {Action: "pass", Package: "p", Test: "TestGood", Elapsed: 2.3}, old, ended} {
		r.addEvent(e)
	}
	assert.Equal(t, "begin TestGood\npass  TestGood  2.3s\nskip  TestOld  0.0s\n", out.String())
}

// TestSummaryNamesSlowTests: both tries of a test count, those of a subtest in its parent.
func TestSummaryNamesSlowTests(t *testing.T) {
	take := func(test string, seconds float64) event {
		return event{Action: "pass", Package: "p", Test: test, Elapsed: seconds}
	}
	_, text := summarise(false, start, take("TestQuick", 9.9), take("TestTwice", 6), take("TestTwice", 6), take("TestOf/one", 40), take("TestOf", 41), ended)
	assert.Contains(t, text, "slow    p TestOf: 41 s\nslow    p TestTwice: 12 s\n4 passed")
}

func TestSummaryTellsHowToRepeatAnOrder(t *testing.T) {
	_, text := summarise(false, start, event{Action: "output", Package: "p", Output: "-test.shuffle 42\n"}, good, ended)
	assert.Equal(t, "\norder   p: go test -shuffle=42\n1 passed, 0 failed, 0 skipped\n", text)
}

func TestSummaryExcusesKernels(t *testing.T) {
	for reason, want := range map[string]bool{
		"a_test.go:7: needs the kernel's btrfs": true, "a_test.go:7: needs the kernel's xfs": false,
		"a_test.go:7: needs mkfs.xfs: make deps installs it": false, "needs Linux 6.8: lowerdir+": true, "needs Linux 5.14": false,
		"needs a kernel with this system call: iopl: Function not implemented": true, "needs a kernel": false,
		"a_test.go:7: needs the network: umoci cannot be fetched": true,
	} {
		assert.Equal(t, want, isExcused(reason, "5.15.0-1-amd64", false, []string{"nodev", "proc", "xfs"}), reason)
	}
}

func TestSkipOnAnotherRelease(t *testing.T) {
	t.Setenv(columnVariable, "24.11")
	assert.False(t, qualifies("needs Slurm 26.05, which has it"))
	assert.False(t, qualifies("needs the machine's own release of Slurm"))
	assert.Equal(t, qualifies("needs root"), qualifies("needs Slurm 22.05"), "this release has it")
	assert.Equal(t, qualifies("needs root") && mayRaiseLimits(), qualifies("needs CAP_SYS_RESOURCE: a limit"))
	assert.Equal(t, qualifies("needs root") && runtime.GOARCH == "arm64", qualifies("needs arm64: 32-bit programs"))
}

func TestSummaryFails(t *testing.T) {
	for name, events := range map[string][]event{
		"no test at all":               {start, ended},
		"a package that was cut short": {start, good},
		"a test that failed":           {start, good, {Action: "fail", Package: "p", Test: "TestBad"}, {Action: "fail", Package: "p"}},
		"a package without a failure":  {start, good, {Action: "fail", Package: "p"}},
	} {
		code, text := summarise(false, events...)
		assert.Equal(t, 1, code, "%s: %s", name, text)
	}
}

// TestSummaryCountsOnce: a test with subtests stands for them, unless it fails by itself.
func TestSummaryCountsOnce(t *testing.T) {
	sub := []event{start, {Action: "run", Package: "p", Test: "T"}, {Action: "run", Package: "p", Test: "T/a"}, {Action: "run", Package: "p", Test: "T/b"},
		{Action: "pass", Package: "p", Test: "T/a"}}
	_, text := summarise(false, append(sub, event{Action: "fail", Package: "p", Test: "T/b"}, event{Action: "fail", Package: "p", Test: "T"}, event{Action: "fail", Package: "p"})...)
	assert.Equal(t, "\nfailed  p T/b\n1 passed, 1 failed, 0 skipped\n", text)
	_, text = summarise(false, append(sub, event{Action: "pass", Package: "p", Test: "T/b"}, event{Action: "fail", Package: "p", Test: "T"}, event{Action: "fail", Package: "p"})...)
	assert.Equal(t, "\nfailed  p T\n2 passed, 1 failed, 0 skipped\n", text)
}

func TestSummaryTellsOfASecondTry(t *testing.T) {
	record := filepath.Join(t.TempDir(), "second-tries")
	t.Setenv("GOJAIL_SECOND_TRIES", record)
	first := []event{start, good, {Action: "run", Package: "p", Test: "T/a"}, {Action: "fail", Package: "p", Test: "T/a"}, {Action: "fail", Package: "p", Test: "T"}}
	second := append(first, event{Action: "pass", Package: "p", Test: "T/a"}, event{Action: "pass", Package: "p", Test: "T"}, ended)
	code, text := summarise(false, second...)
	assert.Zero(t, code)
	assert.Equal(t, "\n2 passed, 0 failed, 0 skipped\n1 needed a second try\npassed only at the second try p T/a\n", text)
	code, text = summarise(false, append(first, event{Action: "fail", Package: "p", Test: "T/a"}, event{Action: "fail", Package: "p", Test: "T"}, event{Action: "fail", Package: "p"})...)
	assert.Equal(t, 1, code)
	assert.Equal(t, "\nfailed  p T/a\n1 passed, 1 failed, 0 skipped\n", text)
	summarise(false, second...)
	lines, err := os.ReadFile(record)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("passed only at the second try p T/a\n", 2), string(lines), "of two runs")
}

func TestSummaryTellsOfAGuestThatWasRestarted(t *testing.T) {
	code, text := summarise(false, start, event{Action: "output", Package: "p", Output: guestRestarted + "QEMU: signal: killed\n"}, good, ended)
	assert.Zero(t, code)
	assert.Equal(t, "\n1 passed, 0 failed, 0 skipped\n1 needed a second try\np: guest started once more: QEMU: signal: killed\n", text)
}
