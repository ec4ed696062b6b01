// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/job"
)

func newNetCommand(n *localNode) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "net",
		Short: "Show and check the networks of a job; for users, inside the job",
		Long: `A job started with --jail-net has its own interface on each rail that it asked
for. These commands show and check the interfaces. Inside a job they need
neither root nor a configuration; every jail has this command in
/run/gojail/bin.`,
		Example: `  srun --jail=debian --jail-net=compute --gres=nic:rail0:1,nic:rail1:1 \
    /run/gojail/bin/gojail net show
  srun -N8 --jail=debian --jail-net=compute --gres=nic:rail0:1,nic:rail1:1 \
    /run/gojail/bin/gojail net check`,
		Annotations: map[string]string{"anybody": "yes"},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNetShowCommand(n), newNetCheckCommand(n))
	return cmd
}

func newNetShowCommand(n *localNode) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [JOB]",
		Short: "Show a job's interfaces",
		Long: `Inside a job: its interface on each rail, with address, gateway, RDMA device and
PCI address, as the kernel reports them. Any user may run it.

On the node, as root: the same data as recorded when the job's network was
attached, for one job or for all.`,
		Example: `  srun --jail=debian --jail-net=compute --gres=nic:rail0:1,nic:rail1:1 \
    /run/gojail/bin/gojail net show
  gojail net show 4711 --json`,
		Args:        cmdline.TakeUpToOneArgument("a job"),
		Annotations: map[string]string{"anybody": "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var networks []jobNetwork
			var err error
			if len(args) == 0 && (os.Geteuid() != 0 || os.Getenv("GOJAIL_NET_RAILS") != "") {
				networks, err = readJobView()
			} else {
				networks, err = n.readNetworks(args)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string][]jobNetwork{"networks": networks})
			}
			return printNetworks(cmd.OutOrStdout(), networks)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// jobNetwork is one job's part of the output of `gojail net show`.
type jobNetwork struct {
	Job string `json:"job,omitempty"`
	job.View
}

// readJobView reads the network of the job that this process runs in.
func readJobView() ([]jobNetwork, error) {
	view, err := job.ReadView(os.Getenv, inventory.Host.Sys)
	if err != nil {
		return nil, err
	}
	return []jobNetwork{{os.Getenv("SLURM_JOB_ID"), *view}}, nil
}

// readNetworks reads the records of the given jobs, or of all jobs that hold a VF.
func (n *localNode) readNetworks(jobs []string) ([]jobNetwork, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("only root can show the networks of jobs from outside; run gojail net show inside a job")
	}
	all := len(jobs) == 0
	if all {
		held, _, err := n.readHolders()
		if err != nil {
			return nil, err
		}
		jobs = slices.Compact(slices.Sorted(maps.Values(held)))
	}
	networks := []jobNetwork{}
	for _, job := range jobs {
		record, err := attach.ReadNetwork(n.networkState(), job)
		switch {
		case errors.Is(err, fs.ErrNotExist) && all: // the network is being attached or released
		case errors.Is(err, fs.ErrNotExist):
			return nil,
				fmt.Errorf("job %s has no network on this node; to list the jobs that have one, run: gojail vf ls", job)
		case err != nil:
			return nil, err
		default:
			networks = append(networks, convertRecord(record))
		}
	}
	return networks, nil
}

// convertRecord returns a record as `gojail net show` prints it. Later changes to the interfaces are not
// in it.
func convertRecord(record *attach.Network) jobNetwork {
	const state = "attached"
	network := jobNetwork{record.Job, job.View{Rails: []job.Rail{}}}
	if c := record.Control; c != nil {
		network.Control = &job.Rail{Rail: "control", Interface: c.Name, State: state, Gateways: []netip.Addr{},
			RDMA: []string{}}
		for _, a := range c.Addresses {
			network.Control.Addresses = append(network.Control.Addresses, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for _, r := range record.Rails {
		rail := job.Rail{Rail: r.Rail, Interface: r.Name, PCI: r.PCI, State: state, RDMA: []string{}}
		rail.Addresses = append([]netip.Prefix{}, r.Addresses...) // [] in JSON instead of null
		rail.Gateways = append([]netip.Addr{}, r.Gateways...)
		rail.RDMA = append(rail.RDMA, r.ListRDMA()...)
		network.Rails = append(network.Rails, rail)
	}
	return network
}

func printNetworks(w io.Writer, networks []jobNetwork) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	count := 0
	for _, network := range networks {
		rows := network.Rails
		if network.Control != nil {
			rows = append([]job.Rail{*network.Control}, rows...)
		}
		for _, r := range rows {
			if count == 0 {
				fmt.Fprintln(t, "JOB\tRAIL\tINTERFACE\tADDRESS\tGATEWAY\tRDMA\tPCI\tSTATE")
			}
			count++
			cells := []string{network.Job, r.Rail, r.Interface, joinStrings(r.Addresses), joinStrings(r.Gateways),
				strings.Join(r.RDMA, ","), r.PCI, r.State}
			for i, cell := range cells {
				if cell == "" {
					cells[i] = "-"
				}
			}
			fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
	}
	if count == 0 {
		fmt.Fprintln(t, "No job network: the job was started without --jail-net, or outside a jail.")
	}
	return t.Flush()
}

func joinStrings[T fmt.Stringer](all []T) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, ",")
}
