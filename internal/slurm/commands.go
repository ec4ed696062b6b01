// SPDX-License-Identifier: Apache-2.0

// Package slurm runs Slurm's programs, for all of gojail's programs, and reads their output: rows of columns, the
// record of one node, and all nodes, jobs and statistics of slurmctld for the exporter. A program gets a bare
// environment and a deadline.
//
// Records have texts of users and administrators, with any content. squeue and sinfo are therefore asked for columns,
// of which a text is the last, between marks that nobody can know beforehand. sinfo has no row for a node without a
// partition, and reports a node that drains as ALLOCATED if scontrol says MIXED. So a node is read as JSON
// (data_parser/v0.0.42, of Slurm 24.11 to 26.05), or from scontrol's form of several lines, in which fields come before
// texts, and the reason is the first text. A record that cannot be read costs its own series, and is counted.
//
// The output for the exporter is parsed while it arrives, and never stored as a whole: of 100,000 jobs only the counts
// are kept. Jobs are read as columns with each release, because columns are an eightieth of their JSON. The package
// works with Slurm 22.05 and later.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gojail/gojail/internal/command"
)

// Formats of nodes and statistics.
const (
	Auto = "auto" // JSON of the releases that have it
	Text = "text"
	JSON = "json"
)

// Commands runs Slurm's commands.
type Commands struct {
	Dir     string        // directory of the commands
	Conf    string        // slurm.conf; empty: Slurm's default
	Timeout time.Duration // timeout of one command
	Format  string        // Auto, Text or JSON

	mutex     sync.Mutex
	release   string // release of the commands, as they print it
	binary    string // identity of the scontrol that printed it
	lacksJSON bool   // whether Slurm's plugin for JSON is missing
}

// prefixes are where distributions, builds from source and sites install Slurm.
var prefixes = []string{"/usr", "/usr/local", "/opt/slurm", "/usr/local/slurm"}

// ListDirs returns the possible directories of Slurm's programs, bin or sbin: below the prefixes of a configuration
// first. PATH is not used.
func ListDirs(which string, configured []string) (dirs []string) {
	for _, prefix := range slices.Concat(configured, prefixes) {
		dirs = append(dirs, filepath.Join(prefix, which))
	}
	return dirs
}

// FindDir returns the directory of Slurm's commands.
func FindDir() (string, error) {
	dirs := ListDirs("bin", nil)
	i := slices.IndexFunc(dirs, func(dir string) bool { _, err := os.Stat(dir + "/scontrol"); return err == nil })
	if i < 0 {
		return "", fmt.Errorf("there is no scontrol in %s; install Slurm's client commands, or pass --slurm-bin",
			strings.Join(dirs, ", "))
	}
	return dirs[i], nil
}

// jsonFlag returns the option that asks for JSON, in a format that the release has: Slurm 24.11 to 26.05 have v0.0.42
// in common, and 26.11 has v0.0.43, with the same fields of nodes and statistics. Later releases print their own.
func (c *Commands) jsonFlag() string {
	switch release := c.number(); {
	case release > 2611:
		return "--json"
	case release == 2611:
		return "--json=v0.0.43"
	}
	return "--json=v0.0.42"
}

func (c *Commands) program(name string, args ...string) Program {
	return Program{Command: command.Command{Path: filepath.Join(c.Dir, name), Args: args}, Conf: c.Conf,
		Timeout: c.Timeout, UTC: true}
}

// Nodes returns all nodes.
func (c *Commands) Nodes(ctx context.Context) (*Nodes, error) {
	return readEither(ctx, c, readNodesJSON, c.program("scontrol", "--all", c.jsonFlag(), "show", "nodes"),
		readNodesText, c.program("scontrol", "--all", "--detail", "show", "node"))
}

// Jobs returns the numbers of jobs: of those that wait or run, and of those that ended in the last MinJobAge seconds.
func (c *Commands) Jobs(ctx context.Context) (*Jobs, error) {
	j := newJobs()
	odd, err := Rows(ctx, c.program("squeue", "--all", "--states=all"), jobColumns, j.add)
	return j.finish(odd), err
}

