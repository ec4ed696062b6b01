// SPDX-License-Identifier: Apache-2.0

// Package cli is gojail-exporter, which tells Prometheus what slurmctld knows of nodes, jobs, its scheduler and its
// RPCs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"

	"github.com/gojail/gojail/exporter/poll"
	"github.com/gojail/gojail/exporter/series"
	"github.com/gojail/gojail/internal/slurm"
	"github.com/gojail/gojail/internal/version"
)

// Execute runs the command line of this process, prints the error, and returns the exit code.
func Execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "gojail-exporter:", err)
		return 1
	}
	return 0
}

// options are the flags.
type options struct {
	commands slurm.Commands
	interval time.Duration
	maxAge   time.Duration
	users    int
	once     bool
	web      webOptions
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "gojail-exporter",
		Short: "Tell Prometheus what slurmctld knows of nodes, jobs, its scheduler and its RPCs",
		Long: `gojail-exporter tells Prometheus what slurmctld knows and its own endpoint (Slurm
25.11 and later) does not tell: the state, flags and reason of each node, its
partitions, its running jobs and its GPUs by type, the queue by state, partition and
reason, RPCs by type and user, and the scheduler's cycles. It works with Slurm 22.05 to
26.05. One instance per cluster is enough.

Each interval it runs at most three commands of Slurm (squeue, scontrol show nodes and
sdiag), whatever the number of those who scrape. Data that is older than --max-age is
no longer shown. Where slurmctld does not answer, gojail_slurm_controller_up is 0.

It may run on the host of each controller: that of a standby controller runs scontrol
ping alone, and has none of the series of the cluster. Where slurm.conf has PrivateData,
it must run as SlurmUser or an operator to see everything.

The exit code is 1 if it cannot start, and with --once if Slurm does not
answer each of the commands.`,
		Example: `  gojail-exporter --once
  gojail-exporter --listen-address 10.0.0.5:9948 --web-config /etc/gojail/exporter-web.yml`,
		Args:              cobra.NoArgs,
		Version:           version.Text(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	root.SetVersionTemplate("gojail-exporter {{.Version}}\n")
	flags := root.Flags()
	flags.DurationVar(&o.interval, "interval", time.Minute, "how often Slurm is asked, 10s or more")
	flags.DurationVar(&o.commands.Timeout, "timeout", 15*time.Second,
		"how long a command of Slurm may take, before it is killed")
	flags.DurationVar(&o.maxAge, "max-age", 5*time.Minute, "how old data may be that is still shown")
	flags.StringVar(&o.commands.Dir, "slurm-bin", "",
		"directory of Slurm's commands (default: the usual ones are searched)")
	flags.StringVar(&o.commands.Conf, "slurm-conf", "", "slurm.conf (default: that of Slurm's commands)")
	flags.StringVar(&o.commands.Format, "format", slurm.Auto,
		"what is asked for: json, text, or auto, which is json with Slurm 24.11 to 26.05")
	flags.IntVar(&o.users, "rpc-users", 20, "users with most RPCs that have series of their own, 0 for none")
	flags.BoolVar(&o.once, "once", false, "ask Slurm once, print the metrics, and exit")
	o.web.addFlags(root)
	return root
}

// intervalLeast keeps a mistake from making slurmctld busy.
const intervalLeast = 10 * time.Second

// usersMost is the limit of rpc-users.
const usersMost = 1000

func (o *options) check() error {
	switch {
	case o.interval < intervalLeast:
		return fmt.Errorf("--interval %v is too short for slurmctld; choose %v or more", o.interval, intervalLeast)
	case o.commands.Timeout < time.Second || o.commands.Timeout > o.interval:
		return fmt.Errorf("--timeout %v is not between 1s and --interval, which is %v", o.commands.Timeout, o.interval)
	case o.maxAge < 2*o.interval:
		return fmt.Errorf(
			"--max-age %v is too short: one failure would hide the data; choose two intervals, %v, or more", o.maxAge,
			2*o.interval)
	case o.commands.Format != slurm.Auto && o.commands.Format != slurm.JSON && o.commands.Format != slurm.Text:
		return fmt.Errorf("--format %q is not known; choose auto, json or text", o.commands.Format)
	case o.users < 0 || o.users > usersMost:
		return fmt.Errorf("--rpc-users %d is not between 0 and %d", o.users, usersMost)
	}
	return nil
}

func (o *options) run(cmd *cobra.Command) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.commands.Dir == "" {
		if o.commands.Dir, err = slurm.FindDir(); err != nil {
			return err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("cannot determine the host name: %w", err)
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{ReplaceAttr: dropTime}))
	poller := &poll.Poller{Slurm: &o.commands, Host: host, MaxAge: o.maxAge, Log: log, Now: time.Now}
	gatherer := &series.Gatherer{View: poller.View, Slurm: o.commands.Describe, Users: o.users, Now: time.Now}
	if o.once {
		return o.printOnce(cmd, poller, gatherer)
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		poller.Run(ctx, o.interval)
	}()
	err = o.web.serve(ctx, log, gatherer)
	cancel()
	<-done // no command of Slurm outlives it
	return err
}

// dropTime leaves out the time: the journal has it.
func dropTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// printOnce asks Slurm for everything and prints the metrics.
func (o *options) printOnce(cmd *cobra.Command, poller *poll.Poller, gatherer *series.Gatherer) error {
	poller.Poll(cmd.Context())
	poller.Poll(cmd.Context()) // the statistics take turns with scontrol ping
	families, err := gatherer.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(cmd.OutOrStdout(), f); err != nil {
			return err
		}
	}
	return o.checkView(poller.View())
}

// checkView returns an error if Slurm did not answer one of the commands. A standby is not asked.
func (o *options) checkView(v poll.View) error {
	if !v.Active {
		return nil
	}
	if !v.Up {
		return errors.New("slurmctld does not answer; see: scontrol ping")
	}
	failing := slices.DeleteFunc(slices.Clone(poll.Sources), func(name string) bool { return !v.Sources[name].Failing })
	if len(failing) == 0 {
		return nil
	}
	hint := ""
	if o.commands.Format == slurm.JSON {
		hint = "; if Slurm's plugins for JSON (data_parser, serializer/json) are missing, use --format=auto, " +
			"which reads text then"
	}
	return fmt.Errorf("cannot read %s from Slurm: the lines above say why%s", strings.Join(failing, ", "), hint)
}
