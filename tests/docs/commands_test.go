// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands, and where their main packages are.
var programs = map[string]string{
	"gojail":             "./gojail/cmd/gojail",
	"gojail-healthcheck": "./healthcheck/cmd/gojail-healthcheck",
	"gojail-exporter":    "./exporter/cmd/gojail-exporter",
}

// command is the help of a command.
type command struct {
	flags    map[string]bool
	examples []string // lines
	below    map[string]*command
}

var (
	subcommand = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) {2,}\S`)
	flag       = regexp.MustCompile(`(?m)^ +(?:(-\w), )?(--[a-z-]+)`)
	call       = regexp.MustCompile(`(?:^|[\s/])(gojail|gojail-healthcheck|gojail-exporter)((?:\s.*)?)$`)
	word       = regexp.MustCompile(`^[a-z][a-z-]*$`)
	separator  = regexp.MustCompile(`[;|#)]|&&| -- |\s--$`)
	target     = regexp.MustCompile(`(?m)^([a-z][a-z-]*):(?:[^=]|$)`)
	makeCall   = regexp.MustCompile(`(?:^|[\s(])make((?:\s.*)?)$`)
)

// readHelp asks a program for its commands, down to the last.
func readHelp(t *testing.T, program string, path ...string) *command {
	t.Helper()
	out, err := exec.Command(program, append(path, "--help")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	text := string(out)
	c := &command{flags: map[string]bool{}, below: map[string]*command{}}
	for _, m := range flag.FindAllStringSubmatch(text, -1) {
		c.flags[m[1]], c.flags[m[2]] = true, true
	}
	_, list, _ := strings.Cut(text, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	_, examples, _ := strings.Cut(text, "Examples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	c.examples = strings.Split(examples, "\n")
	for _, m := range subcommand.FindAllStringSubmatch(list, -1) {
		if m[1] != "help" {
			c.below[m[1]] = readHelp(t, program, append(slices.Clone(path), m[1])...)
		}
	}
	return c
}

// check looks for the commands and flags of words that follow the name of c.
func (c *command) check(name string, words []string) error {
	at := c
	arguments := false
	for _, w := range words {
		w = strings.Trim(w, "[]…'\",.")
		switch {
		case strings.HasPrefix(w, "-"):
			f, _, _ := strings.Cut(w, "=")
			if !at.flags[f] {
				return fmt.Errorf("%s has no flag %s", name, f)
			}
		case arguments || len(at.below) == 0 || !word.MatchString(w):
			arguments = true
		case at.below[w] == nil:
			return fmt.Errorf("%s has no command %s", name, w)
		default:
			at, name = at.below[w], name+" "+w
		}
	}
	return nil
}

// checkCode looks at one line of code that may call one of the programs.
func checkCode(known map[string]*command, text string) error {
	for _, part := range separator.Split(text, -1) {
		if m := call.FindStringSubmatch(part); m != nil {
			if err := known[m[1]].check(m[1], strings.Fields(m[2])); err != nil {
				return err
			}
		}
	}
	return nil
}

// buildPrograms builds the commands into the directory that it returns.
func buildPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", slices.Concat([]string{"build", "-ldflags=-s -w", "-o", dir + "/"}, slices.Collect(maps.Values(programs)))...)
	build.Dir = repository
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

func TestCommandsExist(t *testing.T) {
	known, dir := map[string]*command{}, buildPrograms(t)
	for name := range programs {
		known[name] = readHelp(t, filepath.Join(dir, name))
	}
	assertNumberOfChecks(t, filepath.Join(dir, "gojail-healthcheck"))
	for _, want := range []string{"check", "vf", "enter"} {
		require.Contains(t, known["gojail"].below, want)
	}
	for code, want := range map[string]string{
		"gojail reload debian":                            "",
		"srun /run/gojail/bin/gojail net check --json":    "",
		"gojail --config NEW check; gojail init JAIL":     "",
		"gojail enter JOB -- ls --color":                  "",
		"gojail restart":                                  "gojail has no command restart",
		"gojail vf undo":                                  "gojail vf has no command undo",
		"echo; gojail vf apply --force":                   "gojail vf apply has no flag --force",
		"sudo gojail-healthcheck list --json":             "gojail-healthcheck list has no flag --json",
		"gojail-healthcheck nccl --retest NODE | grep -v": "",
	} {
		err := checkCode(known, code)
		if want == "" {
			assert.NoError(t, err, code)
		} else {
			assert.EqualError(t, err, want, code)
		}
	}
	for _, p := range pages(t) {
		for _, l := range p.code {
			assert.NoError(t, checkCode(known, l.text), "%s:%d", p.path, l.number)
			assert.NoError(t, checkVFRequest(l.text), "%s:%d", p.path, l.number)
		}
	}
	assertProseCommandsExist(t, known)
	for name, c := range known {
		assert.Greater(t, c.countExamples(t, known, name), 0, name)
	}
}

// countExamples checks the examples in the help of a command and of those below it, and returns their number.
func (c *command) countExamples(t *testing.T, known map[string]*command, name string) (count int) {
	t.Helper()
	for _, line := range c.examples {
		if line != "" {
			count++
			assert.NoError(t, checkCode(known, line), "example of %s: %s", name, line)
			assert.NoError(t, checkVFRequest(line), "example of %s: %s", name, line)
		}
	}
	for word, below := range c.below {
		count += below.countExamples(t, known, name+" "+word)
	}
	return count
}

var withRails = regexp.MustCompile(`\b(?:srun|sbatch|salloc)\b.*--jail-net=(\S+)`)

// checkVFRequest fails for a job with rails that requests no VF: where Slurm counts them, that job fails (netsetup/attach, choose). A
// step within a job (--overlap) has those of the job.
func checkVFRequest(text string) error {
	m := withRails.FindStringSubmatch(text)
	if m != nil && m[1] != "none" && !strings.Contains(text, "--gres=") && !strings.Contains(text, "--overlap") {
		return fmt.Errorf("%s requests no VF; add --gres=nic:RAIL:1", text)
	}
	return nil
}

// assertNumberOfChecks compares the number of health checks in docs/health.md with the list of them.
func assertNumberOfChecks(t *testing.T, program string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs/health.md"))
	require.NoError(t, err)
	m := regexp.MustCompile(`runs (\d+) checks`).FindSubmatch(text)
	require.NotNil(t, m)
	list, err := exec.Command(program, "list").CombinedOutput()
	require.NoError(t, err, "%s", list)
	assert.Equal(t, strconv.Itoa(strings.Count(string(list), "\n")-1), string(m[1]), "health checks in docs/health.md")
}

// checkMake looks at one line of code that may call make.
func checkMake(known map[string]bool, text string) error {
	for _, part := range separator.Split(text, -1) {
		m := makeCall.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		for _, w := range strings.Fields(m[1]) {
			if word.MatchString(w) && !known[w] {
				return fmt.Errorf("the Makefile has no target %s", w)
			}
			if strings.Contains(w, "='") {
				break // a value with spaces
			}
		}
	}
	return nil
}

func TestTargetsOfMakeExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	known := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
	}
	require.True(t, known["test"] && known["install"])
	assert.NoError(t, checkMake(known, "make install PREFIX=/usr"))
	assert.NoError(t, checkMake(known, "make bench BENCH_ARGS='-mode first'"))
	assert.EqualError(t, checkMake(known, "cd x && make everything"), "the Makefile has no target everything")
	for _, p := range pages(t) {
		for _, l := range p.code {
			assert.NoError(t, checkMake(known, l.text), "%s:%d", p.path, l.number)
		}
	}
}