// Diag returns the statistics.
func (c *Commands) Diag(ctx context.Context) (*Diag, error) {
	return readEither(ctx, c, readDiagJSON, c.program("sdiag", c.jsonFlag()), readDiagText, c.program("sdiag"))
}

// answer is a result that is read from JSON or from text.
type answer interface {
	addUnread(err error) // the error with which JSON was read before this text
}

const unreadJSON = "JSON is read as text"

// addUnread does not count JSON without a node as odd if text has none either.
func (n *Nodes) addUnread(err error) {
	if !errors.Is(err, errNoNode) || len(n.List) > 0 || n.Odd.Count > 0 {
		n.Odd.add(unreadJSON, err.Error())
	}
}

func (d *Diag) addUnread(err error) { d.Odd.add(unreadJSON, err.Error()) }

// readEither reads JSON if the release has it, otherwise text. Slurm's plugins for JSON may be missing on this host.
// JSON that cannot be parsed as a whole, perhaps because of one byte, counts as one odd record. Then readEither reads
// text, whose records are parsed one by one. It does the same with JSON without a record: Slurm's commands may print
// that when they fail, even with exit status 0.
func readEither[T answer](ctx context.Context, c *Commands, parseJSON func(io.Reader) (T, error), asJSON Program,
	parseText func(io.Reader) (T, error), asText Program) (T, error) {
	if !c.usesJSON() {
		return read(ctx, asText, parseText)
	}
	result, err := read(ctx, asJSON, parseJSON)
	var failed *command.ExitError
	if c.Format == Auto && errors.As(err, &failed) && pluginText().MatchString(failed.Stderr) {
		c.mutex.Lock()
		c.lacksJSON = true
		c.mutex.Unlock()
		return read(ctx, asText, parseText)
	}
	var unread *ReadError
	if errors.As(err, &unread) {
		asText, textErr := read(ctx, asText, parseText)
		if textErr != nil {
			return asText, fmt.Errorf("%w; as text: %w", err, textErr)
		}
		asText.addUnread(unread.Err)
		return asText, nil
	}
	return result, err
}

// pluginText matches the messages of Slurm's programs if they do not find a plugin data_parser or serializer/json.
var pluginText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)JSON plugin|data_parser|serializer`)
})

// Ping returns the controllers and whether they answer. scontrol fails if one does not.
func (c *Commands) Ping(ctx context.Context) ([]Controller, error) {
	list, err := read(ctx, c.program("scontrol", "ping"), readPing)
	var failed *command.ExitError
	if len(list) > 0 && errors.As(err, &failed) {
		err = nil
	}
	return list, err
}

var releaseText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(\d\d)\.(\d\d)\.\d+`) })

// FindRelease asks the commands for their release, if they have been replaced since the last call. That needs no
// slurmctld.
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
	text, err := Run(ctx, c.program("scontrol", "--version"))
	if err != nil {
		return err
	}
	m := releaseText().FindString(text)
	if m == "" {
		return fmt.Errorf("%s --version prints %.60q, which has no release", path, text)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.release, c.binary, c.lacksJSON = m, binary, false
	return nil
}

// Describe returns the release of the commands, such as "24.11.5", or "", and the format of nodes and statistics.
func (c *Commands) Describe() (release, format string) {
	format = Text
	if c.usesJSON() {
		format = JSON
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.release, format
}

// usesJSON reports whether the release has JSON with which this package was tested. Later releases than the known ones
// get text, which changes less.
func (c *Commands) usesJSON() bool {
	if c.Format != Auto {
		return c.Format == JSON
	}
	release := c.number()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return !c.lacksJSON && 2411 <= release && release <= 2605
}

// number returns the release as a number, such as 2411, or 0 if it is not known.
func (c *Commands) number() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	m := releaseText().FindStringSubmatch(c.release)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1] + m[2])
	return n
}
