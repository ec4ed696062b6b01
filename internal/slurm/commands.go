// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurmconf"
)

// Formats of nodes and statistics.
const (
	Auto = "auto" // JSON of the releases that have it
	Text = "text"
	JSON = "json"
)

// Commands runs Slurm's commands.
type Commands struct {
	Dir     string        // of the commands
	Conf    string        // slurm.conf; empty: Slurm's default
	Timeout time.Duration // of one command
	Format  string        // Auto, Text or JSON

	mutex   sync.Mutex
	release string // of the commands, as they print it
	binary  string // identity of the scontrol that printed it
}

// dirs are the possible directories of the commands. PATH is not used.
var dirs = []string{"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin"}

// FindDir returns the directory of Slurm's commands.
func FindDir() (string, error) {
	i := slices.IndexFunc(dirs, func(dir string) bool { _, err := os.Stat(dir + "/scontrol"); return err == nil })
	if i < 0 {
		return "", fmt.Errorf("there is no scontrol in %s; install Slurm's client commands, or pass --slurm-bin", strings.Join(dirs, ", "))
	}
	return dirs[i], nil
}

// outputMost is the limit of the output of a command, which is read as it comes.
const outputMost = 1 << 30

// jsonFlag asks for the only format that Slurm 24.11 to 26.05 have in common.
const jsonFlag = "--json=v0.0.42"

// Nodes returns all nodes.
func (c *Commands) Nodes(ctx context.Context) ([]Node, error) {
	if c.usesJSON() {
		return run(ctx, c, readNodesJSON, "scontrol", "--all", jsonFlag, "show", "nodes")
	}
	return run(ctx, c, readNodesText, "scontrol", "--all", "--oneliner", "--detail", "show", "node")
}

// Jobs returns the numbers of jobs: of those that wait and run, and of those that ended in the last MinJobAge seconds.
func (c *Commands) Jobs(ctx context.Context) (*Jobs, error) {
	return run(ctx, c, readJobs, "squeue", "--all", "--noheader", "--states=all", "--format="+jobFormat)
}

// Diag returns the statistics.
func (c *Commands) Diag(ctx context.Context) (*Diag, error) {
	if c.usesJSON() {
		return run(ctx, c, readDiagJSON, "sdiag", jsonFlag)
	}
	return run(ctx, c, readDiagText, "sdiag")
}

// Ping returns the controllers and whether they answer. scontrol fails if one does not.
func (c *Commands) Ping(ctx context.Context) ([]Controller, error) {
	list, err := run(ctx, c, readPing, "scontrol", "ping")
	var failed *command.ExitError
	if len(list) > 0 && errors.As(err, &failed) {
		err = nil
	}
	return list, err
}

// run runs a command and returns what read makes of its output. An error of the command comes before one of read.
func run[T any](ctx context.Context, c *Commands, read func(io.Reader) (T, error), name string, args ...string) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	pr, pw := io.Pipe()
	var result T
	parsed := make(chan error, 1)
	go func() {
		var err error
		output := &io.LimitedReader{R: pr, N: outputMost}
		if result, err = read(output); err == nil {
			_, err = io.Copy(io.Discard, output)
		}
		if output.N == 0 {
			err = fmt.Errorf("it is longer than %d bytes", outputMost)
		}
		if err != nil {
			err = &ReadError{name, err}
		}
		pr.CloseWithError(err) // the command need not print more
		parsed <- err
	}()
	_, err := command.Run(ctx, command.Command{
		Path: filepath.Join(c.Dir, name), Args: args, Stdout: pw,
		// Times are read as UTC, and lists of tasks are whole.
		Env: append(slurmconf.Environment(c.Conf), "TZ=UTC0", "SLURM_TIME_FORMAT=standard", "SLURM_BITSTR_LEN=0"),
	})
	pw.Close()
	readErr := <-parsed
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return result, &TimeoutError{name, c.Timeout}
	}
	if readErr != nil && (err == nil || failedSilently(err)) {
		err = readErr
	}
	return result, err
}

// failedSilently reports whether a command was run and failed without a message.
func failedSilently(err error) bool {
	var failed *command.ExitError
	if !errors.As(err, &failed) {
		return false
	}
	var status *exec.ExitError // missing where the command could not be run
	return failed.Stderr == "" && errors.As(failed.Err, &status)
}

// TimeoutError reports a command that did not end in time and was killed.
type TimeoutError struct {
	Name string
	Most time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s does not answer within %v; see: scontrol ping, sdiag", e.Name, e.Most)
}

// ReadError reports an output that cannot be parsed.
type ReadError struct {
	Name string
	Err  error
}

func (e *ReadError) Error() string {
	return "cannot parse the output of " + e.Name + ": " + e.Err.Error()
}

func (e *ReadError) Unwrap() error { return e.Err }

var releaseText = regexp.MustCompile(`\b(\d\d)\.(\d\d)\.\d+`)

// FindRelease asks the commands for their release, which asks no slurmctld, if they have been replaced since the last call.
func (c *Commands) FindRelease(ctx context.Context) error {
	path := filepath.Join(c.Dir, "scontrol")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	binary := fmt.Sprintf("%d %v", info.Size(), info.ModTime())
	if binary == c.binary {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	text, err := command.Run(ctx, command.Command{Path: path, Args: []string{"--version"}, Env: slurmconf.Environment(c.Conf)})
	if err != nil {
		return err
	}
	m := releaseText.FindString(text)
	if m == "" {
		return fmt.Errorf("%s --version prints %.60q, which has no release", path, text)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.release, c.binary = m, binary
	return nil
}

// Describe returns the release of the commands, such as "24.11.5", or "", and the format of nodes and statistics.
func (c *Commands) Describe() (release, format string) {
	format = Text
	if c.usesJSON() {
		format = JSON
	}
	return c.getRelease(), format
}

func (c *Commands) getRelease() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.release
}

// usesJSON reports whether the release has the JSON that is read here. A later release than is known gets text, which
// changes less.
func (c *Commands) usesJSON() bool {
	if c.Format != Auto {
		return c.Format == JSON
	}
	m := releaseText.FindStringSubmatch(c.getRelease())
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[1] + m[2])
	return 2411 <= n && n <= 2605
}
