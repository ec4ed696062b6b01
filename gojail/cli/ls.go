// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/oneline"
)

// listing is the output of `gojail ls --json`.
type listing struct {
	Sandboxes []sandboxRow  `json:"sandboxes"`
	Templates []templateRow `json:"templates"`
}

type sandboxRow struct {
	Job       string     `json:"job"`
	Jail      string     `json:"jail"`
	Sandbox   string     `json:"sandbox"`
	Mounts    []string   `json:"jailMounts"` // the user mounts (--jail-mount)
	Holder    int        `json:"holder,omitempty"`
	Version   string     `json:"version,omitempty"` // of the gojail that made it
	Started   *time.Time `json:"started,omitempty"`
	UIDs      []uint32   `json:"uids"`      // of the processes inside
	Processes int        `json:"processes"` // without the holder
	State     string     `json:"state"`
}

type templateRow struct {
	Jail     string     `json:"jail"`
	Zygote   int        `json:"zygote,omitempty"`
	Version  string     `json:"version,omitempty"` // of the gojail that made it
	Started  *time.Time `json:"started,omitempty"`
	Key      string     `json:"key,omitempty"`
	Identity string     `json:"identity,omitempty"` // what the path of the root led to when the jail was assembled
	Root     string     `json:"root,omitempty"`     // what the path leads to now, in one word
	Reason   string     `json:"reason,omitempty"`   // of a word other than ok
	State    string     `json:"state"`
}

func newLsCommand(n *localNode) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the sandboxes and the assembled jails on this node",
		Long: `Lists each job's sandbox on this node with the process that holds it (its
holder), the version of gojail that made it, the users and the number of
processes inside, and its state:
  active    the holder is running
  gone      the holder has ended; the next step of the job gets another one
  foreign   a version of gojail with another contract made it: running steps
            go on, and further ones are refused
  damaged   the record cannot be read

Steps of a job that differ in --jail-mount have different sandboxes. All
sessions of a user on a login node share one, under the name login-UID.

Then it lists the jails that are assembled on this node (their zygotes):
  current   the next job's sandbox comes from it
  old       the configuration, or the contract of gojail, has changed; the
            next job reassembles the jail
  unknown   the configuration cannot be read; see gojail check
  gone      the zygote has ended; the next job reassembles the jail
  stuck     the zygote does not answer; the next job replaces it

and the state of its root, as the jail's zygote reports it:
  ok        the path of the root leads to this tree, and the storage answers
  switched  the path leads to another tree; the next job reassembles the jail
  stale     a mount is gone for good; the next job reassembles the jail
  failed    jobs fail to start; --json has the reason
  silent    jobs fail to start: the storage does not answer`,
		Example: `  gojail ls
  gojail ls --json | jq '.sandboxes[].job'`,
		Args: cmdline.TakeNoArgument("it lists all jobs and jails"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := n.readListing()
			if err != nil {
				return err
			}
			if asJSON {
				return cmdline.PrintJSON(cmd.OutOrStdout(), list)
			}
			return list.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (n *localNode) readListing() (*listing, error) {
	state, err := state.OpenState(n.State)
	if err != nil {
		return nil, err
	}
	jobs, err := state.Jobs()
	if err != nil {
		return nil, err
	}
	list := &listing{Sandboxes: []sandboxRow{}, Templates: []templateRow{}}
	for _, job := range jobs {
		for _, r := range job.Sandboxes {
			row := makeSandboxRow(job.ID, r)
			mounts, err := state.UserMounts(job.ID, r.Name)
			if err != nil {
				row.State = "damaged"
			}
			for _, m := range mounts {
				row.Mounts = append(row.Mounts, m.String())
			}
			list.Sandboxes = append(list.Sandboxes, row)
		}
	}
	zygotes, err := state.Zygotes()
	if err != nil {
		return nil, err
	}
	for _, r := range zygotes {
		list.Templates = append(list.Templates, n.makeTemplateRow(state, r))
	}
	return list, nil
}

func makeSandboxRow(job string, r state.Record) sandboxRow {
	row := sandboxRow{Job: job, Jail: r.Jail(), Sandbox: r.Name, State: formatState(r), UIDs: []uint32{},
		Mounts: []string{}}
	if r.Alive || row.State == "foreign" {
		row.Holder, row.Version, row.Started = r.PID, r.Version, &r.Written
		users := r.Inhabitants()
		row.UIDs = append(row.UIDs, slices.Sorted(maps.Keys(users))...)
		for _, count := range users {
			row.Processes += count
		}
	}
	return row
}

// answerPatience is the time that the storage of a jail has to answer, and its zygote.
const answerPatience = time.Second

func (n *localNode) makeTemplateRow(s *state.State, r state.Record) templateRow {
	row := templateRow{Jail: r.Name, State: formatState(r), Key: r.Key}
	if !r.Alive && row.State != "foreign" {
		return row
	}
	row.Zygote, row.Version, row.Started, row.State = r.PID, r.Version, &r.Written, "old"
	if r.IsForeign() {
		return row // it cannot be asked
	}
	row.Identity = s.Identity(r.Name)
	var err error
	if row.Root, row.Reason, err = s.ProbeStorage(r.Name, answerPatience); err != nil {
		row.Root, row.Reason = "unknown", err.Error()
	}
	c, err := n.LoadConfig()
	if err != nil {
		row.State = "unknown"
	} else if j := c.Jails[r.Name]; j != nil && site.Key(c, node.ReadHardware(c), j) == r.Key {
		row.State = "current"
	}
	if errors.Is(s.ProbeZygote(r.Name, answerPatience), state.ErrStuck) {
		row.State = "stuck"
	}
	return row
}

func formatState(r state.Record) string {
	switch {
	case r.IsForeign() && r.Lives():
		return "foreign"
	case r.Damaged && !r.IsForeign():
		return "damaged"
	case r.Alive:
		return "active"
	}
	return "gone"
}

func (l *listing) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(l.Sandboxes) == 0 {
		fmt.Fprintln(t, "No job has a sandbox on this node.")
	} else {
		fmt.Fprintln(t, "JOB\tJAIL\tHOLDER\tVERSION\tSTARTED\tUSERS\tPROCESSES\tSTATE\tJAIL-MOUNTS")
	}
	for _, s := range l.Sandboxes {
		mounts := "-"
		if len(s.Mounts) > 0 {
			// a job from before the rules for user mounts may have control characters
			mounts = oneline.Printable(strings.Join(s.Mounts, " "))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", s.Job, s.Jail, formatNumber(s.Holder),
			cmp.Or(s.Version, "-"), cmdline.FormatTime(s.Started), formatUsers(s.UIDs), s.Processes, s.State, mounts)
	}
	if len(l.Templates) > 0 {
		fmt.Fprintln(t, "\nASSEMBLED JAIL\tZYGOTE\tVERSION\tSTARTED\tSTATE\tROOT")
	}
	for _, z := range l.Templates {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", z.Jail, formatNumber(z.Zygote), cmp.Or(z.Version, "-"),
			cmdline.FormatTime(z.Started), z.State, cmp.Or(z.Root, "-"))
	}
	return t.Flush()
}

func formatNumber(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func formatUsers(uids []uint32) string {
	var list []string
	for _, uid := range uids {
		name := strconv.FormatUint(uint64(uid), 10)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}
