// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/report"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/procfs"
)

// runHealthCheck performs a run: it checks the node, stores the history, updates Slurm and
// reports.
func (n *node) runHealthCheck(cmd *cobra.Command) error {
	began := time.Now()
	c, err := n.loadConfigAsRoot(cmd)
	if err != nil {
		return err
	}
	whole, cancel := context.WithDeadline(context.Background(), began.Add(c.Total))
	defer cancel()
	store, err := n.openStore(c)
	if err != nil {
		return err
	}
	lock, err := n.takeRunLock(whole, c.Total/4)
	if err != nil {
		return err
	}
	defer lock.Close()
	runner := run.Runner{
		Host: check.Host{Roots: n.roots, Node: n.name, Settings: &c.Settings, SlurmConf: c.Slurm.Conf, DryRun: n.dry,
			Now: time.Now, Shared: &check.Shared{}},
		Checks: c.SelectChecks(checks.All()),
		Locks:  n.runDir,
		Self:   []string{"/proc/self/exe", "child"},
	}
	if n.controlled {
		if err := handOverLock(lock, c.Total+report.MetricsTime+grace); err != nil {
			return err
		}
	}
	store.Write = run.NewWriter(n.runDir, "record", drain.WriteFile)
	r := &report.Report{Node: n.name, Began: began, Dry: n.dry}
	changes := n.runChecks(whole, c, store, &runner, r)
	r.Took = time.Since(began)
	n.publishReport(c, r, changes)
	return n.printReport(cmd.OutOrStdout(), r, changes)
}

// publishReport writes the metrics and the lines for syslog.
func (n *node) publishReport(c *config.Config, r *report.Report, changes []drain.Change) {
	if n.dry {
		return
	}
	if c.Metrics != "" {
		write := run.NewWriter(n.runDir, "metrics", report.ReplaceFile)
		r.Errors = append(r.Errors, listErrors(r.WriteMetrics(c.Metrics, write))...)
	}
	if c.Syslog {
		_ = r.WriteSyslog(n.log, changes) // a missing syslog is not a fault of the node
	}
}

// printReport prints the report, and returns its exit code as an error.
func (n *node) printReport(to io.Writer, r *report.Report, changes []drain.Change) error {
	write := r.WriteText
	switch {
	case n.json:
		write = r.WriteJSON
	case n.slurmd && len(changes) == 0 && !r.Outcome.Asked:
		return nil // slurmd logs the output of every run whose exit code is not 0
	case n.slurmd:
		write = r.WriteBrief
	}
	if err := write(to); err != nil {
		return err
	}
	if exit := r.ExitCode(); exit != 0 {
		return exitCode(exit)
	}
	return nil
}

// runChecks runs the checks, updates Slurm and fills in the report. Half of the time is for the
// checks, the rest for Slurm.
func (n *node) runChecks(whole context.Context, c *config.Config, store drain.Store, runner *run.Runner,
	r *report.Report) []drain.Change {
	boot, err := procfs.ReadBootID(n.roots.Proc)
	r.Errors = append(r.Errors, listErrors(err)...)
	history, err := store.ReadHistory(boot)
	r.Errors = append(r.Errors, listErrors(err)...)
	runner.States = history.ListStates()
	looking, cancel := context.WithDeadline(whole, r.Began.Add(c.Total/2))
	defer cancel()
	r.Results = runner.Run(looking)
	r.History = history
	changes := history.AddResults(r.Results)
	if c.Slurm.Drain {
		slurm := &drain.Slurm{Slurm: c.Slurm, Node: n.name, Lock: filepath.Join(n.runDir, "scontrol.lock")}
		if n.dry {
			slurm.Lock = ""
		}
		reconciler := drain.Reconciler{Slurm: slurm, Store: store, History: history, Now: time.Now, DryRun: n.dry,
			Healthy:      os.Getenv("SLURM_NODE_IS_HEALTHY"),
			FindUnkilled: func() string { return checks.FindUnkilled(&runner.Host) }}
		r.Outcome = reconciler.Reconcile(whole, r.Results)
	}
	if !n.dry {
		r.Errors = append(r.Errors, listErrors(store.SaveHistory(history))...)
	}
	return changes
}

// listErrors returns a list of the error, empty for nil.
func listErrors(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// takeRunLock takes the lock of a run; it waits for another run up to the given time. A dry run creates no lock file.
func (n *node) takeRunLock(ctx context.Context, patience time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path, open := filepath.Join(n.runDir, "lock"), filelock.Open
	if n.dry {
		open = filelock.OpenExisting
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	if err = filelock.WaitFile(ctx, file); err != nil {
		file.Close()
	}
	if errors.Is(err, filelock.ErrBusy) {
		err = fmt.Errorf("another run is in progress and does not end; to find it: fuser -v %s", path)
	}
	return file, err
}
