// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/report"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/filelock"
)

// look is a run: look, remember, tell Slurm, report.
func (n *node) look(cmd *cobra.Command) error {
	began := time.Now()
	if os.Geteuid() != 0 {
		return errors.New("needs root")
	}
	c, err := n.load(cmd)
	if err != nil {
		return err
	}
	whole, cancel := context.WithDeadline(context.Background(), began.Add(c.Total))
	defer cancel()
	store, err := n.store(c)
	if err != nil {
		return err
	}
	lock, err := alone(whole, filepath.Join(n.runDir, "lock"), c.Total/4)
	if err != nil {
		return err
	}
	defer lock.Close()
	runner := run.Runner{
		Host:   check.Host{Roots: n.roots, Node: n.name, Settings: &c.Settings, SlurmConf: c.Slurm.Conf, Now: time.Now, Shared: &check.Shared{}},
		Checks: c.Rules(checks.All()),
		Locks:  n.runDir,
		Self:   []string{"/proc/self/exe", "child"},
	}
	if n.controlled {
		if err := hand(lock, c.Total+report.MetricsTime+grace); err != nil {
			return err
		}
	}
	store.Write = runner.Writer(writeRecord)
	r := &report.Report{Node: n.name, Began: began, Dry: n.dry}
	changes := n.run(whole, c, store, &runner, r)
	r.Took = time.Since(began)
	n.publish(c, &runner, r, changes)
	runner.Close()
	return n.print(cmd.OutOrStdout(), r, changes)
}

// publish writes the metrics and the lines for syslog.
func (n *node) publish(c *config.Config, runner *run.Runner, r *report.Report, changes []drain.Change) {
	if n.dry {
		return
	}
	if c.Metrics != "" {
		r.Errors = append(r.Errors, some(r.Metrics(c.Metrics, runner.Writer(writeMetrics)))...)
	}
	if c.Syslog {
		_ = r.Syslog(n.log, changes) // a node without a log is not faulty for that
	}
}

// print prints the report, and returns its exit code.
func (n *node) print(to io.Writer, r *report.Report, changes []drain.Change) error {
	write := r.Text
	switch {
	case n.json:
		write = r.JSON
	case n.slurmd && len(changes) == 0 && !r.Outcome.Asked:
		return nil // slurmd logs what a run with an exit code other than 0 says, every time
	case n.slurmd:
		write = r.Brief
	}
	if err := write(to); err != nil {
		return err
	}
	if exit := r.Exit(); exit != 0 {
		return code(exit)
	}
	return nil
}

// run fills in the report. Half of the time is for looking, the rest for Slurm.
func (n *node) run(whole context.Context, c *config.Config, store drain.Store, runner *run.Runner, r *report.Report) []drain.Change {
	boot, err := os.ReadFile(filepath.Join(n.roots.Proc, "sys/kernel/random/boot_id"))
	r.Errors = append(r.Errors, some(err)...)
	history, err := store.History(strings.TrimSpace(string(boot)))
	r.Errors = append(r.Errors, some(err)...)
	runner.Kept = history.Kept()
	looking, cancel := context.WithDeadline(whole, r.Began.Add(c.Total/2))
	defer cancel()
	r.Results = runner.Run(looking)
	r.History = history
	changes := history.Add(r.Results)
	if c.Slurm.Drain {
		slurm := &drain.Slurm{Slurm: c.Slurm, Node: n.name, Lock: filepath.Join(n.runDir, "scontrol.lock")}
		settler := drain.Settler{Slurm: slurm, Store: store, History: history, Now: time.Now, Dry: n.dry, Healthy: os.Getenv("SLURM_NODE_IS_HEALTHY")}
		r.Outcome = settler.Settle(whole, r.Results)
	}
	if !n.dry {
		r.Errors = append(r.Errors, some(store.Save(history))...)
	}
	return changes
}

func some(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// alone takes the lock of a run; another one may be under way for a while.
func alone(ctx context.Context, path string, patience time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	file, err := filelock.Wait(ctx, path)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, fmt.Errorf("another run is under way and does not end; to see which: fuser -v %s", path)
	}
	return file, err
}
